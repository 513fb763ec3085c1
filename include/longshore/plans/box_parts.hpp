/// plans: who has what of a box of an array, and of what a plan brings to a rank, as relations that end in dense
/// memory.
#pragma once

#include <vector>

#include "longshore/plans/motion_plan.hpp"

namespace longshore {

/// What one rank has.
struct BoxPart {
  Index rank = 0;
  LoopNest relation;  ///< its local array -> dense memory, which ascends
};

/// Of the box [first, last) of a layout's array, as a dense array in C order; of replicas one. Throws `Error(shape)`
/// where the box has other dimensions, `Error(argument)` where it is outside the array.
std::vector<BoxPart> parts_of_box(const Layout& layout, const std::vector<Index>& first, const std::vector<Index>& last,
                                  Index element_bytes);
/// Of the array that the plan gives `rank`, in the order of its memory. Throws `Error(argument)` where that has gaps.
std::vector<BoxPart> incoming_parts(const MotionPlan& plan, Index rank);

}  // namespace longshore

/// plans: who has what of a box of an array, and of what a plan between layouts or blocks brings to a rank, as
/// relations that end in dense memory.
#pragma once

#include <functional>
#include <vector>

#include "longshore/plans/footprint.hpp"
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

/// What one block has.
struct BlockPart {
  Index block = 0;
  AddressRelation relation;  ///< its grid -> dense memory
};

/// Of what these motions bring, with the points of each visited in this order of the destination's dimensions: one
/// motion after the other, or with `to`, which all are to, at its places. `grid` says how a source block's elements
/// lie. Throws `Error(argument)` where a motion is outside a grid, naming the block.
std::vector<BlockPart> incoming_parts(const std::vector<BlockMotion>& motions,
                                      const std::function<Grid(Index block)>& grid, Order visit,
                                      const Grid* to = nullptr);

}  // namespace longshore

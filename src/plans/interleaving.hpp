/// plans: where several ranks' parts interleave in memory, so that the cache lines of one side hold elements of
/// several.
#pragma once

#include <optional>

#include "longshore/plans/motion_plan.hpp"

namespace longshore {

/// The destination dimension along which source and destination parts may interleave in memory: the fastest one that is
/// not whole on both sides, provided both sides store it and everything inside it in the same order.
struct Interleaved {
  std::size_t dimension;  ///< of the destination
  Index unit;             ///< bytes of one of its indices
};
std::optional<Interleaved> interleaved_dimension(const MotionPlan& plan);
/// Who should carry motions whose runs are so short that those of several ranks share cache lines or pages, jointly;
/// none where none are.
std::optional<Direction> joint_direction(const MotionPlan& plan);
/// Whether lines of a source hold elements for several ranks.
bool lines_go_to_several(const MotionPlan& plan);
/// Where motions are joint: from so many bytes of the shared rank's part on it is faster to carry them jointly.
Index joint_from_bytes(const MotionPlan& plan);

}  // namespace longshore

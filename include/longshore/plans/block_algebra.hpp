/// What is asked of plans between blocks as a whole: who sends how much to whom, whether motions get in each other's
/// way, and what two plans do one after the other.
#pragma once

#include "longshore/plans/block_plan.hpp"

namespace longshore {

/// What one rank sends to another (or keeps).
struct BlockVolume {
  Index source_rank = 0, destination_rank = 0, motions = 0, points = 0;
  bool operator==(const BlockVolume&) const = default;
};
/// By ascending ranks.
List<BlockVolume> volumes(const BlockPlan& plan);

/// Throws `Error(argument)` naming two motions that write the same point, if there are any; for a plan whose sources
/// and destinations are the same arrays (an endogenous copy), also two of which one reads what the other writes.
/// Where a motion combines what it brings with what is there, several may write one point.
void check_races(const BlockPlan& plan, bool endogenous = false, bool combining = false);

/// First one plan, then the next: motions from the first one's sources straight to the next one's destinations that
/// carry what goes all the way, a plan by hand. Throws `Error(argument)` where `next` begins with other blocks than
/// those `first` ends with, where a plan is one rank's, and for motions between regions of different shape, which it
/// names.
BlockPlan compose(const BlockPlan& first, const BlockPlan& next);

}  // namespace longshore

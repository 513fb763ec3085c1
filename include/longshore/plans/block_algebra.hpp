/// What is asked of plans between blocks as a whole: who sends how much to whom, whether motions get in each other's
/// way, what two plans do one after the other, and what one does in phases.
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

/// A halo with corners dimension by dimension: plans that, carried out one after the other within one array, write the
/// same ghost cells with the same values. Each brings the faces across one dimension together with the ghost cells
/// around them that the phases before have filled, so that edges and corners come by way of neighbours: 6 motions a
/// block in place of 26, of longer runs. They are independent of each other within a phase only. Dimensions come in
/// the order of the grids' memory, the fastest first. The plan as it is, alone, where `phases_obstacle` has one.
std::vector<BlockPlan> phases(const BlockPlan& plan, Order order = Order::C);
/// Why a plan has one phase only, in words; empty where it has several. It is surely equal in phases where it is a halo
/// with corners, not reversed, of blocks that are a lattice (`FloorPlan::cuts`) and fill the domain where that is
/// periodic: then whoever lies beside a block in one dimension has the same neighbours in all others.
std::string phases_obstacle(const BlockPlan& plan);
/// Whether phases are worth waiting for one another: whether enough of what a rank's blocks take lies beyond edges and
/// corners. A pure function of what all ranks' plans have in common.
bool phases_pay(const BlockPlan& plan);

}  // namespace longshore

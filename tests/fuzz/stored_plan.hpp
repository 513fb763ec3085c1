/// What must hold for any bytes whatsoever that are read as a stored plan or floor plan: an `Error`
/// in printable words, or a plan that comes back from its own bytes, says what it moves, and tells
/// races. In a moment, and in memory that the bytes account for.
#pragma once

#include "fuzz/hostile.hpp"
#include "longshore/plans/block_algebra.hpp"
#include "longshore/plans/block_builders.hpp"

namespace longshore::test {

/// As many blocks, pairs of neighbours and motions by hand as are read.
constexpr Index most_read = 1 << 12;

inline void check_plan(const BlockPlan& plan, const Bytes& bytes) {
  require(BlockPlan::from_bytes(plan.to_bytes()) == plan, bytes, "does not survive its own bytes");
  require(plan.reverse().reverse() == plan, bytes, "does not survive being reversed");
  require(plan.workspace_bytes() > 0, bytes, "takes no memory");
  std::vector<BlockMotion> motions;
  try {
    motions = plan.motions();
    Index points = 0;
    for (const auto& volume : volumes(plan)) points = checked_add(points, volume.points);
    for (const auto& motion : motions) points -= motion.points();
    require(points == 0, bytes, "counts two ways");
    check_races(plan, plan.source() == plan.destination());
  } catch (const Error&) {  // races; sizes and coordinates beyond 64 bits
  }
  for (const auto& motion : motions) {
    const Index from = plan.source().owner(motion.source), to = plan.destination().owner(motion.destination);
    require(motion.points() > 0, bytes, "moves nothing");
    require(!plan.rank() || from == *plan.rank() || to == *plan.rank(), bytes, "holds what its rank takes no part in");
    require(!motion.to_string().empty(), bytes, "has nothing to say");
  }
}

/// True where the bytes are a plan, or a floor plan.
inline bool check_stored(const Bytes& bytes) {
  const bool plan = check_read(bytes, [&] { check_plan(BlockPlan::from_bytes(bytes, most_read), bytes); });
  return check_read(
             bytes,
             [&] {
               const auto blocks = FloorPlan::from_bytes(bytes, most_read);
               require(FloorPlan::from_bytes(blocks.to_bytes()) == blocks, bytes, "does not survive its own bytes");
               require(blocks.size() <= most_read && !blocks.to_string().empty(), bytes, "is larger than it may be");
               std::size_t owned = 0;
               for (const Index rank : blocks.owning_ranks()) owned += blocks.owned_by(rank).size();
               require(Index(owned) == blocks.size(), bytes, "has blocks that nobody owns");
               blocks.index().find(blocks.bounding());
             }) ||
         plan;
}

}  // namespace longshore::test

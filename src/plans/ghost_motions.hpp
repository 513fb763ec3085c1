/// Ghosts behind what blocks own: who owns a vertex, and the motions that fetch what one block needs.
#pragma once

#include <span>
#include <vector>

#include "longshore/plans/block_plan.hpp"

namespace longshore {

/// Whose range a vertex is in. The floor plan outlives it. Throws `Error(shape)` for blocks of other dimensions, and
/// `Error(argument)` where two overlap.
class VertexOwners {
 public:
  explicit VertexOwners(const FloorPlan& blocks);

  /// The block; nobody's: -1.
  Index of(Index vertex) const;
  /// The blocks of what block `k` needs. Throws `Error(argument)` where no block owns a vertex.
  std::vector<Index> of_needed(Index k, std::span<const Index> needed) const;

 private:
  Index lower(Index block) const { return blocks_->bounds()[std::size_t(2 * block)]; }
  Index upper(Index block) const { return blocks_->bounds()[std::size_t(2 * block + 1)]; }

  const FloorPlan* blocks_;
  std::vector<Index> order_;  ///< that own anything, by range
};

/// The same blocks, block k longer by `ghosts[k]` in dimension 0.
FloorPlan with_ghosts(const FloorPlan& blocks, std::span<const Index> ghosts);

/// The motions to block `k`, one for each block that it needs something of, ascending: entry i is point i of the
/// `points`, their coordinates one after the other, of block `sources[i]`, and goes to `first` and i further in
/// dimension 0.
std::vector<BlockMotion> ghost_motions(Index k, const Point& first, std::span<const Index> sources,
                                       std::span<const Index> points);

/// A motion of listed points, as `BlockPlan::copy_points` makes it.
BlockMotion list_motion(Index source, Index destination, PointList source_points, PointList destination_points);

}  // namespace longshore

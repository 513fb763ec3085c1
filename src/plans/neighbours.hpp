/// Who a block's neighbours are, and what it takes of them: looked up once for a plan between blocks.
#pragma once

#include <algorithm>
#include <memory>

#include "longshore/plans/block_plan.hpp"

namespace longshore {

/// Pairs of a destination block and a source block, or an image of it, that share points. What they share is worked out
/// when it is asked for.
class Neighbours {
 public:
  /// With a rank, its blocks' neighbours only. Throws what `BlockPlan` does.
  Neighbours(BlockPlan::Kind kind, FloorPlan source, FloorPlan destination, const Axes& axes, Halo halo,
             std::optional<Index> rank, Index most_pairs);

  /// One phase of a halo with corners of the blocks of a lattice, dimension by dimension: see `phases`.
  Neighbours(const Neighbours& all, Axes swept);

  const Halo& halo() const { return halo_; }
  const Axes& swept() const;
  /// All motions, none of them empty; those of a reversed plan the other way. Those between two blocks follow each
  /// other in the plan's order.
  void for_each(bool reversed, const std::function<void(const BlockMotion&)>& f) const;
  /// Whether no other block overlaps any source here.
  bool sources_apart() const;
  Index workspace_bytes() const;

 private:
  /// Of block blocks[k], others[starts[k] ... starts[k + 1]), each moved by shifts[...].
  struct Lists {
    std::vector<std::uint32_t> blocks, starts{0}, others;
    std::vector<std::uint16_t> shifts;
  };
  /// A phase, and those before it.
  struct Sweep {
    Axes dims;          ///< its own the last
    Point first, last;  ///< where the ghost cells end that there are, as far as any reach where it is periodic
    /// Whether ghost cells are taken along, which phases before have filled.
    bool grown(std::size_t d) const { return d != dims.back() && std::find(dims.begin(), dims.end(), d) != dims.end(); }
  };
  /// How the image of a source block lies to a block of a halo that reaches it.
  struct Place {
    std::size_t beside = 0;  ///< in how many dimensions it is beside the block; 0: they overlap
    bool beyond = false;     ///< whether it sticks out of the block, into its ghost cells
  };

  void look_up(std::optional<Index> rank, Index most_pairs);
  std::uint16_t shift_number(const Point& shift) const;
  Region image(Index source, const Point& shift) const;
  bool one_piece(Index destination, Index source, const Point& shift, Region& piece) const;
  std::vector<Region> pieces(Index destination, Index source, const Point& shift) const;
  Place place(Index destination, Index source, const Point& shift) const;

  BlockPlan::Kind kind_;
  FloorPlan source_, destination_;
  Axes axes_, axes_back_;
  Halo halo_;
  std::shared_ptr<const Sweep> sweep_;  ///< null: no phase
  std::vector<Point> shifts_;           ///< to all images that anybody meets, by periods of the domain, ascending
  Lists received_, sent_;               ///< by destination; by source, what is not received here
};

}  // namespace longshore

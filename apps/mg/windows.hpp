/// NAS-MG whose ranks get their ghost cells from a window: each neighbour's share whole, or in strips that are put in
/// place while the next ones come (Iancu, Husbands & Chen, "Message strip mining heuristics for high speed networks",
/// table 3).
#pragma once

#include "apps/mg/solver.hpp"
#include "longshore/copies/relation_program.hpp"
#include "longshore/engines/mpi_window.hpp"
#include "longshore/movers/strips.hpp"
#include "longshore/plans/block_builders.hpp"

namespace longshore::apps::mg {

class Windows {
 public:
  Phases phases;

  /// What a neighbour has comes in so many strips, if they are of `least_strip` elements at least. Collective.
  Windows(MPI_Comm comm, const std::vector<FloorPlan>& levels, Index parts)
      : right_hand_side_(mpi::make_xarray(levels.back(), comm, {sizeof(double), {}, Order::C})) {
    MPI_Comm_rank(comm, &rank_);
    std::vector<Part> mine;
    for (auto& field : fields_)
      for (const FloorPlan& blocks : levels) {
        auto& array = field.emplace_back(mpi::make_xarray(blocks, comm, {sizeof(double), Point(3, 1), Order::C}));
        const Grid& grid = array.values.grids()[0];
        const Index number = Index(mine.size()) * blocks.size() + rank_;
        mine.push_back({number, {grid.data, grid.region.shape().to_vector(), grid.strides, false, nullptr}});
      }
    const Index pieces = Index(mine.size()) * levels[0].size();
    window_ = mpi::open_window(comm, pieces, std::move(mine), sizeof(double));
    Index first_piece = 0;
    for (auto& field : fields_)
      for (std::size_t level = 0; level < levels.size(); ++level) {
        connect(field[level], comm, levels[level], first_piece, parts);
        first_piece += levels[level].size();
      }
  }

  Mesh right_hand_side() const { return Mesh(right_hand_side_.grids()[0]); }
  Mesh mesh(Field field, std::size_t level) const { return Mesh(fields_[int(field)][level].values.grids()[0]); }
  /// Collective.
  void close() { window_->close(); }

  template <class Computable, class Compute>
  void refresh(Field field, std::size_t level, Computable&& computable, Compute&& compute) {
    const Array& array = fields_[int(field)][level];
    const Grid& grid = array.values.grids()[0];
    {
      Stopwatch communication(phases.communication_s);
      array.own->move();
      // From here on this mesh is as it should be on all ranks, and nobody gets what he got before any more. Until the
      // next fence, or the sum over all ranks that ends an iteration, the solver writes nothing of this mesh.
      window_->fence();
      for (const auto& [section, schedule, place] : array.shares)
        for_each_strip<double>(section, schedule, [&](std::span<const double> strip, Index first) {
          place.run(first, first + Index(strip.size()), grid.data,
                    reinterpret_cast<const std::byte*>(strip.data() - first));
        });
    }
    compute(computable(grid.region));
  }

 private:
  /// What one rank has for this one, as a dense sequence, and where it goes.
  struct Share {
    Section section;
    StripSchedule schedule;
    RelationProgram place;
  };
  struct Array {
    explicit Array(XArray of) : values(std::move(of)) {}
    XArray values;
    std::unique_ptr<Mover> own;  ///< the block is its own neighbour in dimensions that are not cut
    std::vector<Share> shares;
  };
  static constexpr Index least_strip = 512;  ///< elements: a page

  void connect(Array& array, MPI_Comm comm, const FloorPlan& blocks, Index first_piece, Index parts) {
    const Region domain = blocks.bounding();
    const std::vector<bool> periodic(3, true);
    BlockPlan own(blocks, blocks);
    halo_exchange(blocks, Halo(3, 1, domain, periodic)).for_each([&](const BlockMotion& motion) {
      if (motion.source == motion.destination)
        own.copy(motion.destination_region, motion.destination, motion.source_region, motion.source);
    });
    array.own = mpi::bind(own, comm, array.values, array.values);

    // What others have comes with the ghost cells that they have filled so.
    Point whole(3), cut(3);
    for (std::size_t d = 0; d < 3; ++d) {
      whole[d] = blocks.region(rank_).extent(d) == domain.extent(d);
      cut[d] = 1 - whole[d];
    }
    std::vector<Region> grown;
    for (Index block = 0; block < blocks.size(); ++block) grown.push_back(blocks.region(block).grow(whole));
    Halo halo(3, 0, domain.grow(whole), {cut[0] > 0, cut[1] > 0, cut[2] > 0});
    halo.below = halo.above = cut;
    std::vector<std::vector<BlockMotion>> from(std::size_t(blocks.size()));
    halo_exchange(FloorPlan(grown, blocks.owners()), halo).for_each([&](const BlockMotion& motion) {
      if (motion.destination == rank_) from[std::size_t(motion.source)].push_back(motion);
    });
    const Grid& mine = array.values.grids()[0];
    for (Index source = 0; source < blocks.size(); ++source) {
      const Index piece = first_piece + source;
      const auto& motions = from[std::size_t(source)];
      if (motions.empty()) continue;
      const Grid theirs{blocks.region(source).grow(1), nullptr, window_->piece(piece).strides, sizeof(double)};
      std::vector<Section::Part> got;
      std::vector<AddressRelation> put;
      Index elements = 0;
      for (const auto& motion : motions) {
        const Point& shape = motion.source_region.shape();
        const Index at = elements * Index(sizeof(double)), row = shape[2] * Index(sizeof(double));
        const Point dense{shape[1] * row, row, sizeof(double)};
        got.push_back({piece, AddressRelation::strided(sizeof(double), shape, theirs.strides, dense,
                                                       theirs.offset_of(motion.source_region.lower()), at)});
        put.push_back(AddressRelation::strided(sizeof(double), shape, dense, mine.strides, at,
                                               mine.offset_of(motion.destination_region.lower())));
        elements += motion.points();
      }
      const bool in_strips = parts > 1 && elements >= parts * least_strip;
      array.shares.push_back({Section(window_, elements, std::move(got)),
                              in_strips ? StripSchedule::fixed(elements / parts, 1) : StripSchedule::vectorized(),
                              RelationProgram(AddressRelation::concatenate(put))});
    }
  }

  int rank_ = 0;
  XArray right_hand_side_;
  std::array<std::vector<Array>, 2> fields_;
  std::shared_ptr<Window> window_;
};

}  // namespace longshore::apps::mg

/// NAS-MG on Longshore's movers.
#pragma once

#include "apps/mg/solver.hpp"
#include "longshore/engines/mpi.hpp"
#include "longshore/plans/block_builders.hpp"

namespace longshore::apps::mg {

class Communication {
 public:
  Phases phases;

  Communication(MPI_Comm comm, const std::vector<FloorPlan>& levels, bool overlapped)
      : right_hand_side_(mpi::make_xarray(levels.back(), comm, {sizeof(double), {}, Order::C})) {
    for (auto& field : fields_)
      for (const FloorPlan& blocks : levels) field.emplace_back(comm, blocks, overlapped);
  }

  Mesh right_hand_side() const { return Mesh(right_hand_side_.grids()[0]); }
  Mesh mesh(Field field, std::size_t level) const { return Mesh(fields_[int(field)][level].values.grids()[0]); }

  template <class Computable, class Compute>
  void refresh(Field field, std::size_t level, Computable&& computable, Compute&& compute) {
    Array& array = fields_[int(field)][level];
    Region early = Region::of_shape(Point(3));
    if (!array.own) {
      Stopwatch communication(phases.communication_s);
      array.all_or_others->move();
    } else {
      {
        Stopwatch communication(phases.communication_s);
        array.all_or_others->start();
        array.own->move();
      }
      early = computable(array.known);
      if (!early.empty()) compute(early);
      Stopwatch communication(phases.communication_s);
      array.all_or_others->wait();
    }
    for (const Region& part : subtract(computable(array.values.grids()[0].region), early)) compute(part);
  }

 private:
  /// A mesh and what fills its ghost cells. Where others' share comes while something is
  /// computed, the rank's own share (its block is its own neighbour, the mesh being periodic) is
  /// fetched first, for `known` to be all but what others send.
  struct Array {
    static constexpr Index least_extent = 32;  ///< for which it pays to compute in parts

    Array(MPI_Comm comm, const FloorPlan& blocks, bool overlapped)
        : values(mpi::make_xarray(blocks, comm, {sizeof(double), Point(3, 1), Order::C})) {
      const Region domain = blocks.bounding(), block = blocks.region(values.owned()[0]);
      const BlockPlan halo = halo_exchange(blocks, Halo(3, 1, domain, {true, true, true}));
      if (!overlapped || block.extent(0) < least_extent) {
        all_or_others = mpi::bind(halo, comm, values, values);
        return;
      }
      BlockPlan from_own(blocks, blocks), from_others(blocks, blocks);
      halo.for_each([&](const BlockMotion& motion) {
        (motion.source == motion.destination ? from_own : from_others)
            .copy(motion.destination_region, motion.destination, motion.source_region, motion.source);
      });
      own = mpi::bind(from_own, comm, values, values);
      all_or_others = mpi::bind(from_others, comm, values, values);
      Point whole(3);  // dimensions that are not cut
      for (std::size_t d = 0; d < 3; ++d) whole[d] = block.extent(d) == domain.extent(d);
      known = block.grow(whole);
    }

    XArray values;
    std::unique_ptr<Mover> own, all_or_others;
    Region known{{0, 0, 0}, {0, 0, 0}};
  };

  XArray right_hand_side_;
  std::array<std::vector<Array>, 2> fields_;
};

}  // namespace longshore::apps::mg

/// Redblack3D on Longshore's movers.
#pragma once

#include "apps/app.hpp"
#include "apps/redblack3d/kernels.hpp"
#include "longshore/engines/mpi.hpp"
#include "longshore/plans/block_builders.hpp"

namespace longshore::apps::redblack3d {

class Communication {
 public:
  Phases phases;

  Communication(MPI_Comm comm, const FloorPlan& blocks, bool overlapped)
      : solution_(mpi::make_xarray(blocks, comm, {sizeof(double), Point(3, 1), Order::C})),
        scaled_source_(mpi::make_xarray(blocks, comm, {sizeof(double), {}, Order::C})),
        block_(blocks.region(solution_.owned()[0])) {
    Halo faces(3, 1);
    faces.corners = false;
    const BlockPlan plan = halo_exchange(blocks, faces, solution_.rank());
    mover_ = mpi::bind(plan, comm, solution_, solution_);
    if (overlapped)
      for (const BlockMotion& motion : plan.receives(*solution_.rank()))
        last_.push_back(motion.destination_region.grow(1) & block_);
    else
      last_ = {block_};
    last_ = unite(last_);
    first_ = subtract(std::span(&block_, 1), last_);
  }

  Mesh solution() const { return Mesh(solution_.grids()[0]); }
  Mesh scaled_source() const { return Mesh(scaled_source_.grids()[0]); }

  template <class Compute>
  void refresh(Compute&& compute) {
    if (first_.empty()) {
      Stopwatch communication(phases.communication_s);
      mover_->move();
    } else {
      {
        Stopwatch communication(phases.communication_s);
        mover_->start();
      }
      for (const Region& part : first_) compute(part);
      Stopwatch communication(phases.communication_s);
      mover_->wait();
    }
    for (const Region& part : last_) compute(part);
  }

 private:
  XArray solution_, scaled_source_;
  std::unique_ptr<Mover> mover_;
  Region block_;
  std::vector<Region> first_, last_;  ///< what is computed while ghost cells are on their way, and what needs them
};

}  // namespace longshore::apps::redblack3d

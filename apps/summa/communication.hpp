/// SUMMA's broadcasts on Longshore's movers.
#pragma once

#include "apps/app.hpp"
#include "apps/summa/kernels.hpp"
#include "longshore/engines/mpi.hpp"

namespace longshore::apps::summa {

/// Owners use panels where they lie; the others have room for two, one to compute with and one to come. A rank's blocks
/// of B and A are in one array, so that a step is one mover.
class Communication {
 public:
  Phases phases;

  Communication(MPI_Comm comm, const Problem& problem, bool overlapped)
      : problem_(problem), overlapped_(overlapped), rank_(mpi::comm_facts(comm).rank), ranks_(problem.blocks.size()) {
    std::vector<Region> blocks, rooms;
    Map owners;
    for (const Factor factor : {b, a})
      for (Index k = 0; k < ranks_; ++k) {
        blocks.push_back(problem.blocks.region(k));
        rooms.push_back(problem.strip(factor, k, 0, problem.panel));
        owners.push_back(k);
      }
    const GridFormat format{sizeof(double), {}, Order::F};
    factors_ = mpi::make_xarray({blocks, owners}, comm, format);
    product_ = mpi::make_xarray(problem.blocks, comm, format);
    for (XArray& room : rooms_) room = mpi::make_xarray({rooms, owners}, comm, format);

    for (const Problem::Step& step : problem.steps) {
      const XArray& room = rooms_[movers_.size() % 2];
      BlockPlan plan(factors_.blocks(), room.blocks());
      for (const Factor factor : {b, a})
        for (Index k = 0; k < ranks_; ++k)
          if (const Index owner = problem.owner(factor, step, k); owner != k)
            plan.copy(problem.strip(factor, k, 0, step.width), block(factor, k),
                      problem.strip(factor, k, step.first, step.width), block(factor, owner));
      movers_.push_back(mpi::bind(plan, comm, factors_, room));
    }
  }

  double* factor(Factor factor) const { return at(factors_, block(factor, rank_)); }
  double* product() const { return at(product_, rank_); }
  bool looks_ahead() const { return overlapped_; }

  void start(std::size_t s) {
    const Stopwatch communication(phases.communication_s);
    if (overlapped_) movers_[s]->start();
  }
  void wait(std::size_t s) {
    const Stopwatch communication(phases.communication_s);
    overlapped_ ? movers_[s]->wait() : movers_[s]->move();
  }
  Panel panel(Factor factor, std::size_t s) const {
    const Problem::Step& step = problem_.steps[s];
    const bool own = problem_.owner(factor, step, rank_) == rank_;
    const Grid& grid = (own ? factors_ : rooms_[s % 2]).grid(block(factor, rank_));
    const Index skipped = own ? step.first - grid.region.lower()[factor] : 0;
    return {reinterpret_cast<double*>(grid.data + skipped * grid.strides[factor]),
            grid.strides[1] / Index(sizeof(double))};
  }

 private:
  Index block(Factor factor, Index rank) const { return factor * ranks_ + rank; }
  static double* at(const XArray& array, Index block) { return reinterpret_cast<double*>(array.grid(block).data); }

  const Problem& problem_;
  bool overlapped_;
  Index rank_, ranks_;
  XArray factors_, product_, rooms_[2];
  std::vector<std::unique_ptr<Mover>> movers_;
};

}  // namespace longshore::apps::summa

/// NAS-FT's transposes on Longshore's movers.
#pragma once

#include "apps/app.hpp"
#include "apps/ft/kernels.hpp"
#include "longshore/engines/mpi.hpp"
#include "longshore/plans/block_builders.hpp"

namespace longshore::apps::ft {

class Communication {
 public:
  Phases phases;

  Communication(MPI_Comm comm, const Slabs& slabs, bool overlapped)
      : planes_(mpi::make_xarray(slabs.planes, comm, format)),
        spectrum_(mpi::make_xarray(slabs.columns, comm, format)) {
    const BlockPlan plan = copy_between(slabs.planes, slabs.columns, planes_.rank());
    to_spectrum_ = mpi::bind(plan, comm, planes_, spectrum_);
    for (int i = 0; i < (overlapped ? 2 : 1); ++i) {
      columns_.push_back(mpi::make_xarray(slabs.columns, comm, format));
      to_planes_.push_back(mpi::bind(plan.reverse(), comm, columns_[i], planes_));
    }
  }

  Complex* planes() const { return data(planes_); }
  Complex* spectrum() const { return data(spectrum_); }
  Complex* columns(int t) const { return data(columns_[t % columns_.size()]); }
  bool looks_ahead() const { return columns_.size() > 1; }

  void to_spectrum() {
    const Stopwatch communication(phases.communication_s);
    to_spectrum_->move();
  }
  void start_to_planes(int t) {
    const Stopwatch communication(phases.communication_s);
    if (looks_ahead()) to_planes_[t % columns_.size()]->start();
  }
  void wait_to_planes(int t) {
    const Stopwatch communication(phases.communication_s);
    Mover& mover = *to_planes_[t % columns_.size()];
    looks_ahead() ? mover.wait() : mover.move();
  }

 private:
  static inline const GridFormat format{sizeof(Complex), {}, Order::F};
  static Complex* data(const XArray& array) { return reinterpret_cast<Complex*>(array.grids()[0].data); }

  XArray planes_, spectrum_;
  std::vector<XArray> columns_;
  std::unique_ptr<Mover> to_spectrum_;
  std::vector<std::unique_ptr<Mover>> to_planes_;
};

}  // namespace longshore::apps::ft

/// NAS-FT's transposes on Longshore's movers.
#pragma once

#include "apps/app.hpp"
#include "apps/ft/kernels.hpp"
#include "longshore/movers/mpi.hpp"

namespace longshore::apps::ft {

class Communication {
 public:
  Phases phases;

  /// In so many parts, by planes.
  Communication(MPI_Comm comm, const Slabs& slabs, Index parts)
      : planes_(mpi::make_xarray(slabs.planes, comm, {sizeof(Complex), {}, Order::F})),
        spectrum_(mpi::make_xarray(slabs.columns, comm, {sizeof(Complex), {}, Order::F})),
        columns_(mpi::make_xarray(slabs.columns, comm, {sizeof(Complex), {}, Order::F})) {
    const BlockPlan all = BlockPlan::copy_between(slabs.planes, slabs.columns);
    for (Index i = 0; i < parts; ++i) {
      BlockPlan plan(slabs.planes, slabs.columns);
      const auto part = [&](Index block) { return split_evenly(slabs.planes.region(block), {1, 1, parts})[i]; };
      all.for_each([&](const BlockMotion& motion) {
        const Region region = motion.source_region & part(motion.source);
        plan.copy(region, motion.destination, region, motion.source);
      });
      parts_.push_back({part(planes_.owned()[0]), mpi::bind(plan, comm, planes_, spectrum_),
                        mpi::bind(plan.reverse(), comm, columns_, planes_)});
    }
  }

  Complex* planes() const { return data(planes_); }
  Complex* spectrum() const { return data(spectrum_); }
  Complex* columns() const { return data(columns_); }
  int parts() const { return int(parts_.size()); }
  const Region& part(int i) const { return parts_[i].planes; }

  void start_to_spectrum(int i) { timed([&] { parts_[i].to_spectrum->start(); }); }
  void wait_to_spectrum(int i) { timed([&] { parts_[i].to_spectrum->wait(); }); }
  void start_to_planes(int i) { timed([&] { parts_[i].to_planes->start(); }); }
  void wait_to_planes(int i) { timed([&] { parts_[i].to_planes->wait(); }); }

 private:
  struct Part {
    Region planes;  ///< this rank's
    std::unique_ptr<Mover> to_spectrum, to_planes;
  };

  static Complex* data(const XArray& array) { return reinterpret_cast<Complex*>(array.grids()[0].data); }
  template <class Work>
  void timed(Work&& work) {
    const Stopwatch communication(phases.communication_s);
    work();
  }

  XArray planes_, spectrum_, columns_;
  std::vector<Part> parts_;
};

}  // namespace longshore::apps::ft

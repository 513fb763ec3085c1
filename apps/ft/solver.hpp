/// NAS-FT, whoever carries out its transposes.
#pragma once

#include "apps/app.hpp"
#include "apps/ft/kernels.hpp"

namespace longshore::apps::ft {

/// One rank's run. `Communication` has the three arrays (`planes()`, `spectrum()`, `columns()`) and brings planes to the spectrum
/// and columns to planes, in `parts()` parts: part i carries the planes `part(i)` of this rank, and no part waits for a later one.
template <class Communication>
Result solve(const Problem& problem, const Slabs& slabs, Communication& transpose, MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  const Region planes = slabs.planes.region(rank), columns = slabs.columns.region(rank);
  const Kernels kernels(problem, planes, columns, transpose.planes(), transpose.columns());

  const auto forward = [&] {
    for (int i = 0; i < transpose.parts(); ++i) {
      kernels.transform_planes(transpose.planes(), transpose.part(i), FFTW_FORWARD);
      transpose.start_to_spectrum(i);
    }
    for (int i = 0; i < transpose.parts(); ++i) transpose.wait_to_spectrum(i);
    kernels.transform_columns(transpose.spectrum());
  };
  const auto backward = [&](int time) {
    kernels.evolve(transpose.spectrum(), transpose.columns(), time);
    for (int i = 0; i < transpose.parts(); ++i) transpose.start_to_planes(i);
    for (int i = 0; i < transpose.parts(); ++i) {
      transpose.wait_to_planes(i);
      kernels.transform_planes(transpose.planes(), transpose.part(i), FFTW_BACKWARD);
    }
    return kernels.checksum(transpose.planes());
  };

  // The benchmark's rule: everything is touched before the clock runs; the initial field and its transform are timed.
  kernels.fill(transpose.planes());
  forward();
  backward(0);

  std::vector<Complex> sums(problem.checksums.size());
  Phases& phases = transpose.phases;
  phases = {};
  MPI_Barrier(comm);
  {
    const Stopwatch total(phases.total_s);
    kernels.fill(transpose.planes());
    forward();
    for (int t = 1; t <= problem.iterations(); ++t) sums[t - 1] = backward(t);
    const Stopwatch communication(phases.communication_s);
    MPI_Allreduce(MPI_IN_PLACE, sums.data(), int(sums.size()), MPI_C_DOUBLE_COMPLEX, MPI_SUM, comm);
  }
  const Index kept = (planes & columns).size();
  phases.payload_bytes = Index(sizeof(Complex)) * (columns.size() - kept + problem.iterations() * (planes.size() - kept));
  phases = slowest(phases, comm);

  Result result;
  result.total_s = phases.total_s, result.communication_s = phases.communication_s;
  result.verification = std::to_string(problem.iterations()) + " checksums and those published for class " + problem.name;
  result.tolerance = 1e-12;
  for (std::size_t t = 0; t < sums.size(); ++t)
    result.error = std::max(result.error, std::abs(sums[t] - problem.checksums[t]) / std::abs(problem.checksums[t]));
  result.verified = result.error <= result.tolerance;
  result.payload_bytes = phases.payload_bytes;
  result.flops = operations(problem);
  return result;
}

}  // namespace longshore::apps::ft

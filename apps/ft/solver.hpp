/// NAS-FT, whoever carries out its transposes.
#pragma once

#include "apps/app.hpp"
#include "apps/ft/kernels.hpp"

namespace longshore::apps::ft {

/// One rank's run. `Communication` has the arrays (`planes()`, `spectrum()`, `columns(t)` of iteration t) and
/// brings planes to the spectrum (`to_spectrum()`) and columns to planes (`start_to_planes(t)`,
/// `wait_to_planes(t)`). Where it `looks_ahead`, iterations that follow each other have columns of their own, and
/// the next one's are computed while this one's are on their way.
template <class Communication>
Result solve(const Problem& problem, const Slabs& slabs, Communication& transpose, MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  const Region planes = slabs.planes.region(rank), columns = slabs.columns.region(rank);
  const Kernels kernels(problem, planes, columns, transpose.planes(), transpose.columns(0));

  const auto evolve = [&](int time) { kernels.evolve(transpose.spectrum(), transpose.columns(time), time); };
  const auto run = [&](int iterations, Complex* sums) {
    kernels.fill(transpose.planes());
    kernels.transform_planes(transpose.planes(), FFTW_FORWARD);
    transpose.to_spectrum();
    kernels.transform_columns(transpose.spectrum());
    for (int t = 1; t <= iterations; ++t) {
      if (t == 1 || !transpose.looks_ahead()) evolve(t);
      transpose.start_to_planes(t);
      if (t < iterations && transpose.looks_ahead()) evolve(t + 1);
      transpose.wait_to_planes(t);
      kernels.transform_planes(transpose.planes(), FFTW_BACKWARD);
      sums[t - 1] = kernels.checksum(transpose.planes());
    }
  };

  // The benchmark's rule: everything is touched before the clock runs; the initial field and its transform are timed.
  std::vector<Complex> sums(problem.checksums.size());
  run(2, sums.data());
  Phases& phases = transpose.phases;
  phases = {};
  MPI_Barrier(comm);
  {
    const Stopwatch total(phases.total_s);
    run(problem.iterations(), sums.data());
    const Stopwatch communication(phases.communication_s);
    MPI_Allreduce(MPI_IN_PLACE, sums.data(), int(sums.size()), MPI_C_DOUBLE_COMPLEX, MPI_SUM, comm);
  }
  const Index kept = (planes & columns).size();
  phases.payload_bytes =
      Index(sizeof(Complex)) * (columns.size() - kept + problem.iterations() * (planes.size() - kept));
  phases = slowest(phases, comm);

  Result result;
  result.total_s = phases.total_s, result.communication_s = phases.communication_s;
  result.verification =
      std::to_string(problem.iterations()) + " checksums and those published for class " + problem.name;
  result.tolerance = 1e-12;
  for (std::size_t t = 0; t < sums.size(); ++t)
    result.error = std::max(result.error, std::abs(sums[t] - problem.checksums[t]) / std::abs(problem.checksums[t]));
  result.verified = result.error <= result.tolerance;
  result.payload_bytes = phases.payload_bytes;
  result.flops = operations(problem);
  return result;
}

}  // namespace longshore::apps::ft

/// Redblack3D's algorithm, whoever communicates.
///
/// A `Communication` owns the meshes: `solution()` with a ghost cell on every side, `scaled_source()` with none.
/// `refresh(compute)` fills the ghost cells that other ranks have, and calls `compute` for parts of the block, each
/// point once, as soon as the ghost cells that they need are there. `phases` has the seconds of communication.
#pragma once

#include <cmath>

#include "apps/app.hpp"
#include "apps/redblack3d/kernels.hpp"

namespace longshore::apps::redblack3d {

/// The largest difference between the solution on a rank's block and the serial reference. Collective.
double difference(MPI_Comm comm, const Mesh& u, const Region& block, Index n, int iterations);

template <class Communication>
Result solve(MPI_Comm comm, const Region& block, Index n, int iterations, Communication& communication) {
  const auto iterate = [&](int count) {
    begin(communication.solution(), communication.scaled_source(), block, n);
    communication.phases = {};
    MPI_Barrier(comm);
    Stopwatch total(communication.phases.total_s);
    for (int iteration = 0; iteration < count; ++iteration)
      for (const Colour colour : {Colour::red, Colour::black})
        communication.refresh(
            [&](const Region& part) { sweep(communication.solution(), communication.scaled_source(), colour, part); });
  };
  iterate(1);  // without the clock
  iterate(iterations);

  const Phases phases = slowest(communication.phases, comm);
  Result result;
  result.verification = "every point and the same iterations by one process, bit by bit";
  result.error = difference(comm, communication.solution(), block, n, iterations);
  result.verified = result.error == 0;
  result.total_s = phases.total_s, result.communication_s = phases.communication_s;
  for (std::size_t d = 0; d < 3; ++d) {
    const int neighbours = (block.lower()[d] > 0) + (block.upper()[d] < n);
    result.payload_bytes += 2 * iterations * neighbours * (block.size() / block.extent(d)) * Index(sizeof(double));
  }
  result.flops = 8.0 * iterations * std::pow(double(n), 3);
  return result;
}

}  // namespace longshore::apps::redblack3d

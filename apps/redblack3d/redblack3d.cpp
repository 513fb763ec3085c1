#include "apps/redblack3d/redblack3d.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <optional>

#include "apps/redblack3d/communication.hpp"
#include "apps/redblack3d/solver.hpp"
#include "lab/twins/redblack3d.hpp"
#include "longshore/layouts/balance.hpp"
#include "longshore/regions/partition.hpp"

namespace longshore::apps::redblack3d {

double difference(MPI_Comm comm, const Mesh& u, const Region& block, Index n, int iterations) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  const Index row = n + 2;
  std::vector<double> all, plane(std::size_t(row * row));
  std::optional<Error> failure;
  try {
    if (rank == 0) all = reference(n, iterations);
  } catch (const std::bad_alloc&) {
    failure.emplace(ErrorKind::argument,
                    "no memory for the serial reference of " + std::to_string(n) + "^3 points; take fewer");
  }
  mpi::agree(comm, failure ? &*failure : nullptr);
  double largest = 0;
  for (Index i = 0; i < n; ++i) {
    if (rank == 0) std::copy_n(&all[std::size_t((i + 1) * row * row)], plane.size(), plane.data());
    MPI_Bcast(plane.data(), int(plane.size()), MPI_DOUBLE, 0, comm);
    if (i < block.lower()[0] || i >= block.upper()[0]) continue;
    for (Index j = block.lower()[1]; j < block.upper()[1]; ++j)
      for (Index k = block.lower()[2]; k < block.upper()[2]; ++k) {
        const double apart = std::abs(u(i, j, k) - plane[std::size_t((j + 1) * row + k + 1)]);
        largest = std::max(largest, std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart);
      }
  }
  MPI_Allreduce(MPI_IN_PLACE, &largest, 1, MPI_DOUBLE, MPI_MAX, comm);
  return largest;
}

Result run(MPI_Comm comm, Index n, int iterations, Variant variant) {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  if (n < 1 || n > 8192 || iterations < 1)
    throw Error(ErrorKind::argument, std::to_string(n) + " points in each dimension and " + std::to_string(iterations) +
                                         " iterations; 1 to 8192, and 1 at least");
  const FloorPlan blocks = even_floor_plan(Region::of_shape(Point(3, n)), ranks);
  for (Index k = 0; k < blocks.size(); ++k)
    if (blocks.region(k).empty())
      throw Error(ErrorKind::argument,
                  std::to_string(n) + " points in each dimension leave rank " + std::to_string(k) + " none");
  const Region block = blocks.region(rank);
  if (variant == Variant::twin) {
    twins::Redblack3d communication(comm, process_grid(ranks, Point(3, n)), block);
    return solve(comm, block, n, iterations, communication);
  }
  Communication communication(comm, blocks, variant == Variant::overlapped);
  return solve(comm, block, n, iterations, communication);
}

}  // namespace longshore::apps::redblack3d

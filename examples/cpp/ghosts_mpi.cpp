/// Ghost vertices that each rank alone knows of: a directory finds their owners, the plan brings their values and adds
/// what was worked out for them to their owners' own.
#include <mpi.h>

#include <cstdio>

#include "longshore/engines/mpi.hpp"
#include "longshore/engines/mpi_plans.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int wrong = 0;
  try {
    using namespace longshore;
    // A ring of vertices with numbers far apart, dealt out one by one: both neighbours are another rank's.
    const Index all = 1000 * size, apart = Index{1} << 40;
    std::vector<Index> owned, needed;
    for (Index v = rank; v < all; v += size) {
      owned.push_back(v * apart);
      if (size == 1) continue;
      for (const Index neighbour : {(v + all - 1) % all, (v + 1) % all}) needed.push_back(neighbour * apart);
    }
    const mpi::Directory directory(MPI_COMM_WORLD, owned);  // collective, as are the plan and binding it
    const BlockPlan plan = mpi::gather_points(directory, needed);

    const GridFormat format{sizeof(double)};
    const XArray field = mpi::make_xarray(plan.source(), MPI_COMM_WORLD, format),
                 sums = mpi::make_xarray(plan.source(), MPI_COMM_WORLD, format);
    const View<double, 1> values(field.grid(rank)), added(sums.grid(rank));
    const Index own = directory.owned();
    for (Index i = 0; i < own; ++i) values(i) = double(owned[std::size_t(i)]);
    const auto fill = mpi::bind(plan, MPI_COMM_WORLD, field, field);
    fill->start();
    fill->wait();
    for (std::size_t i = 0; i < needed.size(); ++i) wrong += values(own + Index(i)) != double(needed[i]);

    // Every vertex is a ghost of both of its neighbours.
    for (std::size_t i = 0; i < needed.size(); ++i) added(own + Index(i)) = 1;
    mpi::Options adding;
    adding.update = Reduction(ElementType::float64, ReduceOp::add);
    const auto back = mpi::bind(plan.reverse(), MPI_COMM_WORLD, sums, sums, adding);
    back->start();
    back->wait();
    for (Index i = 0; i < own; ++i) wrong += added(i) != (size == 1 ? 0 : 2);
  } catch (const longshore::Error& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  int total = 0;
  MPI_Allreduce(&wrong, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%d values are wrong\n", total);
  MPI_Finalize();
  return total != 0;
}

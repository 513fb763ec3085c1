/// Moves a matrix between two layouts over MPI: from blocks of rows to a block-cyclic grid, and back.
#include <mpi.h>

#include <cstdio>

#include "longshore/engines/mpi.hpp"
#include "longshore/layouts/layout.hpp"
#include "longshore/plans/motion_plan.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int wrong = 0;
  try {
    using namespace longshore;
    const std::vector<Index> shape = {600, 500};
    const auto p = std::to_string(size);
    const auto rows = Layout::parse("(BLOCK, *) on " + p, shape);
    const auto grid = Layout::parse("(CYCLIC(32), CYCLIC(32)) on 1x" + p, shape);

    // Local arrays where the engine moves fastest. Any memory will do: {rank, local_array(vector, layout, rank)}.
    Part from = mpi::allocate(rows, rank, sizeof(double), MPI_COMM_WORLD),
         to = mpi::allocate(grid, rank, sizeof(double), MPI_COMM_WORLD);
    auto value = [&](const std::vector<Index>& global) { return double(global[0] * shape[1] + global[1]); };
    auto each = [&](const Layout& layout, const Part& part, auto&& f) {
      const auto local = layout.local_shape(rank);
      for (Index i = 0; i < local[0]; ++i)
        for (Index j = 0; j < local[1]; ++j)
          f(reinterpret_cast<double*>(part.array.data)[i * local[1] + j], value(layout.local_to_global(rank, {i, j})));
    };
    each(rows, from, [](double& element, double v) { element = v; });

    const MotionPlan plan(rows, grid, sizeof(double));
    const auto mover = mpi::bind(plan, MPI_COMM_WORLD, {from}, {to});  // collective: all ranks agree here, or all throw
    mover->start();  // again and again, whenever the source has changed
    mover->wait();
    each(grid, to, [&](double& element, double v) { wrong += element != v; });
    if (rank == 0) std::printf("%s", (mover->describe() + "\n").c_str());

    // And back, as two fields that go together: into the array that it came from, and into another one.
    Part other = mpi::allocate(rows, rank, sizeof(double), MPI_COMM_WORLD);
    each(rows, from, [](double& element, double) { element = -1; });
    const MotionPlan back(grid, rows, sizeof(double));
    const auto both = mpi::bind({Field(back, {to}, {from}), Field(back, {to}, {other})}, MPI_COMM_WORLD);
    both->move();  // start() and wait() at once
    for (const auto* part : {&from, &other})
      each(rows, *part, [&](double& element, double v) { wrong += element != v; });
  } catch (const longshore::Error& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  int total = 0;
  MPI_Allreduce(&wrong, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%d elements are wrong\n", total);
  MPI_Finalize();
  return total != 0;
}

/// Every rank adds up what its neighbour has, in strips: the next ones are under way while one is added.
#include <mpi.h>

#include <cstdio>
#include <numeric>
#include <vector>

#include "longshore/engines/mpi_window.hpp"
#include "longshore/movers/strips.hpp"
#include "longshore/movers/typed.hpp"

int main(int argc, char** argv) {
  int provided = 0, rank = 0, size = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);  // so that owners need not call MPI meanwhile
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  double sum = 0, expected = 0;
  int strips = 0;
  {
    using namespace longshore;
    const Index n = 100'000, peer = (rank + 1) % size;
    std::vector<double> mine(n);
    std::iota(mine.begin(), mine.end(), double(rank) * n);
    LocalArray array{reinterpret_cast<std::byte*>(mine.data()), {n}, {sizeof(double)}, false, nullptr};
    const auto window = mpi::open_window(MPI_COMM_WORLD, size, {{rank, array}}, sizeof(double));  // collective
    for_each_strip<double>(Section(window, peer), StripSchedule::variable(1000, 0.4),
                           [&](std::span<const double> strip, Index) {
                             sum = std::accumulate(strip.begin(), strip.end(), sum);
                             ++strips;
                           });
    expected = 0.5 * double(n) * (2 * double(peer * n) + double(n - 1));
    window->close();  // collective
  }
  std::printf("rank %d: %s in %d strips\n", rank, sum == expected ? "right" : "WRONG", strips);
  MPI_Finalize();
  return sum == expected ? 0 : 1;
}

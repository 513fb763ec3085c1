// Heat spreads over a square that is cut into 16 blocks of 4 ranks, with a ghost cell around each: the ghost cells are
// filled before every step, by a mover that is bound once. All ranks are in this process; over MPI, each makes its own
// blocks with mpi::make_xarray and binds the same plan with mpi::bind.
#include <cmath>
#include <cstdio>
#include <utility>

#include <longshore/longshore.hpp>

using namespace longshore;

int main() {
  const Region domain = Region::of_shape({64, 64});
  const FloorPlan blocks = balanced_along(split_to_size(domain, {16, 16}), 4);
  const GridFormat format{sizeof(double), Point{1, 1}};  // one ghost cell on every side
  XArray heat(blocks, {}, format), next(blocks, {}, format);
  const BlockPlan halo = halo_exchange(blocks, Halo(2, 1, domain, {true, true}));  // periodic: nothing gets lost
  auto fill = bind_threads(halo, heat, heat), fill_next = bind_threads(halo, next, next);

  for (Index k = 0; k < blocks.size(); ++k)
    if (blocks.region(k).contains(Point{20, 30})) View<double, 2>(heat.grid(k))(20, 30) = 1000;
  for (int step = 0; step < 200; ++step) {
    fill->start();
    fill->wait();
    for (Index k = 0; k < blocks.size(); ++k) {
      const Region block = blocks.region(k);
      const View<double, 2> old(heat.grid(k)), made(next.grid(k));  // both by global indices
      for (Index i = block.lower()[0]; i < block.upper()[0]; ++i)
        for (Index j = block.lower()[1]; j < block.upper()[1]; ++j)
          made(i, j) = old(i, j) / 2 + (old(i - 1, j) + old(i + 1, j) + old(i, j - 1) + old(i, j + 1)) / 8;
    }
    std::swap(heat, next);
    std::swap(fill, fill_next);
  }

  double sum = 0;
  for (Index k = 0; k < blocks.size(); ++k) {
    const Region block = blocks.region(k);
    const View<double, 2> view(heat.grid(k));
    for (Index i = block.lower()[0]; i < block.upper()[0]; ++i)
      for (Index j = block.lower()[1]; j < block.upper()[1]; ++j) sum += view(i, j);
  }
  std::printf("%lld blocks on 4 ranks; all the heat is still there: %.6f of 1000\n", (long long)blocks.size(), sum);
  return std::abs(sum - 1000) < 1e-6 ? 0 : 1;
}

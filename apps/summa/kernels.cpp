#include "apps/summa/kernels.hpp"

#include <cblas.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>

#include "longshore/core/error.hpp"
#include "longshore/regions/partition.hpp"

// OpenBLAS's own; other libraries do not have them.
extern "C" {
[[gnu::weak]] void openblas_set_num_threads(int threads);
[[gnu::weak]] int openblas_get_num_threads();
}

namespace longshore::apps::summa {

Problem::Problem(Index order, Index width, int ranks) : n(order), panel(width) {
  if (n < 1 || n > std::numeric_limits<int>::max())
    throw Error(ErrorKind::argument, "matrices of " + std::to_string(n) + " rows; BLAS takes 1 to " +
                                         std::to_string(std::numeric_limits<int>::max()));
  if (panel < 1)
    throw Error(ErrorKind::argument, "panels of " + std::to_string(panel) + " columns; they need one at least");
  const Region matrix = Region::of_shape({n, n});
  grid = process_grid(ranks, matrix.shape());
  Map owners(ranks);
  std::iota(owners.begin(), owners.end(), Index{0});
  blocks = FloorPlan(split_evenly(matrix, grid), owners);
  const auto end_of = [&](Factor factor, const Step& step) {
    return blocks.region(step.owners[factor] * (factor == a ? 1 : grid[1])).upper()[factor];
  };
  Step step;
  for (; step.first < n; step.first += step.width) {
    for (const Factor factor : {a, b})
      while (end_of(factor, step) <= step.first) ++step.owners[factor];
    step.width = std::min({step.first + panel, end_of(a, step), end_of(b, step)}) - step.first;
    steps.push_back(step);
  }
}

Index Problem::owner(Factor factor, const Step& step, Index rank) const {
  const Index column = rank % grid[1];
  return factor == a ? rank - column + step.owners[a] : step.owners[b] * grid[1] + column;
}

Region Problem::strip(Factor factor, Index rank, Index first, Index width) const {
  Point lower = blocks.region(rank).lower(), upper = blocks.region(rank).upper();
  lower[factor] = first, upper[factor] = first + width;
  return {lower, upper};
}

void multiply_add(Index rows, Index columns, Index width, Panel a, Panel b, double* c) {
  if (rows == 0 || columns == 0 || width == 0) return;
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, int(rows), int(columns), int(width), 1.0, a.data,
              int(a.leading), b.data, int(b.leading), 1.0, c, int(rows));
}

void fill(Factor factor, const Region& region, double* out) {
  // The finaliser of Stafford's variant 13 of MurmurHash3's.
  const auto mixed = [](std::uint64_t bits) {
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
    return bits ^ bits >> 31;
  };
  for (Index j = region.lower()[1]; j < region.upper()[1]; ++j) {
    const std::uint64_t column = mixed(std::uint64_t(j) << 8 | std::uint8_t(factor));
    for (Index i = region.lower()[0]; i < region.upper()[0]; ++i)
      *out++ = double(std::int64_t(mixed(column + std::uint64_t(i) * 0x9e3779b97f4a7c15u))) * 0x1p-63;
  }
}

OneThread::OneThread() {
  if (!openblas_set_num_threads || !openblas_get_num_threads) return;
  before_ = openblas_get_num_threads();
  openblas_set_num_threads(1);
}

OneThread::~OneThread() {
  if (before_ > 0) openblas_set_num_threads(before_);
}

}  // namespace longshore::apps::summa

#include "longshore/regions/partition.hpp"

#include <cmath>
#include <functional>
#include <numeric>

#include "regions/curve.hpp"

namespace longshore {

namespace {

/// The product of the dimensions' pieces, the last one fastest; starts[d] has one more entry than there are pieces.
std::vector<Region> product(const std::vector<std::vector<Index>>& starts) {
  Point counts(starts.size());
  for (std::size_t d = 0; d < starts.size(); ++d) counts[d] = Index(starts[d].size()) - 1;
  const Region all = Region::of_shape(counts);
  std::vector<Region> blocks;
  blocks.reserve(std::size_t(all.size()));
  Point lower(starts.size()), upper(starts.size());
  for (Index k = 0; k < all.size(); ++k) {
    const Point at = all.point_at(k, Order::C);
    for (std::size_t d = 0; d < starts.size(); ++d) {
      lower[d] = starts[d][std::size_t(at[d])];
      upper[d] = starts[d][std::size_t(at[d]) + 1];
    }
    blocks.emplace_back(lower, upper);
  }
  return blocks;
}

}  // namespace

std::vector<Region> split_evenly(const Region& domain, const Point& blocks) {
  check_same_dims(domain.dims(), blocks.dims(), "a domain and its numbers of blocks");
  std::vector<std::vector<Index>> starts(domain.dims());
  for (std::size_t d = 0; d < domain.dims(); ++d) {
    if (blocks[d] < 1)
      throw Error(ErrorKind::argument,
                  std::to_string(blocks[d]) + " blocks in dimension " + std::to_string(d) + "; at least 1");
    const Index extent = domain.extent(d);
    for (Index k = 0; k <= blocks[d]; ++k) starts[d].push_back(domain.lower()[d] + Index(Wide(extent) * k / blocks[d]));
  }
  return product(starts);
}

std::vector<Region> split_at(const Region& domain, const std::vector<std::vector<Index>>& cuts) {
  check_same_dims(domain.dims(), cuts.size(), "a domain and its cuts");
  std::vector<std::vector<Index>> starts(domain.dims());
  for (std::size_t d = 0; d < domain.dims(); ++d) {
    starts[d].push_back(domain.lower()[d]);
    for (const Index cut : cuts[d]) {
      if (cut <= starts[d].back() || cut >= domain.upper()[d])
        throw Error(ErrorKind::argument, "cut " + std::to_string(cut) + " of dimension " + std::to_string(d) +
                                             " does not lie between " + std::to_string(starts[d].back()) + " and " +
                                             std::to_string(domain.upper()[d]));
      starts[d].push_back(cut);
    }
    starts[d].push_back(domain.upper()[d]);
  }
  return product(starts);
}

std::vector<Region> split_to_size(const Region& domain, const Point& largest) {
  check_same_dims(domain.dims(), largest.dims(), "a domain and the largest extents");
  Point blocks(domain.dims(), 1);
  for (std::size_t d = 0; d < domain.dims(); ++d) {
    if (largest[d] < 1)
      throw Error(ErrorKind::argument, "largest extent " + std::to_string(largest[d]) + " in dimension " +
                                           std::to_string(d) + "; at least 1");
    blocks[d] = std::max<Index>(1, ceil_div(domain.extent(d), largest[d]));
  }
  return split_evenly(domain, blocks);
}

Point process_grid(Index processes, const Point& shape, const std::vector<bool>& periodic) {
  const std::size_t dims = shape.dims();
  if (processes < 1) throw Error(ErrorKind::argument, std::to_string(processes) + " processes; at least 1");
  if (!periodic.empty()) check_same_dims(dims, periodic.size(), "a shape and its periodic dimensions");
  for (std::size_t d = 0; d < dims; ++d)
    if (shape[d] < 0)
      throw Error(ErrorKind::shape,
                  "extent " + std::to_string(shape[d]) + " of dimension " + std::to_string(d) + " is negative");
  if (dims == 0) {
    if (processes > 1)
      throw Error(ErrorKind::argument, std::to_string(processes) + " processes and no dimension to cut");
    return {};
  }

  struct Grid {
    Point extents;
    long double surplus = 0;  ///< blocks beyond the points, which stay empty
    long double surface = 0;
  };
  // Surfaces are counted in units of the whole domain: cutting dimension d once takes 1 / shape[d] of its points.
  auto weigh = [&](const Point& extents) {
    Grid grid{extents};
    for (std::size_t d = 0; d < dims; ++d) {
      const Index points = std::max<Index>(1, shape[d]), p = extents[d];
      if (p > points) grid.surplus += static_cast<long double>(p) / static_cast<long double>(points) - 1;
      const bool around = !periodic.empty() && periodic[d] && p > 1;
      grid.surface += static_cast<long double>(around ? p : p - 1) / static_cast<long double>(points);
    }
    return grid;
  };
  // Equal sums of quotients may differ by rounding, and not on all machines alike.
  auto alike = [](long double a, long double b) { return std::abs(a - b) <= 1e-12L * std::max(a, b); };
  auto better = [&](const Grid& a, const Grid& b) {
    if (!alike(a.surplus, b.surplus)) return a.surplus < b.surplus;
    if (!alike(a.surface, b.surface)) return a.surface < b.surface;
    return b.extents < a.extents;
  };
  std::vector<Index> divisors;
  for (Index k = 1; k <= processes / k; ++k)
    if (processes % k == 0) {
      divisors.push_back(k);
      if (k != processes / k) divisors.push_back(processes / k);
    }
  std::sort(divisors.begin(), divisors.end());

  Grid best;
  Point extents(dims, 1);
  std::function<void(std::size_t, Index)> choose = [&](std::size_t d, Index left) {
    if (d + 1 == dims) {
      extents[d] = left;
      Grid grid = weigh(extents);
      if (best.extents.dims() == 0 || better(grid, best)) best = std::move(grid);
      return;
    }
    for (const Index k : divisors) {
      if (k > left) break;
      if (left % k != 0) continue;
      extents[d] = k;
      choose(d + 1, left / k);
    }
  };
  choose(0, processes);
  return best.extents;
}

std::vector<Index> order_along(std::span<const Region> regions, Curve curve) {
  std::vector<Index> order(regions.size());
  std::iota(order.begin(), order.end(), Index{0});
  if (regions.empty()) return order;
  const std::size_t dims = regions.front().dims();
  const Region all = bounding_region(regions, dims);
  if (all.empty()) return order;
  const CurveKeys keys(all.lower().to_vector(), all.upper().to_vector());
  struct Key {
    bool empty;
    std::uint64_t along;
  };
  std::vector<Key> key;
  key.reserve(regions.size());
  std::vector<Index> middle(dims);
  for (const auto& region : regions) {
    for (std::size_t d = 0; d < dims; ++d) middle[d] = Index((Wide(region.lower()[d]) + region.upper()[d]) >> 1);
    const bool empty = region.empty();
    key.push_back({empty, empty                     ? 0
                          : curve == Curve::hilbert ? keys.hilbert(middle.data())
                                                    : keys.morton(middle.data())});
  }
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) {
    const Key &x = key[std::size_t(a)], &y = key[std::size_t(b)];
    return x.empty != y.empty ? y.empty : x.along < y.along;
  });
  return order;
}

}  // namespace longshore

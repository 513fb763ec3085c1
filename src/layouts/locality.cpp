#include "longshore/layouts/locality.hpp"

#include <algorithm>
#include <numeric>

#include "longshore/ranks/members.hpp"
#include "regions/curve.hpp"

namespace longshore {

namespace {

/// How far apart ranks are along each dimension, and how many there are in all.
struct Strides {
  explicit Strides(std::span<const Index> shape) : of(shape.size()) {
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (shape[d] < 1)
        throw Error(ErrorKind::argument, "dimension " + std::to_string(d) + " of the grid has extent " +
                                             std::to_string(shape[d]) + "; it is at least 1");
      of[d] = size, size = checked_mul(size, shape[d]);
    }
    if (size > RankMap::largest_world)
      throw Error(ErrorKind::argument, "a grid of " + std::to_string(size) +
                                           " ranks is larger than the largest world, " +
                                           std::to_string(RankMap::largest_world));
  }
  std::vector<Index> of;
  Index size = 1;
};

/// The next point of [lower, upper), the last dimension fastest; false after the last one.
bool advance(std::vector<Index>& point, std::span<const Index> lower, std::span<const Index> upper,
             std::span<const Index> step) {
  for (std::size_t d = point.size(); d-- > 0;) {
    point[d] += step[d];
    if (point[d] < upper[d]) return true;
    point[d] = lower[d];
  }
  return false;
}

Index rank_at(const std::vector<Index>& point, const Strides& strides) {
  return std::inner_product(point.begin(), point.end(), strides.of.begin(), Index{0});
}

/// Tiles that do not divide the grid, as the runs of their rows.
RankMap cut_tiles(std::span<const Index> shape, std::span<const Index> tile, const Strides& strides) {
  const std::size_t last = shape.size() - 1;
  const std::vector<Index> origin(shape.size());
  auto in_rows = std::vector<Index>(shape.size(), 1);
  std::vector<AffineRun> rows;
  auto corner = origin;
  do {
    std::vector<Index> upper(shape.size());
    for (std::size_t d = 0; d <= last; ++d) upper[d] = std::min(corner[d] + tile[d], shape[d]);
    in_rows[last] = upper[last] - corner[last];
    auto first = corner;
    do rows.push_back({rank_at(first, strides), 1, in_rows[last]});
    while (advance(first, corner, upper, in_rows));
  } while (advance(corner, origin, shape, tile));
  return RankMap::of_runs(rows, strides.size);
}

void check_order(const RankMap& order, const char* what) {
  if (order.size() != order.world())
    throw Error(ErrorKind::argument, std::string(what) + " has " + std::to_string(order.size()) + " of the " +
                                         std::to_string(order.world()) +
                                         " ranks of its world; an order has all of them");
}

}  // namespace

RankMap tiled_order(std::span<const Index> shape, std::span<const Index> tile) {
  if (shape.size() != tile.size())
    throw Error(ErrorKind::argument, "the grid has " + std::to_string(shape.size()) + " dimensions, the tile " +
                                         std::to_string(tile.size()));
  const Strides strides(shape);
  std::vector<Index> within(tile.begin(), tile.end());  // no larger than the grid
  bool divides = true;
  for (std::size_t d = 0; d < tile.size(); ++d) {
    if (tile[d] < 1)
      throw Error(ErrorKind::argument, "dimension " + std::to_string(d) + " of the tile has extent " +
                                           std::to_string(tile[d]) + "; it is at least 1");
    within[d] = std::min(tile[d], shape[d]);
    divides &= shape[d] % within[d] == 0;
  }
  if (!divides) return cut_tiles(shape, within, strides);
  std::vector<AffineNest::Axis> axes;
  for (std::size_t d = shape.size(); d-- > 0;) axes.push_back({within[d], strides.of[d]});
  for (std::size_t d = shape.size(); d-- > 0;) axes.push_back({shape[d] / within[d], within[d] * strides.of[d]});
  return RankMap::of_nest(AffineNest(0, axes), strides.size);
}

RankMap hilbert_order(std::span<const Index> shape) {
  const Strides strides(shape);
  const std::vector<Index> origin(shape.size()), step(shape.size(), 1);
  std::vector<Index> upper(shape.begin(), shape.end());
  for (auto& u : upper) --u;
  const CurveKeys curve(origin, upper);
  std::vector<std::uint64_t> keys;
  auto point = origin;
  do keys.push_back(curve.hilbert(point.data()));
  while (advance(point, origin, shape, step));
  std::vector<Index> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return keys[std::size_t(a)] < keys[std::size_t(b)]; });
  return RankMap::of(order, strides.size);
}

RankMap placed_order(const RankMap& cells, const RankMap& processes) {
  check_order(cells, "cells");
  check_order(processes, "processes");
  if (cells.world() != processes.world())
    throw Error(ErrorKind::argument, "a grid of " + std::to_string(cells.world()) + " ranks for " +
                                         std::to_string(processes.world()) + " processes");
  std::vector<Index> members(std::size_t(cells.size()));
  for (Index i = 0; i < cells.size(); ++i) members[std::size_t(cells.select(i))] = processes.select(i);
  return RankMap::of(members, cells.world());
}

std::vector<Index> keys_of(const RankMap& order) {
  check_order(order, "the order");
  std::vector<Index> keys(std::size_t(order.size()));
  Members(order).each_piece([&](Index first, std::span<const Index> values) {
    for (std::size_t k = 0; k < values.size(); ++k) keys[std::size_t(values[k])] = first + Index(k);
  });
  return keys;
}

}  // namespace longshore

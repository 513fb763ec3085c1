#include "longshore/regions/partition.hpp"

#include <gtest/gtest.h>

#include "support/expect_error.hpp"

namespace longshore {
namespace {

using test::expect_error;

TEST(Partition, even_blocks) {
  EXPECT_EQ(split_evenly(Region({10}, {17}), {3}),
            (std::vector<Region>{Region({10}, {12}), Region({12}, {14}), Region({14}, {17})}));
  EXPECT_EQ(split_evenly(Region({0, 0}, {2, 3}), {2, 1}),
            (std::vector<Region>{Region({0, 0}, {1, 3}), Region({1, 0}, {2, 3})}));
  const auto five = split_evenly(Region({0}, {2}), {5});
  EXPECT_EQ(std::count_if(five.begin(), five.end(), [](const Region& r) { return r.size() == 1; }), 2);
  EXPECT_EQ(std::count_if(five.begin(), five.end(), [](const Region& r) { return r.empty(); }), 3);
  EXPECT_EQ(split_evenly(Region({3}, {3}), {4}).size(), 4u);
  EXPECT_EQ(split_to_size(Region({0, 0}, {10, 7}), {4, 7}).size(), 3u);
  EXPECT_EQ(split_to_size(Region({0}, {0}), {4}).size(), 1u);
  expect_error(ErrorKind::argument, {"0 blocks", "dimension 1"}, [] { split_evenly(Region({0, 0}, {1, 1}), {1, 0}); });
  expect_error(ErrorKind::argument, {"largest extent 0", "dimension 0"}, [] { split_to_size(Region({0}, {1}), {0}); });
  expect_error(ErrorKind::shape, {"do not go together"}, [] { split_evenly(Region({0}, {1}), {1, 1}); });
  const Index far = Index{1} << 61;
  EXPECT_EQ(split_evenly(Region({-far}, {far}), {2}).back(), Region({0}, {far}));
}

TEST(Partition, cuts) {
  EXPECT_EQ(split_at(Region({0, 0}, {9, 2}), {{1, 5}, {}}),
            (std::vector<Region>{Region({0, 0}, {1, 2}), Region({1, 0}, {5, 2}), Region({5, 0}, {9, 2})}));
  expect_error(ErrorKind::argument, {"cut 5", "dimension 0", "between 5 and 9"}, [] {
    split_at(Region({0}, {9}), {{5, 5}});
  });
  expect_error(ErrorKind::argument, {"cut 9"}, [] { split_at(Region({0}, {9}), {{9}}); });
}

TEST(Partition, grids_of_least_surface) {
  EXPECT_EQ(process_grid(8, {100, 100, 100}), Point({2, 2, 2}));
  EXPECT_EQ(process_grid(4, {1000, 10}), Point({4, 1}));
  EXPECT_EQ(process_grid(6, {300, 200}), Point({3, 2}));
  EXPECT_EQ(process_grid(2, {64, 64, 64}), Point({2, 1, 1}));  // longest runs
  EXPECT_EQ(process_grid(7, {3, 100}), Point({1, 7}));
  EXPECT_EQ(process_grid(64, {2, 2, 1000}), Point({1, 1, 64}));
  EXPECT_EQ(process_grid(1, {5}), Point({1}));
  EXPECT_EQ(process_grid(1, Point{}), Point{});
  EXPECT_EQ(process_grid(Index{1} << 40, {1 << 20, 1 << 20}), Point({1 << 20, 1 << 20}));
  for (const Index n : {50, 100, 200, 300, 599})  // of equals, the largest extents first
    for (const Index p : {12, 30, 48, 60, 120, 256}) {
      const Point grid = process_grid(p, {n, n, n});
      EXPECT_TRUE(grid[0] >= grid[1] && grid[1] >= grid[2]) << p << " on " << n << ": " << grid.to_string();
    }
  // Cut once, a periodic dimension has two surfaces.
  EXPECT_EQ(process_grid(2, {10, 12}), Point({1, 2}));
  EXPECT_EQ(process_grid(2, {10, 12}, {false, true}), Point({2, 1}));
  expect_error(ErrorKind::argument, {"0 processes"}, [] { process_grid(0, {4}); });
  expect_error(ErrorKind::argument, {"2 processes", "no dimension"}, [] { process_grid(2, Point{}); });
  expect_error(ErrorKind::shape, {"-4"}, [] { process_grid(2, {-4}); });
}

/// Hilbert's curve goes from neighbour to neighbour, in any number of dimensions, and visits everything.
TEST(Partition, hilbert_goes_to_neighbours) {
  for (const std::size_t dims : {1, 2, 3, 4}) {
    const Index side = dims < 4 ? 8 : 4;
    const auto cells = split_evenly(Region::of_shape(Point(dims, side)), Point(dims, side));
    const auto order = order_along(cells, Curve::hilbert);
    ASSERT_EQ(order.size(), cells.size());
    std::vector<bool> seen(cells.size());
    for (std::size_t k = 0; k < order.size(); ++k) {
      seen[std::size_t(order[k])] = true;
      if (k == 0) continue;
      const Point step = cells[std::size_t(order[k])].lower() - cells[std::size_t(order[k - 1])].lower();
      Index length = 0;
      for (const Index x : step) length += std::abs(x);
      EXPECT_EQ(length, 1) << dims << " dimensions, step " << k;
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), false), 0);
  }
}

TEST(Partition, morton_goes_by_bits) {
  const auto cells = split_evenly(Region({0, 0}, {4, 4}), {4, 4});
  EXPECT_EQ(order_along(cells, Curve::morton),
            (std::vector<Index>{0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15}));
  const std::vector<Region> some{Region({5}, {5}), Region({9}, {11}), Region({-4}, {0})};
  EXPECT_EQ(order_along(some, Curve::hilbert), (std::vector<Index>{2, 1, 0}));  // empty ones last
  EXPECT_TRUE(order_along({}, Curve::morton).empty());
  EXPECT_EQ(order_along(std::vector{Region(Point{}, Point{})}, Curve::hilbert), std::vector<Index>{0});
}

}  // namespace
}  // namespace longshore

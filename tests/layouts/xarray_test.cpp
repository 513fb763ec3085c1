// XArrays: where grids lie, what they hold, and what is refused.
#include "longshore/layouts/xarray.hpp"
#include "longshore/layouts/balance.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

#include "support/expect_error.hpp"

namespace longshore::test {
namespace {

TEST(XArray, has_storage_for_what_its_rank_owns) {
  const std::vector regions{Region({0, 0}, {4, 4}), Region({4, 0}, {9, 4}), Region({0, 4}, {0, 9}),
                            Region({2, 4}, {4, 9})};
  const FloorPlan blocks(regions, {1, 0, 1, 1});
  for (const Order order : {Order::C, Order::F}) {
    const XArray array(blocks, 1, {8, Point{1, 2}, order});
    EXPECT_EQ(array.owned(), (std::vector<Index>{0, 2, 3}));
    EXPECT_TRUE(array.grid(2).region.empty());
    const Grid& grid = array.grid(3);
    EXPECT_EQ(grid.region, Region({1, 2}, {5, 11}));
    EXPECT_EQ(grid.strides, (order == Order::C ? std::vector<Index>{72, 8} : std::vector<Index>{8, 32}));
    const View<double, 2> view(grid);
    for (Index i = view.lower(0); i < view.upper(0); ++i)
      for (Index j = view.lower(1); j < view.upper(1); ++j) {
        EXPECT_EQ(view(i, j), 0.0);
        view(i, j) = double(100 * i + j);
        EXPECT_EQ(*reinterpret_cast<double*>(grid.data + grid.offset_of({i, j})), double(100 * i + j));
      }
    expect_error(ErrorKind::argument, {"block 1", "rank 0", "rank 1"}, [&] { array.grid(1); });
    expect_error(ErrorKind::type, {"4 bytes", "8"}, [&] { View<float, 2>{grid}; });
    expect_error(ErrorKind::shape, {"2", "3"}, [&] { View<double, 3>{grid}; });
  }
  EXPECT_EQ(XArray(blocks, 7, {8, {}, Order::F}).owned(), std::vector<Index>());
  EXPECT_EQ(XArray(blocks, {}, {8, {}, Order::F}).owned().size(), 4u);
  const XArray plain(blocks, {}, {8, {}});
  EXPECT_EQ(plain.grid(0).strides[1], 8);  // row-major, unless told otherwise
}

TEST(XArray, ghost_cells_a_side) {
  const FloorPlan blocks = balanced_along(split_to_size(Region({0, 0}, {8, 8}), {4, 4}), 2);
  const GhostWidths widths({1, 0}, Point{2, 3});
  const XArray array(blocks, {}, {8, widths});
  EXPECT_EQ(array.grid(0).region, blocks.region(0).grow(Point{1, 0}, Point{2, 3}));
  EXPECT_EQ(array.grid(0).region, blocks.grow(widths).region(0));
  EXPECT_EQ(widths.to_string(), "(1, 0) below, (2, 3) above");
  EXPECT_EQ(GhostWidths({1, 2}), GhostWidths(Point{1, 2}, Point{1, 2}));
  expect_error(ErrorKind::argument, {"-3", "dimension 1"}, [&] {
    XArray(blocks, {}, {8, {Point{1, 0}, Point{2, -3}}});
  });
  expect_error(ErrorKind::shape, {"3"}, [&] { XArray(blocks, {}, {8, {Point{1, 0}, Point{1, 0, 0}}}); });
}

TEST(XArray, grids_are_apart_and_begin_cache_lines) {
  const FloorPlan blocks = balanced_along(split_to_size(Region({0, 0, 0}, {16, 16, 16}), {4, 8, 8}), 2);
  const GridFormat format{3, Point{1, 0, 2}, Order::F};
  const XArray array(blocks, {}, format);
  const auto places = XArray::places(blocks, {}, format);
  const std::byte* end = nullptr;
  for (const Index k : array.owned()) {
    const Grid& grid = array.grid(k);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(grid.data) % 64, 0u);
    EXPECT_EQ(grid.data - array.memory()->data(), places.offsets[std::size_t(k)]);
    if (end) {
      EXPECT_GE(grid.data, end);
    }
    end = grid.data + grid.region.size() * 3;
  }
  EXPECT_LE(end, array.memory()->data() + array.memory()->bytes());
  const XArray same = array;
  EXPECT_TRUE(same.same_storage(array));
  EXPECT_FALSE(XArray(blocks, {}, format).same_storage(array));
}

TEST(XArray, refuses_what_cannot_be) {
  const FloorPlan blocks = even_floor_plan(Region({0, 0}, {8, 8}), 2);
  expect_error(ErrorKind::argument, {"0 bytes"}, [&] { XArray(blocks, 0, {0, Point{1, 1}, Order::F}); });
  expect_error(ErrorKind::argument, {"-1 ghost cells in dimension 1"}, [&] {
    XArray(blocks, 0, {8, Point{1, -1}, Order::F});
  });
  expect_error(ErrorKind::shape, {"3"}, [&] { XArray(blocks, 0, {8, Point{1, 1, 1}, Order::F}); });
  expect_error(ErrorKind::buffer, {"rank 0", "take 576 bytes", "100"}, [&] {
    XArray(blocks, 0, {8, Point{1, 1}, Order::F}, Memory::ordinary(100));
  });
  expect_error(ErrorKind::overflow, {}, [&] {
    XArray(FloorPlan(std::vector<Region>{Region({0, 0}, {Index(1) << 40, Index(1) << 40})}, {0}), 0, {8, {}, Order::F});
  });
  std::vector<std::byte> bytes(1000);
  const Grid grid{Region({0, 0}, {4, 8}), bytes.data(), {8, 32}, 8};
  XArray::over(blocks, 0, {8, {}, Order::F}, {grid});
  expect_error(ErrorKind::argument, {"2 arrays for 1 blocks"}, [&] {
    XArray::over(blocks, 0, {8, {}, Order::F}, {grid, grid});
  });
  expect_error(ErrorKind::shape, {"block 1", "[4:8, 0:8]"}, [&] {
    XArray::over(blocks, 1, {8, {}, Order::F}, {grid});
  });
  expect_error(ErrorKind::type, {"block 0", "8 bytes, not of 4"}, [&] {
    XArray::over(blocks, 0, {4, {}, Order::F}, {grid});
  });
  expect_error(ErrorKind::buffer, {"block 0", "no memory"}, [&] {
    XArray::over(blocks, 0, {8, {}, Order::F}, {{grid.region, nullptr, grid.strides, 8}});
  });
}

}  // namespace
}  // namespace longshore::test

// Orders of ranks beside their definitions, and what they are for: fewer bytes between nodes.
#include "longshore/layouts/locality.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "longshore/ranks/rank_groups.hpp"
#include "support/expect_error.hpp"

namespace longshore {
namespace {

using Shape = std::vector<Index>;

const std::vector<Shape> shapes = {{1}, {7}, {4, 6}, {5, 3}, {8, 8}, {16, 32}, {3, 4, 5}, {4, 4, 4}, {2, 3, 4, 5}};

Index size_of(const Shape& shape) {
  Index size = 1;
  for (const Index extent : shape) size *= extent;
  return size;
}

Shape place_of(Index rank, const Shape& shape) {
  Shape place(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) place[d] = rank % shape[d], rank /= shape[d];
  return place;
}

bool neighbours(Index a, Index b, const Shape& shape) {
  Index apart = 0;
  const auto p = place_of(a, shape), q = place_of(b, shape);
  for (std::size_t d = 0; d < shape.size(); ++d) apart += std::abs(p[d] - q[d]);
  return apart == 1;
}

TEST(Locality, TilesAreVisitedOneAfterTheOther) {
  std::mt19937 random(1);
  for (const auto& shape : shapes)
    for (int trial = 0; trial < 20; ++trial) {
      Shape tile;
      for (const Index extent : shape) tile.push_back(1 + Index(random() % std::uint64_t(extent + 1)));
      // The definition: ranks sorted by their tile's place, and then by their own.
      std::vector<std::pair<Shape, Index>> expected;
      bool divides = true;
      for (std::size_t d = 0; d < shape.size(); ++d) divides &= shape[d] % std::min(tile[d], shape[d]) == 0;
      for (Index w = 0; w < size_of(shape); ++w) {
        auto place = place_of(w, shape);
        for (std::size_t d = 0; d < shape.size(); ++d) place[d] /= tile[d];
        expected.push_back({place, w});
      }
      std::sort(expected.begin(), expected.end());
      const auto order = tiled_order(shape, tile);
      ASSERT_EQ(order.size(), size_of(shape));
      EXPECT_EQ(order.world(), size_of(shape));
      for (Index i = 0; i < order.size(); ++i) ASSERT_EQ(order[i], expected[std::size_t(i)].second);
      if (divides) {
        EXPECT_NE(order.nest(), nullptr);
      }
    }
}

TEST(Locality, TilesOfAGridOfMillionsAreAClosedForm) {
  const auto order = tiled_order(Shape{1024, 1024, 64}, Shape{2, 2, 4});
  EXPECT_LE(order.bytes(), 400);
  EXPECT_EQ(order.size(), Index{1} << 26);
  EXPECT_EQ(order[4], 64);  // the next row of the first tile
  EXPECT_EQ(order[16], 4);  // the next tile
}

TEST(Locality, HilbertsCurveVisitsEverybodyNextToNext) {
  for (const auto& shape : shapes) {
    const auto order = hilbert_order(shape);
    const auto members = order.to_vector();
    EXPECT_EQ(Index(std::set(members.begin(), members.end()).size()), size_of(shape));
    EXPECT_EQ(order.world(), size_of(shape));
  }
  for (const Shape& cube : {Shape{8, 8}, Shape{32, 32}, Shape{4, 4, 4}}) {
    const auto order = hilbert_order(cube);
    for (Index i = 1; i < order.size(); ++i) ASSERT_TRUE(neighbours(order[i - 1], order[i], cube)) << i;
  }
}

TEST(Locality, MembersAreGroupedByNode) {
  const Shape nodes = {7, 7, 3, 9, 3, 7, 9, 1};
  EXPECT_EQ(node_order(nodes).to_vector(), (Shape{0, 1, 5, 2, 4, 3, 6, 7}));
  EXPECT_EQ(node_order(Shape{}).size(), 0);
}

TEST(Locality, ASplitByTheKeysNumbersRanksInTheOrder) {
  for (const auto& order :
       {tiled_order(Shape{4, 6}, Shape{2, 4}), hilbert_order(Shape{5, 3}), node_order(Shape{2, 1, 2, 1, 0})}) {
    const auto keys = keys_of(order);
    const auto parts = by_colour(RankMap::whole(order.size()), Shape(keys.size(), 0), keys);
    ASSERT_EQ(parts.size(), 1u);
    EXPECT_TRUE(parts[0].members == order);
    for (Index w = 0; w < order.size(); ++w) EXPECT_EQ(order.rank(w), keys[std::size_t(w)]);
  }
}

/// Bytes that cross between nodes when every rank of a periodic grid sends `bytes[d]` each way along dimension d.
Index between_nodes(const Shape& shape, const std::vector<Index>& node_of_cell, const Shape& bytes) {
  Index crossing = 0;
  for (Index c = 0; c < size_of(shape); ++c)
    for (std::size_t d = 0; d < shape.size(); ++d)
      for (const Index step : {Index{1}, shape[d] - 1}) {
        auto other = place_of(c, shape);
        other[d] = (other[d] + step) % shape[d];
        Index rank = 0;
        for (std::size_t k = 0; k < shape.size(); ++k) rank = rank * shape[k] + other[k];
        if (node_of_cell[std::size_t(c)] != node_of_cell[std::size_t(rank)]) crossing += bytes[d];
      }
  return crossing;
}

TEST(Locality, TilesAndCurvesTakeBytesOffTheNetwork) {
  // 32x32 processes, each with 100x100 doubles; nodes of 8, which a batch system has handed out in turn.
  const Shape shape = {32, 32}, halo = {800, 800};
  const Index ranks = size_of(shape), nodes = ranks / 8;
  Shape node_of(static_cast<std::size_t>(ranks));
  for (Index w = 0; w < ranks; ++w) node_of[std::size_t(w)] = w % nodes;
  auto crossing = [&](const RankMap& numbering) {
    Shape of_cell;
    for (const Index w : numbering.to_vector()) of_cell.push_back(node_of[std::size_t(w)]);
    return between_nodes(shape, of_cell, halo);
  };
  const auto by_node = node_order(node_of);
  // A node has a scattered set of cells; a strip of 1x8; a tile of 2x4: 32, 18 and 12 sides each.
  EXPECT_EQ(crossing(RankMap::whole(ranks)), nodes * 32 * 800);
  EXPECT_EQ(crossing(by_node), nodes * 18 * 800);
  EXPECT_EQ(crossing(placed_order(tiled_order(shape, Shape{2, 4}), by_node)), nodes * 12 * 800);
  EXPECT_LE(crossing(placed_order(hilbert_order(shape), by_node)), nodes * 13 * 800);
}

TEST(Locality, MistakesAreNamed) {
  test::expect_error(ErrorKind::argument, {"2 dimensions", "tile 1"}, [] { tiled_order(Shape{4, 4}, Shape{2}); });
  test::expect_error(ErrorKind::argument, {"dimension 1", "0"}, [] { tiled_order(Shape{4, 4}, Shape{2, 0}); });
  test::expect_error(ErrorKind::argument, {"dimension 0", "-3"}, [] { hilbert_order(Shape{-3, 4}); });
  test::expect_error(ErrorKind::argument, {"3 of the 9"}, [] { keys_of(RankMap::of(Shape{1, 2, 3}, 9)); });
  test::expect_error(ErrorKind::argument, {"4", "5 processes"},
                     [] { placed_order(RankMap::whole(4), RankMap::whole(5)); });
}

}  // namespace
}  // namespace longshore

#include "longshore/regions/point_list.hpp"

#include <gtest/gtest.h>

#include "longshore/regions/axes.hpp"
#include "support/expect_error.hpp"

namespace longshore {
namespace {

using test::expect_error;

TEST(PointList, keeps_points_in_their_order) {
  const std::vector<Index> coordinates{3, -1, 0, 7, 3, -1};
  const PointList points(2, coordinates);
  EXPECT_EQ(points.size(), 3);
  EXPECT_EQ(points.dims(), 2u);
  EXPECT_EQ(points[1], Point({0, 7}));
  EXPECT_EQ(points.coordinates(1), (std::vector<Index>{-1, 7, -1}));
  EXPECT_EQ(points.bounding(), Region({0, -1}, {4, 8}));
  EXPECT_EQ(points.offsets({0, -1}, std::vector<Index>{10, 1}), (std::vector<Index>{30, 8, 30}));
  EXPECT_EQ(points, PointList(std::vector<std::vector<Index>>{{3, 0, 3}, {-1, 7, -1}}));
  EXPECT_NE(points, PointList(2, std::vector<Index>{0, 7, 3, -1, 3, -1}));
  EXPECT_NE(points, PointList());
  EXPECT_EQ(PointList(2, {}), PointList());
  EXPECT_TRUE(PointList().empty() && PointList().bounding().empty());
  EXPECT_EQ(points.rows(), coordinates);
  EXPECT_EQ(PointList(points.columns()), points);
  EXPECT_TRUE(PointList().rows().empty() && PointList().columns().empty());
}

TEST(PointList, says_what_is_wrong) {
  expect_error(ErrorKind::shape, {"3 coordinates", "2 dimensions"}, [] { PointList(2, std::vector<Index>{1, 2, 3}); });
  expect_error(ErrorKind::argument, {"no dimensions"}, [] { PointList(0, std::vector<Index>{1}); });
  expect_error(ErrorKind::argument, {"no dimensions"}, [] { PointList(std::vector<std::vector<Index>>{}); });
  expect_error(ErrorKind::shape, {"1 coordinates", "2 in another"}, [] {
    PointList(std::vector<std::vector<Index>>{{1}, {1, 2}});
  });
  expect_error(ErrorKind::argument, {"no point 1", "list of 1"}, [] { PointList(1, std::vector<Index>{4})[1]; });
  expect_error(ErrorKind::overflow, {"9223372036854775807"}, [] { PointList(1, std::vector<Index>{INT64_MAX}); });
}

TEST(Axes, permute_as_transposes_do) {
  const Axes turn{2, 0, 1};
  EXPECT_EQ(permuted(Region({0, 10, 20}, {1, 12, 23}), turn), Region({20, 0, 10}, {23, 1, 12}));
  EXPECT_EQ(permuted(std::vector<Index>{5, 6, 7}, turn), (std::vector<Index>{7, 5, 6}));
  EXPECT_EQ(inverse(turn), (Axes{1, 2, 0}));
  EXPECT_EQ(then(turn, inverse(turn)), (Axes{0, 1, 2}));
  EXPECT_EQ(permuted(permuted(std::vector<Index>{5, 6, 7}, turn), {1, 0, 2}),
            permuted(std::vector<Index>{5, 6, 7}, then(turn, {1, 0, 2})));
  EXPECT_EQ(then(turn, {}), turn);
  EXPECT_EQ(then({}, turn), turn);
  EXPECT_EQ(permuted(Region({3}, {4}), {}), Region({3}, {4}));
  check_axes({}, 3);
  check_axes(turn, 3);
  expect_error(ErrorKind::argument, {"entry 2 is 3, outside [0, 3)"}, [] { check_axes({0, 1, 3}, 3); });
  expect_error(ErrorKind::argument, {"entry 1 is 0, given twice"}, [] { check_axes({0, 0}, 2); });
  expect_error(ErrorKind::argument, {"2 entries", "3 dimensions"}, [] { check_axes({0, 1}, 3); });
}

}  // namespace
}  // namespace longshore

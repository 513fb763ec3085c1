#include "longshore/regions/region.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "longshore/regions/region_index.hpp"
#include "support/expect_error.hpp"

namespace longshore {
namespace {

using test::expect_error;

constexpr Index least = std::numeric_limits<Index>::min(), most = std::numeric_limits<Index>::max();

TEST(Point, counts_in_any_number_of_dimensions) {
  for (const std::size_t dims : {0, 1, 3, 4, 5, 9}) {
    Point a(dims, 2), b = a;
    EXPECT_EQ(a, b);
    EXPECT_EQ((a + b)[dims ? dims - 1 : 0], dims ? 4 : 0);
    EXPECT_EQ(a - b, Point(dims));
    const Point moved = std::move(b);
    EXPECT_EQ(moved, a);
    b = moved;
    EXPECT_EQ(b, a);
    a = std::as_const(a);
    EXPECT_EQ(-a + b, Point(dims));
  }
  EXPECT_EQ(Point({1, -2, 3}).to_string(), "(1, -2, 3)");
  EXPECT_EQ(Point({7}).to_string(), "(7,)");
  EXPECT_TRUE(Point({1, 2}) < Point({1, 3}));
  EXPECT_NE(Point({1, 2}), Point({1, 2, 0}));
  expect_error(ErrorKind::shape, {"points of 2 and of 1 dimensions"}, [] { Point({1, 2}) + Point({1}); });
  expect_error(ErrorKind::overflow, {"64 bits"}, [] { Point({most}) + Point({1}); });
}

TEST(Region, empty_ones_are_ordinary) {
  const Region none({3, 4}, {1, 9}), other({0, 0}, {0, 5}), some({0, 0}, {4, 4});
  EXPECT_TRUE(none.empty() && other.empty());
  EXPECT_EQ(none, other);
  EXPECT_EQ(none.size(), 0);
  EXPECT_EQ(other.shape(), Point({0, 5}));
  EXPECT_EQ(none.grow(5), other);
  EXPECT_EQ(none.shift({1, 1}), other);
  EXPECT_EQ(none & some, other);
  EXPECT_EQ(none.refine(2).coarsen(3), other);
  EXPECT_EQ(none.side({1, 0}, {2, 2}), other);
  EXPECT_TRUE(some.contains(none));
  EXPECT_FALSE(none.contains(some) || none.overlaps(some) || some.overlaps(none));
  EXPECT_EQ(bounding_region(std::vector{none, some, other}, 2), some);
  EXPECT_TRUE(subtract(none, some).empty());
  EXPECT_EQ(subtract(some, none), std::vector{some});
  EXPECT_EQ(some.grow({-3, 0}, {-3, 0}), none);
  // 2^126 points in two dimensions, none in the third.
  EXPECT_EQ(Region({0, 0, 7}, {most, most, 7}).size(), 0);
}

TEST(Region, of_no_dimensions_is_a_point) {
  const Region point(Point{}, Point{});
  EXPECT_EQ(point.size(), 1);
  EXPECT_FALSE(point.empty());
  EXPECT_EQ(point & point, point);
  EXPECT_EQ(point.point_at(0, Order::C), Point{});
  EXPECT_TRUE(subtract(point, point).empty());
  EXPECT_EQ(RegionIndex(std::vector{point, point}).find(point), (std::vector<Index>{0, 1}));
  EXPECT_EQ(bounding_region({}, 0), point);
}

TEST(Region, meshes_of_other_width) {
  const Region fine({-5, 0}, {7, 3});
  EXPECT_EQ(fine.coarsen(4), Region({-2, 0}, {2, 1}));
  EXPECT_EQ(Region({-2, 0}, {2, 1}).refine(4), Region({-8, 0}, {8, 4}));
  EXPECT_EQ(fine.coarsen({1, 3}), Region({-5, 0}, {7, 1}));
  expect_error(ErrorKind::argument, {"(2, 0)", "dimension 1"}, [&] { fine.coarsen({2, 0}); });
  expect_error(ErrorKind::argument, {"-1", "dimension 0"}, [&] { fine.refine(-1); });
}

TEST(Region, sides) {
  const Region box({0, 0}, {4, 6});
  EXPECT_EQ(box.side({1, 0}, {2, 1}), Region({4, 0}, {6, 6}));
  EXPECT_EQ(box.side({-1, 1}, {2, 1}), Region({-2, 6}, {0, 7}));
  EXPECT_EQ(box.side({1, 0}, {-2, -1}), Region({2, 0}, {4, 6}));
  EXPECT_EQ(box.side({-1, -1}, {-2, -1}), Region({0, 0}, {2, 1}));
  EXPECT_EQ(box.side({0, 0}, {2, 1}), box);
  EXPECT_EQ(box.side({1, 0}, {-9, 0}), box);  // no further than the other side
  EXPECT_EQ(directions(3, 1, 1).size(), 6u);
  EXPECT_EQ(directions(3, 2, 2).size(), 12u);
  EXPECT_EQ(directions(3, 3, 3).size(), 8u);
  EXPECT_EQ(directions(2, 1, 2).size(), 8u);
  EXPECT_EQ(directions(2, 1, 1), (std::vector<Point>{{-1, 0}, {0, -1}, {0, 1}, {1, 0}}));
  expect_error(ErrorKind::argument, {"(2, 0)"}, [&] { box.side({2, 0}, {1, 1}); });
  expect_error(ErrorKind::argument, {"13 dimensions"}, [] { directions(13, 1, 1); });
}

TEST(Region, visits_points_in_order) {
  const Region box({1, -1}, {3, 2});
  EXPECT_EQ(box.point_at(1, Order::C), Point({1, 0}));
  EXPECT_EQ(box.point_at(1, Order::F), Point({2, -1}));
  EXPECT_EQ(box.offset_of({2, 1}, Order::C), 5);
  expect_error(ErrorKind::argument, {"(3, 0)", "[1:3, -1:2]"}, [&] { box.offset_of({3, 0}, Order::C); });
  expect_error(ErrorKind::argument, {"offset 6", "6 points"}, [&] { box.point_at(6, Order::C); });
}

TEST(Region, wraps_around) {
  const Region domain({0, 0}, {10, 4}), last({8, 0}, {10, 4}), halo = Region({0, 0}, {2, 4}).grow(1);
  EXPECT_EQ(periodic_shifts(last, halo, domain, {true, false}), (std::vector<Point>{{-10, 0}}));
  EXPECT_TRUE(periodic_shifts(last, halo, domain, {}).empty());
  EXPECT_TRUE(periodic_shifts(last, halo, domain, {false, true}).empty());
  EXPECT_EQ(periodic_shifts(last, halo, domain, {true, true}), (std::vector<Point>{{-10, -4}, {-10, 0}, {-10, 4}}));
  // A halo wider than the domain meets it several times.
  EXPECT_EQ(periodic_shifts(Region({0}, {3}), Region({-7}, {10}), Region({0}, {3}), {true}).size(), 7u);
  expect_error(ErrorKind::argument, {"dimension 0", "no points"},
               [] { periodic_shifts(Region({0}, {3}), Region({0}, {3}), Region({2}, {2}), {true}); });
}

TEST(Region, far_out) {
  const Region all({least, least}, {most, most});
  EXPECT_TRUE(all.contains(Point({0, least})));
  EXPECT_EQ(all & Region({5, 5}, {6, 7}), Region({5, 5}, {6, 7}));
  EXPECT_EQ(Region({least}, {least + 1}).coarsen(most), Region({-2}, {-1}));
  EXPECT_EQ(RegionIndex(std::vector{all, Region({0, 0}, {1, 1})}).find(Region({0, 0}, {2, 2})),
            (std::vector<Index>{0, 1}));
  expect_error(ErrorKind::overflow, {"64 bits"}, [&] { all.grow(1); });
  expect_error(ErrorKind::overflow, {"64 bits"}, [&] { all.shape(); });
  expect_error(ErrorKind::overflow, {"64 bits"}, [&] { all.size(); });
  expect_error(ErrorKind::overflow, {"64 bits"}, [&] { all.refine(2); });
  const Index huge = Index{1} << 62;
  EXPECT_EQ(Region({0, 0}, {huge, 1}).point_at(huge - 1, Order::F), Point({huge - 1, 0}));
}

TEST(Region, dimensions_must_agree) {
  const Region line({0}, {4}), box({0, 0}, {4, 4});
  for (const auto& wrong : std::vector<std::function<void()>>{
           [&] { line& box; }, [&] { line.contains(box); }, [&] { line.overlaps(box); },
           [&] {
             line.contains(Point({0, 0}));
           },
           [&] {
             line.grow({1, 1});
           },
           [&] {
             line.shift({1, 1});
           },
           [&] {
             line.coarsen({2, 2});
           },
           [&] {
             line.side({1, 0}, {1, 1});
           },
           [&] { subtract(line, box); },
           [&] {
             unite(std::vector{line, box});
           },
           [&] { RegionIndex(std::vector{box}).find(line); }, [&] { bounding_region(std::vector{line}, 2); },
           [&] {
             Region({0}, {1, 2});
           },
           [&] { periodic_shifts(line, line, box, {}); },
           [&] {
             periodic_shifts(line, line, line, {true, true});
           }})
    expect_error(ErrorKind::shape, {"dimensions do not go together"}, wrong);
  EXPECT_FALSE(line == box);
  expect_error(ErrorKind::shape, {"extent -1", "dimension 1"}, [] { Region::of_shape({3, -1}); });
  EXPECT_EQ(box.to_string(), "[0:4, 0:4]");
}

}  // namespace
}  // namespace longshore

// The calculus of regions and their index, against sets of points.
#include "support/generators.hpp"

#include <set>

#include "longshore/regions/region_index.hpp"

namespace longshore::test {
namespace {

using Points = std::set<std::vector<Index>>;

Points points_of(const Region& region) {
  Points points;
  for (Index k = 0; k < region.size(); ++k) points.insert(region.point_at(k, Order::F).to_vector());
  return points;
}

Points points_of(const std::vector<Region>& regions) {
  Points points;
  for (const auto& region : regions) points.merge(points_of(region));
  return points;
}

/// Each counted as often as it occurs.
Index points_in(const std::vector<Region>& regions) {
  Index n = 0;
  for (const auto& region : regions) n += region.size();
  return n;
}

Point draw_point(std::size_t dims, Index low, Index high) {
  Point point(dims);
  for (auto& x : point) x = draw(low, high);
  return point;
}

/// Small, often empty, often touching.
Region draw_region(std::size_t dims, Index reach = 6) {
  const Point lower = draw_point(dims, -reach, reach);
  return Region(lower, lower + draw_point(dims, chance(10) ? -1 : chance(10) ? 0 : 1, 5));
}

std::vector<Region> draw_regions(std::size_t dims, Index most, Index reach = 6) {
  std::vector<Region> regions;
  for (Index n = draw(0, most); n > 0; --n) regions.push_back(draw_region(dims, reach));
  return regions;
}

std::size_t draw_dims() { return std::size_t(draw(1, 3)); }

/// Every point within reach that fulfils a condition.
template <class F>
Points points_where(std::size_t dims, F&& f) {
  Points points;
  const Region near = Region(Point(dims, -28), Point(dims, 48));
  for (Index k = 0; k < near.size(); ++k)
    if (const Point p = near.point_at(k, Order::C); f(p)) points.insert(p.to_vector());
  return points;
}

RC_GTEST_PROP(Region, is_what_its_points_are, ()) {
  const auto dims = std::size_t(draw(1, 2));
  const Region a = draw_region(dims), b = draw_region(dims);
  const Point by = draw_point(dims, -4, 4), ratio = draw_point(dims, 1, 4);
  RC_LOG() << a.to_string() << ' ' << b.to_string() << ' ' << by.to_string() << ' ' << ratio.to_string() << '\n';
  RC_ASSERT(Index(points_of(a).size()) == a.size());
  RC_ASSERT(points_of(a & b) == points_where(dims, [&](const Point& p) { return a.contains(p) && b.contains(p); }));
  RC_ASSERT(a.overlaps(b) == !(a & b).empty());
  RC_ASSERT((a == b) == (points_of(a) == points_of(b)));
  RC_ASSERT(a.contains(b) == ((a & b) == b));
  RC_ASSERT(points_of(a.shift(by)) == points_where(dims, [&](const Point& p) { return a.contains(p - by); }));
  auto coarse = [&](Point p) {
    for (std::size_t d = 0; d < dims; ++d) p[d] = Index(floor_div(p[d], ratio[d]));
    return p;
  };
  RC_ASSERT(points_of(a.refine(ratio)) == points_where(dims, [&](const Point& p) { return a.contains(coarse(p)); }));
  Points covered;
  for (const auto& p : points_of(a)) covered.insert(coarse(p).to_vector());
  RC_ASSERT(points_of(a.coarsen(ratio)) == covered);
  RC_ASSERT(a.refine(ratio).coarsen(ratio) == a);
  const Point below = draw_point(dims, -3, 3), above = draw_point(dims, -3, 3);
  const Region grown = a.grow(below, above);
  if (!grown.empty()) RC_ASSERT(grown.grow(-below, -above) == a);
  for (const Order order : {Order::C, Order::F})
    for (Index k = 0; k < a.size(); ++k) RC_ASSERT(a.offset_of(a.point_at(k, order), order) == k);
}

RC_GTEST_PROP(Region, sides_are_the_halo, ()) {
  const auto dims = draw_dims();
  const Region a = draw_region(dims);
  const Point widths = draw_point(dims, 0, 3);
  std::vector<Region> around;
  for (const auto& direction : directions(dims, 1, dims)) around.push_back(a.side(direction, widths));
  RC_ASSERT(points_in(around) == a.grow(widths).size() - a.size());
  RC_ASSERT(points_of(around) == points_of(subtract(a.grow(widths), a)));
}

RC_GTEST_PROP(Region, lists_are_sets, ()) {
  const auto dims = draw_dims();
  const auto a = draw_regions(dims, 8), b = draw_regions(dims, 8);
  const auto rest = subtract(a, b), all = unite(a);
  Points expected = points_of(a);
  RC_ASSERT(points_of(all) == expected);
  RC_ASSERT(points_in(all) == Index(expected.size()));  // disjoint
  for (const auto& p : points_of(b)) expected.erase(p);
  RC_ASSERT(points_of(rest) == expected);
  RC_ASSERT(points_in(subtract(all, b)) == Index(expected.size()));
  const Region hull = bounding_region(a, dims);
  for (const auto& region : a) RC_ASSERT(hull.contains(region));
  for (const auto& region : rest) RC_ASSERT(!region.empty());
}

RC_GTEST_PROP(Region, periodic_images_are_all_that_meet, ()) {
  const auto dims = std::size_t(draw(1, 2));
  const Region domain = draw_region(dims), moving = draw_region(dims), target = draw_region(dims).grow(draw(0, 5));
  RC_PRE(!domain.empty());
  std::vector<bool> periodic;
  for (std::size_t d = 0; d < dims; ++d) periodic.push_back(chance(60));
  std::vector<Point> expected;
  const Region multiples(Point(dims, -40), Point(dims, 41));
  for (Index k = 0; k < multiples.size(); ++k) {
    Point shift = multiples.point_at(k, Order::C);
    bool allowed = true;
    for (std::size_t d = 0; d < dims; ++d) allowed &= periodic[d] || shift[d] == 0, shift[d] *= domain.extent(d);
    if (allowed && moving.shift(shift).overlaps(target)) expected.push_back(shift);
  }
  RC_ASSERT(periodic_shifts(moving, target, domain, periodic) == expected);
}

RC_GTEST_PROP(RegionIndex, finds_what_meets, ()) {
  const auto dims = std::size_t(draw(1, 5));
  const auto regions = draw_regions(dims, chance(20) ? 600 : 40, 12);
  const RegionIndex index(regions);
  for (int k = 0; k < 5; ++k) {
    const Region asked = draw_region(dims, 12).grow(draw(0, 4));
    std::vector<Index> expected;
    for (std::size_t r = 0; r < regions.size(); ++r)
      if (regions[r].overlaps(asked)) expected.push_back(Index(r));
    RC_ASSERT(index.find(asked) == expected);
  }
}

}  // namespace
}  // namespace longshore::test

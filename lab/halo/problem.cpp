#include "problem.hpp"

#include <cmath>
#include <limits>
#include <utility>

namespace longshore::bench {

namespace {

/// i brought back into [0, n).
Index wrapped(Index i, Index n) { return ((i % n) + n) % n; }

}  // namespace

void HaloProblem::check() const {
  const auto refuse = [](const std::string& words) { throw Error(ErrorKind::argument, words); };
  if (ranks < 1 || boxes < 1 || width < 1) refuse("ranks, boxes and widths are at least 1");
  if (split < 0 || split > 2) refuse("ranks lie along dimension 0, 1 or 2, not " + std::to_string(split));
  if (cells % boxes != 0) refuse(std::to_string(boxes) + " boxes do not divide " + std::to_string(cells) + " cells");
  if (cells / boxes < width)
    refuse("boxes of " + std::to_string(cells / boxes) + " cells are narrower than their ghost cells");
  // So large that every cell's value is exact, and still a different one after tens of thousands of fills.
  if (checked_mul(ranks, cells) > Index{1} << 11) refuse("more than 2048 cells along a dimension");
}

Region HaloProblem::domain() const { return {Point(3), box(lattice() - Point(3, 1)).upper()}; }

Point HaloProblem::lattice() const {
  Point many(3, boxes);
  many[std::size_t(split)] = checked_mul(boxes, ranks);
  return many;
}

Region HaloProblem::box(const Point& at) const {
  const Index extent = cells / boxes;
  Point lower(3), upper(3);
  for (std::size_t d = 0; d < 3; ++d) lower[d] = at[d] * extent, upper[d] = lower[d] + extent;
  return {lower, upper};
}

Point HaloProblem::place(Index k) const {
  Point at{k / (boxes * boxes) % boxes, k / boxes % boxes, k % boxes};
  at[std::size_t(split)] += k / rank_boxes() * boxes;
  return at;
}

Index HaloProblem::number(const Point& at) const {
  Point in_rank = at;
  in_rank[std::size_t(split)] %= boxes;
  return at[std::size_t(split)] / boxes * rank_boxes() + (in_rank[0] * boxes + in_rank[1]) * boxes + in_rank[2];
}

FloorPlan HaloProblem::blocks() const {
  std::vector<Region> regions;
  Map owners;
  for (Index k = 0; k < ranks * rank_boxes(); ++k) regions.push_back(box(place(k))), owners.push_back(k / rank_boxes());
  return FloorPlan(regions, std::move(owners));
}

Boxes::Boxes(const HaloProblem& problem, Index rank, XArray array)
    : problem_(problem), rank_(rank), array_(std::move(array)), domain_(problem.domain()) {
  if (array_.blocks() != problem.blocks() || !(array_.format() == problem.format()) || array_.rank() != rank)
    throw Error(ErrorKind::argument, "the array is not made for rank " + std::to_string(rank) + " of this problem");
}

double Boxes::value(Index x, Index y, Index z) const {
  return double((((fills_ << 11 | z) << 11 | y) << 11) + x);  // whoever misses a fill has a wrong value everywhere
}

/// f(row, box, y, z, beyond): `row` is where the cell of x = 0 would be,
/// `beyond` in how many of the two dimensions the row lies outside its box.
template <class F>
void Boxes::for_each_row(F&& f) const {
  for (const Index k : array_.owned()) {
    const Region box = array_.blocks().region(k);
    const auto beyond = [&](std::size_t d, Index i) { return i < box.lower()[d] || i >= box.upper()[d]; };
    const View<double, 3> cells = view(k);
    for (Index z = cells.lower(2); z < cells.upper(2); ++z)
      for (Index y = cells.lower(1); y < cells.upper(1); ++y)
        f(&cells(0, y, z), box, y, z, int(beyond(1, y)) + int(beyond(2, z)));
  }
}

void Boxes::fill() {
  ++fills_;
  for_each_row([&](double* row, const Region& box, Index y, Index z, int beyond) {
    if (beyond > 0) return;
    const double first = value(0, y, z);
    for (int x = int(box.lower()[0]); x < int(box.upper()[0]); ++x) row[x] = first + x;
  });
}

void Boxes::spoil() {
  const auto nothing = std::numeric_limits<double>::quiet_NaN();
  for_each_row([&](double* row, const Region& box, Index, Index, int beyond) {
    const Index lower = box.lower()[0], upper = box.upper()[0];
    for (Index x = lower - problem_.width; x < upper + problem_.width; ++x)
      if (beyond > 0 || x < lower || x >= upper) row[x] = nothing;
  });
}

std::string Boxes::check() const {
  std::string wrong;
  const Point extents = domain_.shape();
  for_each_row([&](const double* row, const Region& box, Index y, Index z, int beyond) {
    const Index lower = box.lower()[0], upper = box.upper()[0], width = problem_.width;
    const double first = value(0, wrapped(y, extents[1]), wrapped(z, extents[2]));
    for (Index x = lower - width; x < upper + width && wrong.empty(); ++x) {
      if (!problem_.corners && beyond + int(x < lower || x >= upper) > 1) continue;
      const double expected = first + double(wrapped(x, extents[0]));
      if (row[x] != expected)
        wrong = "rank " + std::to_string(rank_) + ", box " + box.to_string() + ", cell " + Point{x, y, z}.to_string() +
                ": " + std::to_string(row[x]) + " where " + std::to_string(expected) + " belongs";
    }
  });
  return wrong;
}

Index Boxes::ghost_bytes() const {
  const Index extent = problem_.cells / problem_.boxes, grown = extent + 2 * problem_.width;
  const Index ghosts =
      problem_.corners ? grown * grown * grown - extent * extent * extent : 6 * extent * extent * problem_.width;
  return problem_.rank_boxes() * ghosts * Index(sizeof(double));
}

}  // namespace longshore::bench

#include "longshore/regions/region.hpp"

#include <limits>

#include "longshore/regions/region_index.hpp"

namespace longshore {

namespace {

void check_ratio(const Point& ratio) {
  for (std::size_t d = 0; d < ratio.dims(); ++d)
    if (ratio[d] < 1)
      throw Error(ErrorKind::argument,
                  "ratio " + ratio.to_string() + " is not positive in dimension " + std::to_string(d));
}

}  // namespace

Region::Region(Point lower, Point upper) : lower_(std::move(lower)), upper_(std::move(upper)) {
  check_same_dims(lower_.dims(), upper_.dims(), "the two ends of a region");
  for (std::size_t d = 0; d < dims(); ++d) upper_[d] = std::max(lower_[d], upper_[d]);
}

Region Region::of_shape(const Point& shape) {
  for (std::size_t d = 0; d < shape.dims(); ++d)
    if (shape[d] < 0)
      throw Error(ErrorKind::shape,
                  "extent " + std::to_string(shape[d]) + " of dimension " + std::to_string(d) + " is negative");
  return Region(Point(shape.dims()), shape);
}

Point Region::shape() const { return upper_ - lower_; }

Index Region::size() const {
  if (empty()) return 0;  // however far the others reach
  Index n = 1;
  for (std::size_t d = 0; d < dims(); ++d) n = checked_mul(n, extent(d));
  return n;
}

bool Region::contains(const Point& point) const {
  check_same_dims(dims(), point.dims(), "a region and a point");
  for (std::size_t d = 0; d < dims(); ++d)
    if (point[d] < lower_[d] || point[d] >= upper_[d]) return false;
  return true;
}

bool Region::contains(const Region& other) const {
  check_same_dims(dims(), other.dims(), "regions");
  if (other.empty()) return true;
  for (std::size_t d = 0; d < dims(); ++d)
    if (other.lower_[d] < lower_[d] || other.upper_[d] > upper_[d]) return false;
  return true;
}

bool Region::overlaps(const Region& other) const {
  check_same_dims(dims(), other.dims(), "regions");
  for (std::size_t d = 0; d < dims(); ++d)
    if (std::max(lower_[d], other.lower_[d]) >= std::min(upper_[d], other.upper_[d])) return false;
  return true;
}

bool Region::operator==(const Region& other) const {
  if (dims() != other.dims()) return false;
  return (empty() && other.empty()) || (lower_ == other.lower_ && upper_ == other.upper_);
}

Region operator&(const Region& a, const Region& b) {
  check_same_dims(a.dims(), b.dims(), "regions");
  Region both = a;
  for (std::size_t d = 0; d < a.dims(); ++d) {
    both.lower_[d] = std::max(a.lower_[d], b.lower_[d]);
    both.upper_[d] = std::max(both.lower_[d], std::min(a.upper_[d], b.upper_[d]));
  }
  return both;
}

Region Region::shift(const Point& by) const { return empty() ? *this : Region(lower_ + by, upper_ + by); }

Region Region::grow(const Point& below, const Point& above) const {
  check_same_dims(dims(), below.dims(), "a region and widths");
  check_same_dims(dims(), above.dims(), "a region and widths");
  return empty() ? *this : Region(lower_ - below, upper_ + above);
}

Region Region::coarsen(const Point& ratio) const {
  check_same_dims(dims(), ratio.dims(), "a region and a ratio");
  check_ratio(ratio);
  if (empty()) return *this;
  Region coarse = *this;
  for (std::size_t d = 0; d < dims(); ++d) {
    coarse.lower_[d] = Index(floor_div(lower_[d], ratio[d]));
    coarse.upper_[d] = Index(floor_div(Wide(upper_[d]) - 1, ratio[d]) + 1);
  }
  return coarse;
}

Region Region::refine(const Point& ratio) const {
  check_same_dims(dims(), ratio.dims(), "a region and a ratio");
  check_ratio(ratio);
  if (empty()) return *this;
  Region fine = *this;
  for (std::size_t d = 0; d < dims(); ++d) {
    fine.lower_[d] = checked_mul(lower_[d], ratio[d]);
    fine.upper_[d] = checked_mul(upper_[d], ratio[d]);
  }
  return fine;
}

Region Region::side(const Point& direction, const Point& widths) const {
  check_same_dims(dims(), direction.dims(), "a region and a direction");
  check_same_dims(dims(), widths.dims(), "a region and widths");
  if (empty()) return *this;
  Point lower = lower_, upper = upper_;
  for (std::size_t d = 0; d < dims(); ++d) {
    if (direction[d] < -1 || direction[d] > 1)
      throw Error(ErrorKind::argument,
                  "direction " + direction.to_string() + " has other coordinates than -1, 0 and 1");
    if (direction[d] == 0) continue;
    const bool above = direction[d] > 0, outside = widths[d] >= 0;
    // Inside, no further than the other side.
    const Index width = outside ? widths[d] : std::max(widths[d], -extent(d));
    const Index border = above ? upper_[d] : lower_[d];
    const Index away = above ? checked_add(border, width) : checked_sub(border, width);
    lower[d] = std::min(border, away), upper[d] = std::max(border, away);
  }
  return Region(std::move(lower), std::move(upper));
}

Index Region::offset_of(const Point& point, Order order) const {
  if (!contains(point))
    throw Error(ErrorKind::argument, "point " + point.to_string() + " is not in the region " + to_string());
  Index offset = 0;
  for (std::size_t k = 0; k < dims(); ++k) {
    const std::size_t d = order == Order::C ? k : dims() - 1 - k;
    offset = checked_add(checked_mul(offset, extent(d)), point[d] - lower_[d]);
  }
  return offset;
}

Point Region::point_at(Index offset, Order order) const {
  if (offset < 0 || offset >= size())
    throw Error(ErrorKind::argument, "offset " + std::to_string(offset) + " is not within the " +
                                         std::to_string(size()) + " points of the region " + to_string());
  Point point = lower_;
  for (std::size_t k = 0; k < dims(); ++k) {
    const std::size_t d = order == Order::C ? dims() - 1 - k : k;
    point[d] += offset % extent(d);
    offset /= extent(d);
  }
  return point;
}

std::string Region::to_string() const {
  std::string text = "[";
  for (std::size_t d = 0; d < dims(); ++d)
    text += (d ? ", " : "") + std::to_string(lower_[d]) + ":" + std::to_string(upper_[d]);
  return text + "]";
}

std::vector<Point> directions(std::size_t dims, std::size_t least, std::size_t most) {
  constexpr std::size_t most_dims = 12;  // of which there are 3^12
  if (dims > most_dims)
    throw Error(ErrorKind::argument, std::to_string(dims) + " dimensions have more directions than can be listed");
  std::vector<Point> found;
  const Region all = Region::of_shape(Point(dims, 3));
  for (Index k = 0; k < all.size(); ++k) {
    const Point direction = all.point_at(k, Order::C) - Point(dims, 1);
    const auto sides = std::size_t(dims - std::size_t(std::count(direction.begin(), direction.end(), 0)));
    if (sides >= least && sides <= most) found.push_back(direction);
  }
  return found;
}

Region bounding_region(std::span<const Region> regions, std::size_t dims) {
  Point lower(dims), upper(dims);
  bool any = false;
  for (const auto& region : regions) {
    check_same_dims(dims, region.dims(), "regions");
    if (region.empty()) continue;
    for (std::size_t d = 0; d < dims; ++d) {
      lower[d] = any ? std::min(lower[d], region.lower()[d]) : region.lower()[d];
      upper[d] = any ? std::max(upper[d], region.upper()[d]) : region.upper()[d];
    }
    any = true;
  }
  return Region(std::move(lower), std::move(upper));
}

std::vector<Point> periodic_shifts(const Region& moving, const Region& target, const Region& domain,
                                   const std::vector<bool>& periodic) {
  const std::size_t dims = domain.dims();
  check_same_dims(dims, moving.dims(), "a domain and a region");
  check_same_dims(dims, target.dims(), "a domain and a region");
  if (!periodic.empty()) check_same_dims(dims, periodic.size(), "a domain and its periodic dimensions");
  if (moving.empty() || target.empty()) return {};
  // In each dimension k periods from first to last: moving.lower
  // + k n < target.upper, moving.upper + k n > target.lower.
  Point first(dims), last(dims), period(dims);
  for (std::size_t d = 0; d < dims; ++d) {
    if (periodic.empty() || !periodic[d]) {
      if (moving.lower()[d] >= target.upper()[d] || moving.upper()[d] <= target.lower()[d]) return {};
      last[d] = 1;
      continue;
    }
    const Wide n = period[d] = domain.extent(d);
    if (n == 0) throw Error(ErrorKind::argument, "dimension " + std::to_string(d) + " is periodic and has no points");
    first[d] = Index(floor_div(Wide(target.lower()[d]) - moving.upper()[d], n) + 1);
    last[d] = Index(-floor_div(-(Wide(target.upper()[d]) - moving.lower()[d]), n));
    if (first[d] >= last[d]) return {};
  }
  const Region multiples(first, last);
  std::vector<Point> shifts;
  for (Index k = 0; k < multiples.size(); ++k) {
    Point shift = multiples.point_at(k, Order::C);
    for (std::size_t d = 0; d < dims; ++d) shift[d] = checked_mul(shift[d], period[d]);
    shifts.push_back(std::move(shift));
  }
  return shifts;
}

namespace {

/// Slices off what is beyond `what`, a side at a time: first all of dimension 0, last what is left of the others.
void subtract_into(Region from, const Region& what, std::vector<Region>& out) {
  if (from.empty()) return;
  if (!from.overlaps(what)) {
    out.push_back(std::move(from));
    return;
  }
  for (std::size_t d = 0; d < from.dims(); ++d) {
    Point lower = from.lower(), upper = from.upper();
    if (from.lower()[d] < what.lower()[d]) {
      upper[d] = what.lower()[d];
      out.emplace_back(from.lower(), upper);
      lower[d] = what.lower()[d], upper = from.upper();
    }
    if (what.upper()[d] < from.upper()[d]) {
      Point above = lower;
      above[d] = what.upper()[d];
      out.emplace_back(std::move(above), from.upper());
      upper[d] = what.upper()[d];
    }
    from = Region(std::move(lower), std::move(upper));
  }
}

}  // namespace

std::vector<Region> subtract(const Region& from, const Region& what) {
  check_same_dims(from.dims(), what.dims(), "regions");
  std::vector<Region> rest;
  subtract_into(from, what, rest);
  return rest;
}

std::vector<Region> subtract(std::span<const Region> from, std::span<const Region> what) {
  const RegionIndex index(what);
  std::vector<Region> rest, pieces, next;
  std::vector<Index> meets;
  for (const auto& region : from) {
    pieces.clear();
    if (!region.empty()) pieces.push_back(region);
    index.find(region, meets);
    for (const Index k : meets) {
      next.clear();
      for (auto& piece : pieces) subtract_into(std::move(piece), what[std::size_t(k)], next);
      pieces.swap(next);
    }
    rest.insert(rest.end(), std::make_move_iterator(pieces.begin()), std::make_move_iterator(pieces.end()));
  }
  return rest;
}

std::vector<Region> unite(std::span<const Region> regions) {
  const RegionIndex index(regions);
  std::vector<Region> all, pieces, next;
  std::vector<Index> meets;
  for (std::size_t k = 0; k < regions.size(); ++k) {
    pieces.clear();
    if (!regions[k].empty()) pieces.push_back(regions[k]);
    index.find(regions[k], meets);
    for (const Index before : meets) {  // those before it have their points already
      if (std::size_t(before) >= k) break;
      next.clear();
      for (auto& piece : pieces) subtract_into(std::move(piece), regions[std::size_t(before)], next);
      pieces.swap(next);
    }
    all.insert(all.end(), std::make_move_iterator(pieces.begin()), std::make_move_iterator(pieces.end()));
  }
  return all;
}

}  // namespace longshore

/// `Region`: a box of Z^d and its calculus (the Data Mover, section 2).
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "longshore/regions/order.hpp"
#include "longshore/regions/point.hpp"

namespace longshore {

/// The points p with lower() <= p < upper() in every dimension. A value. Empty regions are ordinary: as sets they are
/// all equal, nothing grows out of them, and they are contained in everything. A region of no dimensions has one point.
///
/// Where two regions meet they must have as many dimensions, or `Error(shape)`
/// is thrown; coordinates that leave 64 bits are `Error(overflow)`.
class Region {
 public:
  Region() = default;
  /// [lower, upper). Where upper is below lower, the region is empty.
  Region(Point lower, Point upper);
  /// [0, shape). Throws `Error(shape)` where an extent is negative.
  static Region of_shape(const Point& shape);

  std::size_t dims() const { return lower_.dims(); }
  const Point& lower() const& { return lower_; }
  Point lower() && { return std::move(lower_); }
  const Point& upper() const& { return upper_; }
  Point upper() && { return std::move(upper_); }
  /// [lower, upper) in one dimension, in place: for those who make regions by the hundred thousand.
  void set(std::size_t d, Index lower, Index upper) { lower_[d] = lower, upper_[d] = std::max(lower, upper); }
  Index extent(std::size_t d) const { return checked_sub(upper_[d], lower_[d]); }
  Point shape() const;  ///< the extents
  Index size() const;   ///< points
  bool empty() const {
    for (std::size_t d = 0; d < dims(); ++d)
      if (upper_[d] == lower_[d]) return true;
    return false;
  }
  bool contains(const Point& point) const;
  bool contains(const Region& other) const;
  bool overlaps(const Region& other) const;    ///< whether they share a point
  bool operator==(const Region& other) const;  ///< as sets of points of as many dimensions

  Region shift(const Point& by) const;
  /// Further out by `width` on every side; inwards where it is negative, to nothing where less than that is there.
  Region grow(Index width) const { return grow(Point(dims(), width)); }
  Region grow(const Point& widths) const { return grow(widths, widths); }
  Region grow(const Point& below, const Point& above) const;
  /// The cells of a mesh `ratio` times as coarse that cover the region, and the fine cells that a coarse region is made
  /// of: r.refine(n).coarsen(n) == r. Ratios are positive.
  Region coarsen(const Point& ratio) const;
  Region coarsen(Index ratio) const { return coarsen(Point(dims(), ratio)); }
  Region refine(const Point& ratio) const;
  Region refine(Index ratio) const { return refine(Point(dims(), ratio)); }
  friend Region operator&(const Region& a, const Region& b);  ///< the points of both
  /// The points outside within `widths` (or, where negative, inside along the border) in one direction: -1, 0 or 1 in
  /// every dimension. (1, 0): what lies beyond the upper side of dimension 0. See `directions`.
  Region side(const Point& direction, const Point& widths) const;

  /// Where a point is among the region's points, visited in this
  /// order, and back. Throw `Error(argument)` for what is outside.
  Index offset_of(const Point& point, Order order = Order::C) const;
  Point point_at(Index offset, Order order = Order::C) const;

  std::string to_string() const;  ///< "[0:4, -1:3]"

 private:
  Point lower_, upper_;  ///< upper_ >= lower_ in every dimension
};

/// The directions of d dimensions with least to most coordinates other than 0, in lexicographic order: 1 to 1 are
/// faces, 2 to 2 (in three dimensions) edges, d to d corners, 1 to d the whole neighbourhood.
std::vector<Point> directions(std::size_t dims, std::size_t least, std::size_t most);

/// The smallest region that contains all of them; empty ones do not count. Of no regions, the empty one of `dims`
/// dimensions (of none, the one point that there is).
Region bounding_region(std::span<const Region> regions, std::size_t dims);

/// The multiples of the periodic extents of `domain` by which `moving` must be shifted to meet `target`: none but 0
/// where no dimension is periodic. `periodic` has an entry a dimension, or none. A halo may be wider than the domain.
std::vector<Point> periodic_shifts(const Region& moving, const Region& target, const Region& domain,
                                   const std::vector<bool>& periodic);

// Lists of regions, as sets of points. What they return is disjoint if what they are given is (`unite` always).

/// The points of `from` that are not in `what`, as at most 2 d regions, which do not overlap.
std::vector<Region> subtract(const Region& from, const Region& what);
std::vector<Region> subtract(std::span<const Region> from, std::span<const Region> what);
/// All points of the regions once, in regions that do not overlap. Pieces keep the order of those they come from.
std::vector<Region> unite(std::span<const Region> regions);

}  // namespace longshore

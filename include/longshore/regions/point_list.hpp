/// `PointList`: points of Z^d that no box describes, for irregular data.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "longshore/regions/region.hpp"
#include "longshore/sequences/packed_integers.hpp"

namespace longshore {

/// Points one after the other; one may come several times. A value: immutable, cheap to copy, comparable. Bit-packed, a
/// coordinate at a time: neighbours in the list that are near each other take few bits.
class PointList {
 public:
  PointList() = default;
  /// The coordinates of one point after the other. Throws `Error(shape)` where they are no whole number of points, and
  /// `Error(argument)` for points of no dimensions.
  PointList(std::size_t dims, std::span<const Index> coordinates);
  /// One list a dimension. Throws `Error(shape)` where they are not equally long.
  explicit PointList(std::span<const std::vector<Index>> coordinates);

  Index size() const { return data_ ? data_->coordinates[0].size() : 0; }
  bool empty() const { return size() == 0; }
  std::size_t dims() const { return data_ ? data_->coordinates.size() : 0; }
  /// Throws `Error(argument)` where there is no point k.
  Point operator[](Index k) const;
  /// One coordinate of all points.
  std::vector<Index> coordinates(std::size_t d) const;
  /// All of them, a list a dimension; the coordinates of one point after the other. What the constructors take.
  std::vector<std::vector<Index>> columns() const;
  std::vector<Index> rows() const;
  /// How far each point is from `origin`, a stride a step in every
  /// dimension. The caller knows that no sum leaves 64 bits.
  std::vector<Index> offsets(const Point& origin, std::span<const Index> strides) const;
  /// What contains them; empty where there are none.
  const Region& bounding() const& { return data_ ? data_->bounding : nothing(); }
  Region bounding() && { return data_ ? data_->bounding : nothing(); }
  Index workspace_bytes() const;
  bool operator==(const PointList& other) const;

 private:
  static const Region& nothing();
  struct Data {
    std::vector<PackedIntegers> coordinates;  ///< a dimension each
    Region bounding;
    bool operator==(const Data&) const = default;
  };
  std::shared_ptr<const Data> data_;  ///< null: no points
};

}  // namespace longshore

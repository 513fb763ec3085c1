/// Which of many regions meet a given one: a packed tree of bounding boxes.
#pragma once

#include <span>
#include <vector>

#include "longshore/regions/region.hpp"

namespace longshore {

/// Immutable. Regions are sorted along Morton's curve and boxed sixteen at a time, level by level: built in O(n log n)
/// whatever their sizes, asked in O(log n + answers) where they do not overlap much. Empty regions meet nothing.
class RegionIndex {
 public:
  RegionIndex() = default;
  /// All of as many dimensions, or `Error(shape)`.
  explicit RegionIndex(std::span<const Region> regions);
  /// The same from coordinates: region k is [bounds[2 k d] ...,
  /// bounds[(2 k + 1) d] ...), d lower ones, then d upper ones.
  RegionIndex(std::size_t dims, std::span<const Index> bounds);

  /// Places in the list of the regions that share a point with this one, ascending.
  std::vector<Index> find(const Region& region) const;
  /// The same into `found`, whose memory is used again. Returns how many boxes were looked at.
  std::size_t find(const Region& region, std::vector<Index>& found) const;
  Index workspace_bytes() const;

 private:
  void build(std::span<const Index> bounds);
  template <std::size_t Dims>
  std::size_t search(const Index* asked, std::vector<Index>& found) const;
  const Index* box(std::size_t level, std::size_t k) const { return &bounds_[(starts_[level] + k) * 2 * dims_]; }

  static constexpr std::size_t fanout = 16;
  std::size_t dims_ = 0;
  std::vector<Index> ids_;           ///< of the regions in the tree's order
  std::vector<Index> bounds_;        ///< lower and upper coordinates of every box, level by level, regions first
  std::vector<std::size_t> starts_;  ///< the first box of each level, and the end
};

}  // namespace longshore

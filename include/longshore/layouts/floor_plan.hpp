/// `FloorPlan`: an irregular collection of blocks, each with an owner (the Data Mover, section 2).
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "longshore/core/list.hpp"
#include "longshore/layouts/layout.hpp"
#include "longshore/layouts/owner_map.hpp"
#include "longshore/regions/axes.hpp"
#include "longshore/regions/region.hpp"
#include "longshore/regions/region_index.hpp"

namespace longshore {

/// So many cells more below and above a region in each dimension; of no dimensions: none.
struct GhostWidths {
  Point below, above;
  GhostWidths() = default;
  GhostWidths(Point both) : below(both), above(std::move(both)) {}
  GhostWidths(std::initializer_list<Index> both) : GhostWidths(Point(both)) {}
  GhostWidths(Point below, Point above) : below(std::move(below)), above(std::move(above)) {}
  std::string to_string() const;  ///< "(1, 2)", "(1, 2) below, (0, 2) above"
  bool operator==(const GhostWidths&) const = default;
};

/// Regions of Z^d, each with the rank that owns it. Many regions may have one owner; regions may overlap, and may be
/// empty. A value: immutable, cheap to copy, comparable; building one is not collective.
///
/// What look-ups need is worked out when it is first asked for and kept with the regions, for all copies: the ranks of
/// one process plan from one floor plan. Any thread may ask.
class FloorPlan {
 public:
  FloorPlan() : FloorPlan(std::span<const Region>{}, Map{}) {}
  /// Throws `Error(shape)` where there are not as many owners as regions or regions differ in dimensions, and
  /// `Error(argument)` where an owner is negative or not below 2^40; both name the region.
  FloorPlan(std::span<const Region> regions, const Map& owners);

  Index size() const { return Index(data_->owners.size()); }  ///< regions
  bool empty() const { return size() == 0; }
  std::size_t dims() const { return data_->dims; }  ///< 0 where there are no regions
  /// Throw `Error(argument)` where there is no region k.
  Region region(Index k) const;
  Index owner(Index k) const;
  Map owners() const { return data_->owners.to_map(); }
  /// Those who own something: in the regions' order where each owns one, else ascending.
  RankMap owning_ranks() const { return data_->owners.ranks(); }
  List<Region> regions() const;
  /// The lower, then the upper coordinates of every region, one region after the other.
  std::span<const Index> bounds() const& { return data_->bounds; }
  std::vector<Index> bounds() && { return data_->bounds; }
  /// The regions that a rank owns, ascending.
  std::vector<Index> owned_by(Index rank) const;
  Index world_size() const { return data_->world_size; }  ///< one more than the largest owner
  Region bounding() const;
  const RegionIndex& index() const&;  ///< which regions meet a given one
  RegionIndex index() && { return std::as_const(*this).index(); }
  /// Where the regions are all cells of a lattice, each once, its cuts along each dimension, ascending; none where they
  /// are not. Empty regions do not count.
  const std::vector<std::vector<Index>>& cuts() const&;
  std::vector<std::vector<Index>> cuts() && { return std::as_const(*this).cuts(); }
  Index points() const;  ///< of all regions, overlaps counted as often as they occur. Throws `Error(overflow)`

  /// The same regions, each grown by these ghost widths (negative ones trim).
  FloorPlan grow(const GhostWidths& widths) const;
  /// The same owners for a mesh that is coarser or finer.
  FloorPlan coarsen(const Point& ratio) const;
  FloorPlan refine(const Point& ratio) const;
  /// The same blocks with permuted dimensions. Throws `Error(argument)` for axes that are no permutation.
  FloorPlan transpose(const Axes& axes) const;
  FloorPlan with_owners(const Map& owners) const;
  /// The same regions with [first, last) in one dimension; empty ones stay
  /// empty. Throws `Error(argument)` where there is no such dimension.
  FloorPlan with_range(std::size_t dim, Index first, Index last) const;

  /// A 64-bit digest of everything, equal on all machines.
  std::uint64_t digest() const;
  Index workspace_bytes() const;  ///< what has been worked out by now counted, too
  /// "2 regions of 1 dimension: [0:4] on 0, [4:8] on 1", no more than `most` of them.
  std::string to_string(Index most = 8) const;
  bool operator==(const FloorPlan& other) const;

  /// A file's bytes: a header with a version, bit-packed lists, a checksum. The same on every machine.
  std::vector<std::byte> to_bytes() const;
  /// What `to_bytes` wrote, of 64 dimensions at most. Throws `Error(argument)` saying what is wrong; never trusts a
  /// number. Few bytes may stand for very many regions: bytes from strangers are given a bound.
  static FloorPlan from_bytes(std::span<const std::byte> bytes, Index most_regions = std::numeric_limits<Index>::max());

 private:
  struct LookUps;
  struct Data {
    std::size_t dims = 0;
    Index world_size = 0;
    std::vector<Index> bounds;
    OwnerMap owners;
    std::shared_ptr<const LookUps> look_ups;
  };
  explicit FloorPlan(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  static std::shared_ptr<const Data> made(std::span<const Region> regions, OwnerMap owners);
  /// The same owners for other regions.
  FloorPlan mapped(const std::function<Region(const Region&)>& f) const;
  std::shared_ptr<const Data> data_;
};

/// What each rank of a layout owns, as boxes in global indices, by ascending rank; replicas own their own. Throws
/// `Error(memory_limit)` where that takes more than `most` boxes, as CYCLIC dimensions may.
FloorPlan floor_plan_of(const Layout& layout, Index most = Index{1} << 24);

}  // namespace longshore

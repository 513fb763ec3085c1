#include "longshore/layouts/floor_plan.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <optional>

#include "core/digest.hpp"

namespace longshore {

namespace {

void check_place(Index k, Index size) {
  if (k < 0 || k >= size)
    throw Error(ErrorKind::argument,
                "there is no region " + std::to_string(k) + " in a floor plan of " + std::to_string(size));
}

/// What is worked out when it is first asked for, once, whichever threads ask.
template <class T>
class Lazy {
 public:
  template <class Make>
  const T& get(Make&& make) const {
    if (!peek())
      std::call_once(once_, [&] {
        value_.emplace(make());
        there_.store(true, std::memory_order_release);
      });
    return *value_;
  }
  /// Null where nobody has asked.
  const T* peek() const { return there_.load(std::memory_order_acquire) ? &*value_ : nullptr; }

 private:
  mutable std::once_flag once_;
  mutable std::optional<T> value_;
  mutable std::atomic<bool> there_ = false;
};

std::vector<std::vector<Index>> cuts_of(std::span<const Index> bounds, std::size_t dims) {
  std::vector<std::vector<Index>> cuts(dims);
  std::vector<const Index*> cells;
  for (auto region = bounds.begin(); region != bounds.end(); region += Index(2 * dims))
    if (std::equal(region, region + Index(dims), region + Index(dims), std::less<>())) cells.push_back(&*region);
  Wide places = 1;
  for (std::size_t d = 0; d < dims && places <= Wide(cells.size()); ++d) {
    for (const Index* cell : cells) cuts[d].push_back(cell[d]), cuts[d].push_back(cell[dims + d]);
    std::sort(cuts[d].begin(), cuts[d].end());
    cuts[d].erase(std::unique(cuts[d].begin(), cuts[d].end()), cuts[d].end());
    places *= Wide(cuts[d].size()) - 1;
  }
  if (cells.empty() || places != Wide(cells.size())) return {};
  std::vector<bool> taken(cells.size());
  for (const Index* cell : cells) {
    std::size_t place = 0;
    for (std::size_t d = 0; d < dims; ++d) {
      const auto cut = std::lower_bound(cuts[d].begin(), cuts[d].end(), cell[d]);
      if (cut[1] != cell[dims + d]) return {};
      place = place * (cuts[d].size() - 1) + std::size_t(cut - cuts[d].begin());
    }
    if (taken[place]) return {};
    taken[place] = true;
  }
  return cuts;
}

/// All things sorted by owner, those of one owner in their order.
std::vector<Index> sorted_by_owner(const OwnerMap& kept, Index world_size) {
  const Map owners = kept.to_map();
  std::vector<Index> order(owners.size());
  if (world_size > 2 * Index(owners.size())) {  // more ranks than a count for each is worth
    std::iota(order.begin(), order.end(), Index{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](Index a, Index b) { return owners[std::size_t(a)] < owners[std::size_t(b)]; });
    return order;
  }
  std::vector<Index> next(std::size_t(world_size) + 1);
  for (const Index owner : owners) ++next[std::size_t(owner) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (std::size_t k = 0; k < owners.size(); ++k) order[std::size_t(next[std::size_t(owners[k])]++)] = Index(k);
  return order;
}

}  // namespace

struct FloorPlan::LookUps {
  Lazy<RegionIndex> index;
  Lazy<std::vector<Index>> by_owner;
  Lazy<Region> bounding;
  Lazy<std::vector<std::vector<Index>>> cuts;
  Lazy<std::uint64_t> digest;
};

FloorPlan::FloorPlan(std::span<const Region> regions, const Map& owners)
    : data_(made(regions, OwnerMap(owners, "region"))) {}

std::shared_ptr<const FloorPlan::Data> FloorPlan::made(std::span<const Region> regions, OwnerMap owners) {
  if (Index(regions.size()) != owners.size())
    throw Error(ErrorKind::shape,
                std::to_string(owners.size()) + " owners for " + std::to_string(regions.size()) + " regions");
  auto data = std::make_shared<Data>();
  data->dims = regions.empty() ? 0 : regions.front().dims();
  data->bounds.reserve(regions.size() * 2 * data->dims);
  for (std::size_t k = 0; k < regions.size(); ++k) {
    if (regions[k].dims() != data->dims)
      throw Error(ErrorKind::shape, "region " + std::to_string(k) + " has " + std::to_string(regions[k].dims()) +
                                        " dimensions, those before it " + std::to_string(data->dims));
    data->bounds.insert(data->bounds.end(), regions[k].lower().begin(), regions[k].lower().end());
    data->bounds.insert(data->bounds.end(), regions[k].upper().begin(), regions[k].upper().end());
  }
  data->world_size = owners.ranks().world();
  data->owners = std::move(owners);
  data->look_ups = std::make_shared<const LookUps>();
  return data;
}

FloorPlan FloorPlan::mapped(const std::function<Region(const Region&)>& f) const {
  auto all = regions();
  for (auto& region : all) region = f(region);
  return FloorPlan(made(all, data_->owners));
}

Region FloorPlan::region(Index k) const {
  check_place(k, size());
  const auto all = std::span(data_->bounds).subspan(std::size_t(k) * 2 * dims(), 2 * dims());
  return Region(Point(all.first(dims())), Point(all.last(dims())));
}

Index FloorPlan::owner(Index k) const {
  check_place(k, size());
  return data_->owners[k];
}

List<Region> FloorPlan::regions() const {
  List<Region> regions;
  regions.reserve(std::size_t(size()));
  for (Index k = 0; k < size(); ++k) regions.push_back(region(k));
  return regions;
}

std::vector<Index> FloorPlan::owned_by(Index rank) const {
  const auto& owners = data_->owners;
  if (owners.one_each()) {
    const Index k = owners.ranks().rank(rank);
    return k == nobody ? std::vector<Index>() : std::vector{k};
  }
  const auto& all = data_->look_ups->by_owner.get([&] { return sorted_by_owner(owners, world_size()); });
  auto owner_of = [&owners](Index k) { return owners[k]; };
  const auto first = std::lower_bound(all.begin(), all.end(), rank, [&](Index k, Index r) { return owner_of(k) < r; });
  return {first, std::upper_bound(first, all.end(), rank, [&](Index r, Index k) { return r < owner_of(k); })};
}

Region FloorPlan::bounding() const {
  return data_->look_ups->bounding.get([&] { return bounding_region(regions(), dims()); });
}

const std::vector<std::vector<Index>>& FloorPlan::cuts() const& {
  return data_->look_ups->cuts.get([&] { return cuts_of(data_->bounds, dims()); });
}

const RegionIndex& FloorPlan::index() const& {
  return data_->look_ups->index.get(
      [&] { return dims() > 0 ? RegionIndex(dims(), bounds()) : RegionIndex(regions()); });
}

Index FloorPlan::points() const {
  Index n = 0;
  for (Index k = 0; k < size(); ++k) n = checked_add(n, region(k).size());
  return n;
}

std::string GhostWidths::to_string() const {
  return below == above ? below.to_string() : below.to_string() + " below, " + above.to_string() + " above";
}

FloorPlan FloorPlan::grow(const GhostWidths& widths) const {
  return mapped([&](const Region& region) { return region.grow(widths.below, widths.above); });
}

FloorPlan FloorPlan::coarsen(const Point& ratio) const {
  return mapped([&](const Region& region) { return region.coarsen(ratio); });
}

FloorPlan FloorPlan::refine(const Point& ratio) const {
  return mapped([&](const Region& region) { return region.refine(ratio); });
}

FloorPlan FloorPlan::transpose(const Axes& axes) const {
  check_axes(axes, empty() ? axes.size() : dims());
  return mapped([&](const Region& region) { return permuted(region, axes); });
}

FloorPlan FloorPlan::with_owners(const Map& owners) const { return {regions(), owners}; }

FloorPlan FloorPlan::with_range(std::size_t dim, Index first, Index last) const {
  if (!empty() && dim >= dims())
    throw Error(ErrorKind::argument,
                "there is no dimension " + std::to_string(dim) + "; the regions have " + std::to_string(dims()));
  return mapped([&](const Region& region) {
    if (region.empty()) return region;
    Point lower = region.lower(), upper = region.upper();
    lower[dim] = first, upper[dim] = last;
    return Region(std::move(lower), std::move(upper));
  });
}

std::uint64_t FloorPlan::digest() const {
  return data_->look_ups->digest.get([&] {
    Digest digest;
    digest.mix(data_->dims);
    digest.mix(std::size_t(data_->owners.size()));
    digest.mix(data_->bounds);
    digest.mix(data_->owners.to_map());
    return digest.value();
  });
}

Index FloorPlan::workspace_bytes() const {
  const auto& look_ups = *data_->look_ups;
  Index bytes =
      Index(sizeof(Data) + sizeof(LookUps) + data_->bounds.capacity() * sizeof(Index)) + data_->owners.bytes();
  if (const auto* index = look_ups.index.peek()) bytes += index->workspace_bytes();
  if (const auto* order = look_ups.by_owner.peek()) bytes += Index(order->capacity() * sizeof(Index));
  return bytes;
}

std::string FloorPlan::to_string(Index most) const {
  std::string text = std::to_string(size()) + (size() == 1 ? " region of " : " regions of ") + std::to_string(dims()) +
                     (dims() == 1 ? " dimension" : " dimensions");
  for (Index k = 0; k < std::min(size(), most); ++k)
    text += (k == 0 ? ": " : ", ") + region(k).to_string() + " on " + std::to_string(owner(k));
  return size() > most ? text + ", ..." : text;
}

bool FloorPlan::operator==(const FloorPlan& other) const {
  return data_ == other.data_ ||
         (dims() == other.dims() && data_->bounds == other.data_->bounds && data_->owners == other.data_->owners);
}

FloorPlan floor_plan_of(const Layout& layout, Index most) {
  std::vector<Index> ranks;
  for (Index p = 0; p < layout.processes(); ++p) ranks.push_back(layout.grid().world_rank(p));
  std::sort(ranks.begin(), ranks.end());
  const std::size_t dims = layout.rank_of_array();
  std::vector<Region> regions;
  Map owners;
  for (const Index rank : ranks) {
    const auto owned = layout.owned(rank);
    if (std::any_of(owned.begin(), owned.end(), [](const Runs& runs) { return runs.empty(); })) continue;
    // Every dimension's intervals; their product are the boxes.
    Point counts(dims);
    Wide boxes = 1;
    const Wide left = most - Index(regions.size());
    for (std::size_t d = 0; d < dims; ++d) {
      Wide count = 0;
      for (const auto& run : owned[d].runs()) count += run.count;
      boxes *= count;
      if (boxes > left)
        throw Error(ErrorKind::memory_limit, "what rank " + std::to_string(rank) + " owns of the layout " +
                                                 layout.to_string() + " is not in one piece; more than " +
                                                 std::to_string(most) + " boxes in all are not listed");
      counts[d] = Index(count);
    }
    std::vector<std::vector<Interval>> intervals(dims);
    for (std::size_t d = 0; d < dims; ++d)
      for (const auto& run : owned[d].runs())
        for (Index k = 0, first = run.first; k < run.count; ++k, first += run.step)
          intervals[d].push_back({first, first + run.length});
    const Region all = Region::of_shape(counts);
    for (Index k = 0; k < Index(boxes); ++k) {
      const Point at = all.point_at(k, Order::C);
      Point lower(dims), upper(dims);
      for (std::size_t d = 0; d < dims; ++d) {
        const auto& interval = intervals[d][std::size_t(at[d])];
        lower[d] = interval.first, upper[d] = interval.last;
      }
      regions.emplace_back(std::move(lower), std::move(upper));
      owners.push_back(rank);
    }
  }
  return {regions, owners};
}

}  // namespace longshore

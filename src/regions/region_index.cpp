#include "longshore/regions/region_index.hpp"

#include <cstdint>

#include "regions/curve.hpp"

namespace longshore {

namespace {

/// Whether two boxes that are not empty share a point. Dims: as many dimensions, or 0 where only `dims` says. Without
/// branches between the dimensions: which one decides is anybody's guess.
template <std::size_t Dims>
bool overlap(std::size_t dims, const Index* a, const Index* b) {
  if constexpr (Dims > 0) dims = Dims;
  bool meet = true;
  for (std::size_t d = 0; d < dims; ++d) meet &= (a[d] < b[dims + d]) & (b[d] < a[dims + d]);
  return meet;
}

bool is_empty(std::size_t dims, const Index* a) {
  for (std::size_t d = 0; d < dims; ++d)
    if (a[d] >= a[dims + d]) return true;
  return false;
}

std::vector<Index> flatten(std::span<const Region> regions) {
  std::vector<Index> bounds;
  if (!regions.empty()) bounds.reserve(regions.size() * 2 * regions.front().dims());
  for (const auto& region : regions) {
    check_same_dims(regions.front().dims(), region.dims(), "regions");
    bounds.insert(bounds.end(), region.lower().begin(), region.lower().end());
    bounds.insert(bounds.end(), region.upper().begin(), region.upper().end());
  }
  return bounds;
}

}  // namespace

RegionIndex::RegionIndex(std::span<const Region> regions) : dims_(regions.empty() ? 0 : regions.front().dims()) {
  if (dims_ > 0) {
    build(flatten(regions));
  } else {
    for (std::size_t k = 0; k < regions.size(); ++k) ids_.push_back(Index(k));  // points, all the same
  }
}

RegionIndex::RegionIndex(std::size_t dims, std::span<const Index> bounds) : dims_(dims) {
  if (dims == 0 || bounds.size() % (2 * dims) != 0)
    throw Error(ErrorKind::argument,
                std::to_string(bounds.size()) + " coordinates are no boxes of " + std::to_string(dims) + " dimensions");
  build(bounds);
}

void RegionIndex::build(std::span<const Index> bounds) {
  const std::size_t width = 2 * dims_, n = bounds.size() / width;
  std::vector<Index> lower, upper;  // around the lower corners
  for (std::size_t k = 0; k < n; ++k) {
    const Index* box = &bounds[k * width];
    if (is_empty(dims_, box)) continue;
    if (ids_.empty()) lower.assign(box, box + dims_), upper = lower;
    for (std::size_t d = 0; d < dims_; ++d)
      lower[d] = std::min(lower[d], box[d]), upper[d] = std::max(upper[d], box[d]);
    ids_.push_back(Index(k));
  }
  if (ids_.empty()) return;

  const CurveKeys curve(std::move(lower), upper);
  std::vector<std::pair<std::uint64_t, Index>> order;
  order.reserve(ids_.size());
  for (const Index k : ids_) order.emplace_back(curve.morton(&bounds[std::size_t(k) * width]), k);
  std::sort(order.begin(), order.end());

  starts_ = {0};
  bounds_.reserve((ids_.size() + ids_.size() / (fanout - 1) + 64) * width);  // all levels
  for (std::size_t k = 0; k < order.size(); ++k) {
    ids_[k] = order[k].second;
    const Index* box = &bounds[std::size_t(ids_[k]) * width];
    bounds_.insert(bounds_.end(), box, box + width);
  }
  for (std::size_t below = ids_.size();; below = (below + fanout - 1) / fanout) {
    const std::size_t first = starts_.back();
    starts_.push_back(first + below);
    if (below <= fanout) break;
    for (std::size_t k = 0; k < below; k += fanout) {
      std::vector<Index> around(&bounds_[(first + k) * width], &bounds_[(first + k) * width] + width);
      for (std::size_t j = k + 1; j < std::min(k + fanout, below); ++j) {
        const Index* box = &bounds_[(first + j) * width];
        for (std::size_t d = 0; d < dims_; ++d) {
          around[d] = std::min(around[d], box[d]);
          around[dims_ + d] = std::max(around[dims_ + d], box[dims_ + d]);
        }
      }
      bounds_.insert(bounds_.end(), around.begin(), around.end());
    }
  }
}

template <std::size_t Dims>
std::size_t RegionIndex::search(const Index* asked, std::vector<Index>& found) const {
  // Depth first; in the stack are boxes of whose children each may meet the region.
  struct Node {
    std::size_t level, k;
  };
  Node stack[16 * fanout];  // 16 levels of 16 are more than there is memory
  std::size_t open = 0, looked = 0;
  const std::size_t top = starts_.size() - 2;
  auto look = [&](std::size_t level, std::size_t first, std::size_t last) {
    looked += last - first;
    for (std::size_t k = first; k < last; ++k) {
      if (!overlap<Dims>(dims_, box(level, k), asked)) continue;
      if (level == 0)
        found.push_back(ids_[k]);
      else
        stack[open++] = {level - 1, k * fanout};
    }
  };
  look(top, 0, starts_[top + 1] - starts_[top]);
  while (open > 0) {
    const auto [level, k] = stack[--open];
    look(level, k, std::min(k + fanout, starts_[level + 1] - starts_[level]));
  }
  return looked;
}

std::vector<Index> RegionIndex::find(const Region& region) const {
  std::vector<Index> found;
  find(region, found);
  return found;
}

std::size_t RegionIndex::find(const Region& region, std::vector<Index>& found) const {
  found.clear();
  if (ids_.empty()) return 0;
  check_same_dims(dims_, region.dims(), "regions");
  if (region.empty()) return 0;
  if (dims_ == 0) {
    found = ids_;
    return ids_.size();
  }
  Point asked(2 * dims_);
  std::copy(region.lower().begin(), region.lower().end(), asked.begin());
  std::copy(region.upper().begin(), region.upper().end(), asked.begin() + dims_);

  const std::size_t looked = dims_ == 1   ? search<1>(asked.begin(), found)
                             : dims_ == 2 ? search<2>(asked.begin(), found)
                             : dims_ == 3 ? search<3>(asked.begin(), found)
                                          : search<0>(asked.begin(), found);
  std::sort(found.begin(), found.end());
  return looked;
}

Index RegionIndex::workspace_bytes() const {
  return Index(sizeof *this + ids_.capacity() * sizeof(Index) + bounds_.capacity() * sizeof(Index) +
               starts_.capacity() * sizeof(std::size_t));
}

}  // namespace longshore

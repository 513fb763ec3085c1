#include "layouts/floor_plan_stored.hpp"

namespace longshore {

namespace {

constexpr StoredKind stored_kind{"LSFP", 1, "floor plan"};

/// Modulo 2^64: any two ends that there may be are so far apart.
Index extent_of(Index lower, Index upper) { return Index(std::uint64_t(upper) - std::uint64_t(lower)); }
Index upper_of(Index lower, Index extent) { return Index(std::uint64_t(lower) + std::uint64_t(extent)); }

}  // namespace

void write_regions(WordWriter& out, std::size_t dims, std::span<const Region> regions) {
  std::vector<Index> lower(regions.size()), extents(regions.size());
  for (std::size_t d = 0; d < dims; ++d) {
    for (std::size_t k = 0; k < regions.size(); ++k) {
      lower[k] = regions[k].lower()[d];
      extents[k] = extent_of(lower[k], regions[k].upper()[d]);
    }
    out.integers(lower), out.integers(extents);
  }
}

std::vector<Region> read_regions(WordReader& in, std::size_t dims, std::size_t n) {
  if (Index(dims) > most_dims)
    in.refuse("has regions of " + std::to_string(dims) + " dimensions, more than the " + std::to_string(most_dims) +
              " that are read");
  std::vector<std::vector<Index>> lower, upper;  // by dimension
  for (std::size_t d = 0; d < dims; ++d) {
    lower.push_back(in.integers(n)), upper.push_back(in.integers(n));
    for (std::size_t k = 0; k < n; ++k) {
      const Index extent = std::exchange(upper[d][k], upper_of(lower[d][k], upper[d][k]));
      if (upper[d][k] < lower[d][k])
        in.refuse("has a region from " + std::to_string(lower[d][k]) + " on that has " + std::to_string(extent) +
                  " points");
    }
  }
  std::vector<Region> regions;
  Point from(dims), to(dims);
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t d = 0; d < dims; ++d) from[d] = lower[d][k], to[d] = upper[d][k];
    regions.emplace_back(from, to);
  }
  return regions;
}

void write(WordWriter& out, const FloorPlan& plan) {
  out.integers({Index(plan.dims())});
  out.integers(plan.owners());
  write_regions(out, plan.dims(), plan.regions());
}

FloorPlan read_floor_plan(WordReader& in, Index most_regions) {
  const Index dims = in.integers(1)[0];
  Map owners = in.integers_of_most(most_regions, "regions");
  if (dims < 0 || (owners.empty() && dims > 0))
    in.refuse("has " + std::to_string(owners.size()) + " regions of " + std::to_string(dims) + " dimensions");
  const auto regions = read_regions(in, std::size_t(dims), owners.size());
  return {regions, owners};
}

std::vector<std::byte> FloorPlan::to_bytes() const {
  WordWriter out(stored_kind);
  write(out, *this);
  return std::move(out).finish();
}

FloorPlan FloorPlan::from_bytes(std::span<const std::byte> bytes, Index most_regions) {
  return read_stored([&] {
    WordReader in(stored_kind, bytes);
    auto plan = read_floor_plan(in, most_regions);
    in.end();
    return plan;
  });
}

}  // namespace longshore

#include "longshore/plans/block_builders.hpp"

#include <algorithm>

#include "plans/ghost_motions.hpp"

namespace longshore {

namespace {

/// The dimensions of all blocks; where there are none, any will do.
std::size_t dims_of(const FloorPlan& source, const FloorPlan& destination, std::size_t otherwise) {
  return source.empty() && destination.empty() ? otherwise : std::max(source.dims(), destination.dims());
}

/// Throws unless somebody has every point of the panels, which say what of dimension
/// `dim`. Every rank looks at all of them, each once, or ranks would not agree.
void check_panels(const FloorPlan& blocks, const FloorPlan& panels, const std::string& what) {
  auto all = panels.regions();
  auto before = [](const Region& a, const Region& b) {
    return a.lower() == b.lower() ? a.upper() < b.upper() : a.lower() < b.lower();
  };
  std::sort(all.begin(), all.end(), before);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::vector<Index> meets;
  for (const Region& panel : all) {
    blocks.index().find(panel, meets);
    std::vector<Region> there;
    for (const Index k : meets) there.push_back(blocks.region(k));
    const auto missing = subtract(std::span(&panel, 1), there);
    if (!missing.empty())
      throw Error(ErrorKind::argument,
                  what + ": no block has " + missing[0].to_string() + " of the panel " + panel.to_string());
  }
}

}  // namespace

BlockPlan halo_exchange(FloorPlan blocks, Halo halo, std::optional<Index> rank) {
  return {BlockPlan::Kind::halo, blocks, blocks, {}, std::move(halo), rank};
}

BlockPlan copy_between(FloorPlan source, FloorPlan destination, std::optional<Index> rank, Region domain,
                       std::vector<bool> periodic) {
  const std::size_t dims = dims_of(source, destination, periodic.size());
  Halo halo(dims, 0, std::move(domain), std::move(periodic));
  return {BlockPlan::Kind::between, std::move(source), std::move(destination), {}, std::move(halo), rank};
}

BlockPlan transpose(FloorPlan source, FloorPlan destination, Axes axes, std::optional<Index> rank) {
  Halo halo(dims_of(source, destination, 0), 0);
  return {BlockPlan::Kind::between, std::move(source), std::move(destination), std::move(axes), std::move(halo), rank};
}

BlockPlan coarsen_fine(const FloorPlan& fine, FloorPlan coarse, const Point& ratio, std::optional<Index> rank,
                       Region domain, std::vector<bool> periodic) {
  return copy_between(std::move(coarse), fine.coarsen(ratio), rank, std::move(domain), std::move(periodic)).reverse();
}

BlockPlan refine_coarse(FloorPlan coarse, const FloorPlan& fine, const Point& ratio, const Point& width,
                        std::optional<Index> rank, Region domain, std::vector<bool> periodic) {
  for (std::size_t d = 0; d < width.dims(); ++d)
    if (width[d] < 0)
      throw Error(ErrorKind::argument,
                  "width " + std::to_string(width[d]) + " in dimension " + std::to_string(d) + " is negative");
  return copy_between(std::move(coarse), fine.coarsen(ratio).grow(width), rank, std::move(domain), std::move(periodic));
}

BlockPlan broadcast(FloorPlan blocks, std::size_t dim, Index first, Index last, std::optional<Index> rank) {
  auto panels = blocks.with_range(dim, first, last);
  const Region all = blocks.bounding();
  const std::string what = "[" + std::to_string(first) + ", " + std::to_string(last) + ") of dimension " +
                           std::to_string(dim) + " is no panel of blocks of " + all.to_string();
  if (first > last || (!blocks.empty() && !all.empty() && (first < all.lower()[dim] || last > all.upper()[dim])))
    throw Error(ErrorKind::argument, what);
  check_panels(blocks, panels, what);
  return copy_between(std::move(blocks), std::move(panels), rank);
}

BlockPlan gather_points(const FloorPlan& blocks, std::span<const std::vector<Index>> needed,
                        std::optional<Index> rank) {
  const VertexOwners owners(blocks);
  if (Index(needed.size()) != blocks.size())
    throw Error(ErrorKind::shape,
                std::to_string(needed.size()) + " lists of vertices for " + std::to_string(blocks.size()) + " blocks");
  std::vector<Index> ghosts;
  for (const auto& list : needed) ghosts.push_back(Index(list.size()));
  const FloorPlan longer = with_ghosts(blocks, ghosts);
  BlockPlan plan(longer, longer, {}, rank);
  for (Index k = 0; k < blocks.size(); ++k) {
    const auto& list = needed[std::size_t(k)];
    for (auto& motion : ghost_motions(k, blocks.region(k).upper(), owners.of_needed(k, list), list))
      plan.copy_points(std::move(motion.destination_points), k, std::move(motion.source_points), motion.source);
  }
  return plan;
}

}  // namespace longshore

#include "plans/ghost_motions.hpp"

#include <algorithm>
#include <map>

namespace longshore {

VertexOwners::VertexOwners(const FloorPlan& blocks) : blocks_(&blocks) {
  if (!blocks.empty()) check_same_dims(blocks.dims(), 1, "blocks and ranges of vertices");
  for (Index k = 0; k < blocks.size(); ++k)
    if (!blocks.region(k).empty()) order_.push_back(k);
  std::sort(order_.begin(), order_.end(), [this](Index a, Index b) { return lower(a) < lower(b); });
  for (std::size_t k = 1; k < order_.size(); ++k)
    if (upper(order_[k - 1]) > lower(order_[k]))
      throw Error(ErrorKind::argument, "blocks " + std::to_string(order_[k - 1]) + " and " + std::to_string(order_[k]) +
                                           " both own " + std::to_string(lower(order_[k])));
}

Index VertexOwners::of(Index vertex) const {
  const auto next =
      std::upper_bound(order_.begin(), order_.end(), vertex, [this](Index v, Index block) { return v < lower(block); });
  return next == order_.begin() || vertex >= upper(next[-1]) ? -1 : next[-1];
}

std::vector<Index> VertexOwners::of_needed(Index k, std::span<const Index> needed) const {
  std::vector<Index> owners(needed.size());
  for (std::size_t i = 0; i < needed.size(); ++i)
    if ((owners[i] = of(needed[i])) < 0)
      throw Error(ErrorKind::argument, "block " + std::to_string(k) + " (rank " + std::to_string(blocks_->owner(k)) +
                                           ") needs " + std::to_string(needed[i]) + ", which no block owns");
  return owners;
}

FloorPlan with_ghosts(const FloorPlan& blocks, std::span<const Index> ghosts) {
  auto regions = blocks.regions();
  for (std::size_t k = 0; k < ghosts.size(); ++k) {
    Point upper = regions[k].upper();
    upper[0] = checked_add(upper[0], ghosts[k]);
    regions[k] = Region(regions[k].lower(), upper);
  }
  return FloorPlan(regions, blocks.owners());
}

std::vector<BlockMotion> ghost_motions(Index k, const Point& first, std::span<const Index> sources,
                                       std::span<const Index> points) {
  struct Lists {
    std::vector<Index> points, places;
  };
  const std::size_t dims = first.dims();
  std::map<Index, Lists> by_source;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    auto& lists = by_source[sources[i]];
    lists.places.push_back(first[0] + Index(i));
    for (std::size_t d = 0; d < dims; ++d) {
      lists.points.push_back(points[i * dims + d]);
      if (d > 0) lists.places.push_back(first[d]);
    }
  }
  std::vector<BlockMotion> motions;
  for (auto& [source, lists] : by_source) {
    motions.push_back(list_motion(source, k, {dims, lists.points}, {dims, lists.places}));
    lists = {};  // packed now
  }
  return motions;
}

BlockMotion list_motion(Index source, Index destination, PointList source_points, PointList destination_points) {
  const Region from = source_points.bounding(), to = destination_points.bounding();
  return {source, destination, from, to, {}, std::move(source_points), std::move(destination_points)};
}

}  // namespace longshore

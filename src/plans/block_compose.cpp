// One plan after the other.
#include <algorithm>

#include "longshore/layouts/grid.hpp"
#include "longshore/plans/block_plan.hpp"
#include "longshore/regions/region_index.hpp"

namespace longshore {

namespace {

/// Coordinates of points, a list a dimension.
using Columns = std::vector<std::vector<Index>>;

Columns columns_of(const PointList& points) {
  Columns columns;
  for (std::size_t d = 0; d < points.dims(); ++d) columns.push_back(points.coordinates(d));
  return columns;
}

PointList chosen(const Columns& points, const std::vector<std::size_t>& which) {
  Columns some(points.size());
  for (std::size_t d = 0; d < points.size(); ++d)
    for (const std::size_t k : which) some[d].push_back(points[d][k]);
  return PointList(some);
}

/// One end of a motion, at the block between, and the other.
struct Leg {
  const Region &here, &there;
  const PointList &points_here, &points_there;
  Axes axes;  ///< from here to there

  Region move(const Region& part) const { return permuted(part.shift(-here.lower()), axes).shift(there.lower()); }
  /// Points here and there: all of a list, a part of a region.
  std::pair<Columns, Columns> lists(const Region& part) const {
    if (!points_here.empty()) return {columns_of(points_here), columns_of(points_there)};
    auto from = columns_of(PointList(part, Order::C));
    Columns to(from.size());
    for (std::size_t d = 0; d < to.size(); ++d) {
      const std::size_t f = axes.empty() ? d : axes[d];
      for (const Index x : from[f]) to[d].push_back(x - here.lower()[f] + there.lower()[d]);
    }
    return {std::move(from), std::move(to)};
  }
};

/// Where points lie among those of a region; -1: outside.
std::vector<Index> places_in(const Region& region, const Columns& points) {
  const auto strides = Grid::dense_strides(region, Order::C, 1);
  std::vector<Index> places(points[0].size());
  for (std::size_t d = 0; d < points.size(); ++d)
    for (std::size_t k = 0; k < places.size(); ++k) {
      const Index x = points[d][k];
      const bool inside = places[k] >= 0 && x >= region.lower()[d] && x < region.upper()[d];
      places[k] = inside ? places[k] + (x - region.lower()[d]) * strides[d] : -1;
    }
  return places;
}

/// The points that come by the one leg and go on by the other, in the order in which they go: where from, and where to.
std::pair<PointList, PointList> join(const Leg& arriving, const Leg& leaving, const Region& shared) {
  const auto [arrived, sources] = arriving.lists(shared);
  const auto [left, destinations] = leaving.lists(shared);
  const auto in = places_in(shared, arrived), out = places_in(shared, left);
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < in.size(); ++k)
    if (in[k] >= 0) order.push_back(k);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return in[a] < in[b]; });
  std::vector<std::size_t> from, to;
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (out[k] < 0) continue;
    auto at = std::lower_bound(order.begin(), order.end(), out[k], [&](std::size_t a, Index place) { return in[a] < place; });
    for (; at != order.end() && in[*at] == out[k]; ++at) from.push_back(*at), to.push_back(k);
  }
  return {chosen(sources, from), chosen(destinations, to)};
}

void check_shape(const BlockMotion& motion) {
  if (!motion.is_list() && permuted(motion.source_region, motion.axes).shape() != motion.destination_region.shape())
    throw Error(ErrorKind::argument, motion.to_string() + ": motions between regions of different shape cannot be composed");
}

}  // namespace

BlockPlan BlockPlan::compose(const BlockPlan& next) const {
  if (!(destination() == next.source()))
    throw Error(ErrorKind::argument, "the next plan begins with other blocks than those this plan ends with: " +
                                         next.source().to_string(2) + ", not " + destination().to_string(2));
  for (const auto& rank : {rank_, next.rank_})
    if (rank)
      throw Error(ErrorKind::argument, "a plan is rank " + std::to_string(*rank) + "'s; only everybody's plans are composed");
  BlockPlan both(source(), next.destination(), then(axes(), next.axes()));
  auto pass = [&](const BlockMotion& first, const BlockMotion& second) {
    check_shape(first), check_shape(second);
    const Region shared = first.destination_region & second.source_region;
    const Leg arriving{first.destination_region, first.source_region, first.destination_points, first.source_points,
                       inverse(first.axes)};
    const Leg leaving{second.source_region, second.destination_region, second.source_points, second.destination_points,
                      second.axes};
    if (first.is_list() || second.is_list()) {
      auto [sources, destinations] = join(arriving, leaving, shared);
      both.copy_points(std::move(destinations), second.destination, std::move(sources), first.source);
    } else {
      both.copy(leaving.move(shared), second.destination, arriving.move(shared), first.source);
    }
  };
  // Block after block of those between.
  auto firsts = motions(), seconds = next.motions();
  std::stable_sort(firsts.begin(), firsts.end(), [](const auto& a, const auto& b) { return a.destination < b.destination; });
  std::stable_sort(seconds.begin(), seconds.end(), [](const auto& a, const auto& b) { return a.source < b.source; });
  std::vector<Region> read;
  std::vector<Index> meets;
  for (std::size_t f = 0, s = 0; f < firsts.size();) {
    const Index block = firsts[f].destination;
    while (s < seconds.size() && seconds[s].source < block) ++s;
    const std::size_t begin = s;
    for (read.clear(); s < seconds.size() && seconds[s].source == block; ++s) read.push_back(seconds[s].source_region);
    const RegionIndex index(read);
    for (; f < firsts.size() && firsts[f].destination == block; ++f) {
      if (read.empty()) continue;
      index.find(firsts[f].destination_region, meets);
      for (const Index k : meets) pass(firsts[f], seconds[begin + std::size_t(k)]);
    }
  }
  return both;
}

}  // namespace longshore

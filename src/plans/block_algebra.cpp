#include "longshore/plans/block_algebra.hpp"

#include <algorithm>
#include <map>

#include "longshore/regions/region_index.hpp"

namespace longshore {

List<BlockVolume> volumes(const BlockPlan& plan) {
  std::map<std::pair<Index, Index>, BlockVolume> found;
  plan.for_each([&](const BlockMotion& motion) {
    const Index from = plan.source().owner(motion.source), to = plan.destination().owner(motion.destination);
    auto& volume = found.try_emplace({from, to}, BlockVolume{from, to}).first->second;
    ++volume.motions;
    volume.points = checked_add(volume.points, motion.points());
  });
  std::vector<BlockVolume> all;
  for (const auto& [ranks, volume] : found) all.push_back(volume);
  return all;
}

// --- one plan after the other

namespace {

/// Coordinates of points, a list a dimension.
using Columns = std::vector<std::vector<Index>>;

PointList chosen(const Columns& points, const std::vector<std::size_t>& which) {
  Columns some(points.size());
  for (std::size_t d = 0; d < points.size(); ++d)
    for (const std::size_t k : which) some[d].push_back(points[d][k]);
  return PointList(some);
}

/// One end of a motion, at the block between, and the other. Lists are unpacked once, for all motions that they meet.
struct Leg {
  Leg(const Region& here, const Region& there, const PointList& points_here, const PointList& points_there, Axes axes)
      : here(here),
        there(there),
        points_here(points_here.columns()),
        points_there(points_there.columns()),
        axes(std::move(axes)) {}

  const Region &here, &there;
  Columns points_here, points_there;  ///< none: all of the regions
  Axes axes;                          ///< from here to there

  bool is_list() const { return !points_here.empty(); }
  Region move(const Region& part) const { return permuted(part.shift(-here.lower()), axes).shift(there.lower()); }
};

/// The points of a list that lie in a box that comes or goes on: where the list has them, and where the box does.
std::pair<PointList, PointList> through(const Leg& list, const Leg& box) {
  const std::size_t dims = list.points_here.size();
  std::vector<std::size_t> which;
  for (std::size_t k = 0; k < list.points_here[0].size(); ++k) {
    bool inside = true;
    for (std::size_t d = 0; d < dims; ++d)
      inside = inside && list.points_here[d][k] >= box.here.lower()[d] && list.points_here[d][k] < box.here.upper()[d];
    if (inside) which.push_back(k);
  }
  Columns beyond(dims);
  for (std::size_t d = 0; d < dims; ++d) {
    const std::size_t from = box.axes.empty() ? d : box.axes[d];
    for (const std::size_t k : which)
      beyond[d].push_back(list.points_here[from][k] - box.here.lower()[from] + box.there.lower()[d]);
  }
  return {chosen(list.points_there, which), PointList(beyond)};
}

/// Where points lie among those of a region; -1: outside.
std::vector<Index> places_in(const Region& region, const Columns& points) {
  const auto strides = dense_strides(region.shape(), Order::C, 1);
  std::vector<Index> places(points[0].size());
  for (std::size_t d = 0; d < points.size(); ++d)
    for (std::size_t k = 0; k < places.size(); ++k) {
      const Index x = points[d][k];
      const bool inside = places[k] >= 0 && x >= region.lower()[d] && x < region.upper()[d];
      places[k] = inside ? places[k] + (x - region.lower()[d]) * strides[d] : -1;
    }
  return places;
}

/// The points that come by the one list and go on by the other,
/// in the order in which they go: where from, and where to.
std::pair<PointList, PointList> join(const Leg& arriving, const Leg& leaving) {
  const Region shared = arriving.here & leaving.here;
  const auto in = places_in(shared, arriving.points_here), out = places_in(shared, leaving.points_here);
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < in.size(); ++k)
    if (in[k] >= 0) order.push_back(k);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return in[a] < in[b]; });
  std::vector<std::size_t> from, to;
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (out[k] < 0) continue;
    auto at =
        std::lower_bound(order.begin(), order.end(), out[k], [&](std::size_t a, Index place) { return in[a] < place; });
    for (; at != order.end() && in[*at] == out[k]; ++at) from.push_back(*at), to.push_back(k);
  }
  return {chosen(arriving.points_there, from), chosen(leaving.points_there, to)};
}

void check_shape(const BlockMotion& motion) {
  if (!motion.is_list() && permuted(motion.source_region, motion.axes).shape() != motion.destination_region.shape())
    throw Error(ErrorKind::argument,
                motion.to_string() + ": motions between regions of different shape cannot be composed");
}

}  // namespace

BlockPlan compose(const BlockPlan& plan, const BlockPlan& next) {
  if (!(plan.destination() == next.source()))
    throw Error(ErrorKind::argument, "the next plan begins with other blocks than those this plan ends with: " +
                                         next.source().to_string(2) + ", not " + plan.destination().to_string(2));
  for (const auto& rank : {plan.rank(), next.rank()})
    if (rank)
      throw Error(ErrorKind::argument,
                  "a plan is rank " + std::to_string(*rank) + "'s; only everybody's plans are composed");
  BlockPlan both(plan.source(), next.destination(), then(plan.axes(), next.axes()));
  auto pass = [&](const BlockMotion& first, const Leg& arriving, const BlockMotion& second, const Leg& leaving) {
    check_shape(first), check_shape(second);
    auto list = [&](PointList sources, PointList destinations) {
      both.copy_points(std::move(destinations), second.destination, std::move(sources), first.source);
    };
    if (arriving.is_list() && leaving.is_list()) {
      auto [sources, destinations] = join(arriving, leaving);
      list(std::move(sources), std::move(destinations));
    } else if (arriving.is_list()) {
      auto [sources, destinations] = through(arriving, leaving);
      list(std::move(sources), std::move(destinations));
    } else if (leaving.is_list()) {
      auto [destinations, sources] = through(leaving, arriving);
      list(std::move(sources), std::move(destinations));
    } else {
      const Region shared = arriving.here & leaving.here;
      both.copy(leaving.move(shared), second.destination, arriving.move(shared), first.source);
    }
  };
  // Block after block of those between.
  auto firsts = plan.motions(), seconds = next.motions();
  std::stable_sort(firsts.begin(), firsts.end(),
                   [](const auto& a, const auto& b) { return a.destination < b.destination; });
  std::stable_sort(seconds.begin(), seconds.end(), [](const auto& a, const auto& b) { return a.source < b.source; });
  std::vector<Region> read;
  std::vector<Leg> onward;
  std::vector<Index> meets;
  for (std::size_t f = 0, s = 0; f < firsts.size();) {
    const Index block = firsts[f].destination;
    while (s < seconds.size() && seconds[s].source < block) ++s;
    const std::size_t begin = s;
    for (read.clear(), onward.clear(); s < seconds.size() && seconds[s].source == block; ++s) {
      const auto& m = seconds[s];
      read.push_back(m.source_region);
      onward.emplace_back(m.source_region, m.destination_region, m.source_points, m.destination_points, m.axes);
    }
    const RegionIndex index(read);
    for (; f < firsts.size() && firsts[f].destination == block; ++f) {
      const auto& m = firsts[f];
      index.find(m.destination_region, meets);
      if (meets.empty()) continue;
      const Leg arriving(m.destination_region, m.source_region, m.destination_points, m.source_points, inverse(m.axes));
      for (const Index k : meets) pass(m, arriving, seconds[begin + std::size_t(k)], onward[std::size_t(k)]);
    }
  }
  return both;
}

}  // namespace longshore

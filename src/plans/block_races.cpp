// Motions that get in each other's way.
#include <algorithm>

#include "longshore/layouts/grid.hpp"
#include "longshore/plans/block_plan.hpp"
#include "longshore/regions/region_index.hpp"

namespace longshore {

namespace {

/// What a motion writes of a block, or reads.
struct Use {
  const BlockMotion* motion;
  bool writes;

  Index block() const { return writes ? motion->destination : motion->source; }
  const Region& region() const { return writes ? motion->destination_region : motion->source_region; }
  const PointList& points() const { return writes ? motion->destination_points : motion->source_points; }
};

class RaceCheck {
 public:
  RaceCheck(const FloorPlan& blocks, bool combining) : blocks_(blocks), combining_(combining) {}

  /// The uses of one block: in pairs where they are few, and in an index of what is written where they are many.
  void check(std::span<const Use> uses) {
    listed_.clear();
    for (const auto& use : uses)
      if (use.writes && !combining_ && use.motion->is_list()) listed_.push_back(use);  // one point twice, perhaps
    constexpr std::size_t few = 32;
    if (uses.size() <= few) {
      for (std::size_t k = 0; k < uses.size(); ++k)
        for (std::size_t j = k + 1; j < uses.size(); ++j)
          if (collide(uses[k], uses[j]) && uses[k].region().overlaps(uses[j].region())) meet(uses[k], uses[j]);
    } else {
      std::vector<Region> written;
      std::vector<std::size_t> writers;
      for (std::size_t k = 0; k < uses.size(); ++k)
        if (uses[k].writes) written.push_back(uses[k].region()), writers.push_back(k);
      const RegionIndex index(written);
      std::vector<Index> meets;
      for (std::size_t k = 0; k < uses.size(); ++k) {
        index.find(uses[k].region(), meets);
        for (const Index j : meets)
          if (const std::size_t other = writers[std::size_t(j)]; other != k && collide(uses[other], uses[k]))
            meet(uses[other], uses[k]);
      }
    }
    check_lists();
  }

 private:
  bool collide(const Use& a, const Use& b) const { return a.writes != b.writes || (a.writes && !combining_); }

  /// Two uses that collide where they share a point, and whose regions do.
  void meet(const Use& a, const Use& b) {
    const bool a_lists = a.motion->is_list(), b_lists = b.motion->is_list();
    if (!a_lists && !b_lists) refuse(a, b, a.region() & b.region());
    if (a_lists) listed_.push_back(a);
    if (b_lists) listed_.push_back(b);
    if (a_lists == b_lists) return;
    const PointList& points = (a_lists ? a : b).points();
    const Region& region = (a_lists ? b : a).region();
    std::vector<bool> inside(std::size_t(points.size()), true);
    for (std::size_t d = 0; d < points.dims(); ++d) {
      const auto at = points.coordinates(d);
      for (std::size_t k = 0; k < at.size(); ++k) inside[k] = inside[k] && at[k] >= region.lower()[d] && at[k] < region.upper()[d];
    }
    const auto found = std::find(inside.begin(), inside.end(), true);
    if (found != inside.end()) refuse(a, b, one(points[found - inside.begin()]));
  }

  /// Lists that may share points, all of them sorted together.
  void check_lists() {
    if (listed_.empty()) return;
    auto same = [](const Use& a, const Use& b) { return a.motion == b.motion && a.writes == b.writes; };
    std::sort(listed_.begin(), listed_.end(),
              [](const Use& a, const Use& b) { return a.motion != b.motion ? a.motion < b.motion : a.writes < b.writes; });
    listed_.erase(std::unique(listed_.begin(), listed_.end(), same), listed_.end());
    std::vector<Region> regions;
    for (const auto& use : listed_) regions.push_back(use.region());
    const Region all = bounding_region(regions, regions[0].dims());
    const auto strides = Grid::dense_strides(all, Order::C, 1);
    struct Place {
      Index at;
      std::uint32_t use;
    };
    std::vector<Place> places;
    for (std::size_t k = 0; k < listed_.size(); ++k)
      for (const Index at : listed_[k].points().offsets(all.lower(), strides)) places.push_back({at, std::uint32_t(k)});
    // Who writes comes first, and collides with everybody else there if with anybody.
    std::sort(places.begin(), places.end(), [&](const Place& a, const Place& b) {
      return a.at != b.at ? a.at < b.at : listed_[a.use].writes > listed_[b.use].writes;
    });
    for (std::size_t k = 1, first = 0; k < places.size(); ++k) {
      if (places[k].at != places[first].at) first = k;
      const Use &one_use = listed_[places[first].use], &other = listed_[places[k].use];
      if (first != k && collide(one_use, other)) refuse(one_use, other, one(all.point_at(places[k].at, Order::C)));
    }
  }

  static Region one(const Point& point) { return Region(point, point + Point(point.dims(), 1)); }

  [[noreturn]] void refuse(const Use& a, const Use& b, const Region& points) const {
    const std::string where = "the points " + points.to_string() + " of block " + std::to_string(a.block()) + " (rank " +
                              std::to_string(blocks_.owner(a.block())) + ")";
    if (a.motion == b.motion)
      throw Error(ErrorKind::argument, std::string("a motion ") + (a.writes && b.writes ? "writes twice " : "reads and writes ") +
                                           where + ": " + a.motion->to_string());
    const char* what = a.writes && b.writes ? "two motions write " : "one motion reads and another writes ";
    throw Error(ErrorKind::argument, what + where + ": " + std::min(a.motion, b.motion)->to_string() + " and " +
                                         std::max(a.motion, b.motion)->to_string());
  }

  const FloorPlan& blocks_;
  bool combining_;
  std::vector<Use> listed_;
};

}  // namespace

void BlockPlan::check_races(bool endogenous, bool combining) const {
  const auto all = motions();
  std::vector<Use> uses;
  for (const auto& motion : all) {
    uses.push_back({&motion, true});
    if (endogenous) uses.push_back({&motion, false});
  }
  std::stable_sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) { return a.block() < b.block(); });
  RaceCheck races(destination(), combining);
  for (std::size_t first = 0, last; first < uses.size(); first = last) {
    for (last = first; last < uses.size() && uses[last].block() == uses[first].block();) ++last;
    races.check(std::span(uses).subspan(first, last - first));
  }
}

}  // namespace longshore

// Motions that get in each other's way.
#include <algorithm>

#include "longshore/plans/block_algebra.hpp"
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

  /// The uses of one block. Boxes are looked at in pairs where they are few, and in an index of what is written where
  /// they are many; lists are sorted, all together, and asked point by point where boxes are near.
  void check(std::span<const Use> uses) {
    boxes_.clear(), lists_.clear();
    for (const auto& use : uses) (use.motion->is_list() ? lists_ : boxes_).push_back(use);
    check_boxes();
    if (lists_.empty()) return;
    check_lists_against_boxes();
    check_lists();
  }

 private:
  /// An index of some of the boxes.
  struct Boxes {
    std::vector<const Use*> uses;
    RegionIndex index;
    template <class Wanted>
    Boxes(const std::vector<Use>& all, Wanted&& wanted) {
      std::vector<Region> regions;
      for (const auto& use : all)
        if (wanted(use)) regions.push_back(use.region()), uses.push_back(&use);
      index = RegionIndex(regions);
    }
  };

  bool collide(const Use& a, const Use& b) const { return a.writes != b.writes || (a.writes && !combining_); }

  void check_boxes() {
    constexpr std::size_t few = 32;
    if (boxes_.size() <= few) {
      for (std::size_t k = 0; k < boxes_.size(); ++k)
        for (std::size_t j = k + 1; j < boxes_.size(); ++j)
          if (collide(boxes_[k], boxes_[j]) && boxes_[k].region().overlaps(boxes_[j].region()))
            refuse(boxes_[k], boxes_[j]);
      return;
    }
    const Boxes written(boxes_, [](const Use& use) { return use.writes; });
    for (const auto& use : boxes_) {
      if (use.writes && combining_) continue;
      written.index.find(use.region(), meets_);
      for (const Index k : meets_)
        if (const Use* other = written.uses[std::size_t(k)]; other != &use) refuse(*other, use);
    }
  }

  void check_lists_against_boxes() {
    if (boxes_.empty()) return;
    // Those that a list collides with, if it has a point in one, according to whether it writes or reads.
    const Boxes for_writers(boxes_, [this](const Use& use) { return !use.writes || !combining_; });
    const Boxes for_readers(boxes_, [](const Use& use) { return use.writes; });
    for (const auto& list : lists_) {
      const Boxes& boxes = list.writes ? for_writers : for_readers;
      boxes.index.find(list.region(), meets_);
      if (meets_.empty()) continue;
      const auto columns = list.points().columns();
      Point point(columns.size());
      for (std::size_t k = 0; k < columns[0].size(); ++k) {
        for (std::size_t d = 0; d < columns.size(); ++d) point[d] = columns[d][k];
        boxes.index.find(one(point), meets_);
        if (!meets_.empty()) refuse(*boxes.uses[std::size_t(meets_[0])], list, one(point));
      }
    }
  }

  /// Sorts the points of all lists that may share some with another, or with themselves.
  void check_lists() {
    auto around = [this](auto&& wanted) {
      std::vector<Region> regions;
      for (const auto& use : lists_)
        if (wanted(use)) regions.push_back(use.region());
      return bounding_region(regions, lists_[0].region().dims());
    };
    const Region written = around([](const Use& use) { return use.writes; });
    const Region read = around([](const Use& use) { return !use.writes; });
    std::erase_if(lists_, [&](const Use& use) {
      return use.writes ? combining_ && !use.region().overlaps(read) : !use.region().overlaps(written);
    });
    if (lists_.empty()) return;
    const Region all = around([](const Use&) { return true; });
    const auto strides = dense_strides(all.shape(), Order::C, 1);
    struct Place {
      Index at;
      std::uint32_t use;
    };
    std::vector<Place> places;
    for (std::size_t k = 0; k < lists_.size(); ++k)
      for (const Index at : lists_[k].points().offsets(all.lower(), strides)) places.push_back({at, std::uint32_t(k)});
    // Who writes comes first, and collides with everybody else there if with anybody.
    std::sort(places.begin(), places.end(), [&](const Place& a, const Place& b) {
      return a.at != b.at ? a.at < b.at : lists_[a.use].writes > lists_[b.use].writes;
    });
    for (std::size_t k = 1, first = 0; k < places.size(); ++k) {
      if (places[k].at != places[first].at) first = k;
      const Use &one_use = lists_[places[first].use], &other = lists_[places[k].use];
      if (first != k && collide(one_use, other)) refuse(one_use, other, one(all.point_at(places[k].at, Order::C)));
    }
  }

  static Region one(const Point& point) { return Region(point, point + Point(point.dims(), 1)); }

  [[noreturn]] void refuse(const Use& a, const Use& b) const { refuse(a, b, a.region() & b.region()); }
  [[noreturn]] void refuse(const Use& a, const Use& b, const Region& points) const {
    const std::string where = "the points " + points.to_string() + " of block " + std::to_string(a.block()) +
                              " (rank " + std::to_string(blocks_.owner(a.block())) + ")";
    if (a.motion == b.motion)
      throw Error(ErrorKind::argument, std::string("a motion ") +
                                           (a.writes && b.writes ? "writes twice " : "reads and writes ") + where +
                                           ": " + a.motion->to_string());
    const char* what = a.writes && b.writes ? "two motions write " : "one motion reads and another writes ";
    throw Error(ErrorKind::argument, what + where + ": " + std::min(a.motion, b.motion)->to_string() + " and " +
                                         std::max(a.motion, b.motion)->to_string());
  }

  const FloorPlan& blocks_;
  bool combining_;
  std::vector<Use> boxes_, lists_;
  std::vector<Index> meets_;
};

}  // namespace

void check_races(const BlockPlan& plan, bool endogenous, bool combining) {
  if (plan.never_races(endogenous, combining)) return;
  const auto all = plan.motions();
  std::vector<Use> uses;
  for (const auto& motion : all) {
    uses.push_back({&motion, true});
    if (endogenous) uses.push_back({&motion, false});
  }
  std::stable_sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) { return a.block() < b.block(); });
  RaceCheck races(plan.destination(), combining);
  for (std::size_t first = 0, last; first < uses.size(); first = last) {
    for (last = first; last < uses.size() && uses[last].block() == uses[first].block();) ++last;
    races.check(std::span(uses).subspan(first, last - first));
  }
}

}  // namespace longshore

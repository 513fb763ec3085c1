// Plans as bytes: their description, which whoever reads them works out anew, and the motions by hand.
#include <algorithm>

#include "layouts/floor_plan_stored.hpp"
#include "longshore/plans/block_plan.hpp"

namespace longshore {

namespace {

constexpr StoredKind stored_kind{"LSBP", 2, "plan"};

/// One side of all lists of points, one after the other: a list of numbers a dimension.
template <class PointsOf>
void write_points(WordWriter& out, std::size_t dims, const std::vector<BlockMotion>& motions, PointsOf&& points_of) {
  for (std::size_t d = 0; d < dims; ++d) {
    std::vector<Index> all;
    for (const auto& motion : motions) {
      if (!motion.is_list()) continue;
      const auto some = points_of(motion).coordinates(d);
      all.insert(all.end(), some.begin(), some.end());
    }
    out.integers(all);
  }
}

/// Such lists, taken apart again.
class PointsReader {
 public:
  PointsReader(WordReader& in, std::size_t dims, std::size_t points) {
    for (std::size_t d = 0; d < dims; ++d) coordinates_.push_back(in.integers(points));
  }
  PointList next(Index n) {
    std::vector<std::vector<Index>> some;
    for (const auto& all : coordinates_) some.emplace_back(all.begin() + at_, all.begin() + at_ + n);
    at_ += n;
    return PointList(some);
  }

 private:
  std::vector<std::vector<Index>> coordinates_;
  Index at_ = 0;
};

}  // namespace

std::vector<std::byte> BlockPlan::to_bytes() const {
  if (!swept().empty())
    throw Error(ErrorKind::argument, "this is one phase of a halo; store the plan that it is a phase of");
  WordWriter out(stored_kind);
  const bool same = source_ == destination_;
  out.integers({Index(kind_), reversed_, rank_.value_or(-1), same, halo().corners});
  write(out, source_);
  if (!same) write(out, destination_);
  out.integers(std::vector<Index>(axes_.begin(), axes_.end()));
  out.integers(halo().below), out.integers(halo().above);
  out.integers(std::vector<Index>(halo().periodic.begin(), halo().periodic.end()));
  write_regions(out, halo().domain.dims(), std::span(&halo().domain, 1));

  std::vector<Index> sources, destinations, listed;  // how many points a motion lists; 0: it has regions
  std::vector<Region> from, to;
  for (const auto& motion : by_hand()) {
    sources.push_back(motion.source), destinations.push_back(motion.destination);
    listed.push_back(motion.source_points.size());
    if (!motion.is_list()) from.push_back(motion.source_region), to.push_back(motion.destination_region);
  }
  out.integers(sources), out.integers(destinations), out.integers(listed);
  write_regions(out, source_.dims(), from), write_regions(out, destination_.dims(), to);
  write_points(out, source_.dims(), by_hand(), [](const BlockMotion& motion) { return motion.source_points; });
  write_points(out, destination_.dims(), by_hand(),
               [](const BlockMotion& motion) { return motion.destination_points; });
  out.integers({everybodys_.motions, Index(everybodys_.digest), Index(everybodys_.digest_back)});
  return std::move(out).finish();
}

BlockPlan BlockPlan::from_bytes(std::span<const std::byte> bytes, Index most_pairs) {
  return read_stored([&] {
    WordReader in(stored_kind, bytes);
    auto flag = [&](Index value) {
      if (value != 0 && value != 1) in.refuse("has " + std::to_string(value) + " where 0 or 1 must be");
      return value == 1;
    };
    const auto head = in.integers(5);
    if (head[0] < 0 || head[0] > Index(Kind::halo)) in.refuse("is of unknown kind " + std::to_string(head[0]));
    const auto kind = Kind(head[0]);
    const bool reversed = flag(head[1]), same = flag(head[3]);
    if (head[2] < -1) in.refuse("is that of rank " + std::to_string(head[2]));
    const std::optional<Index> rank = head[2] < 0 ? std::nullopt : std::optional(head[2]);
    const auto source = read_floor_plan(in, most_pairs), destination = same ? source : read_floor_plan(in, most_pairs);
    const auto axes = in.integers();
    Halo halo;
    halo.corners = flag(head[4]);
    halo.below = in.integers(), halo.above = in.integers();
    for (const Index value : in.integers()) halo.periodic.push_back(flag(value));
    halo.domain = read_regions(in, halo.below.dims(), 1)[0];
    if (kind == Kind::halo && (!same || !axes.empty())) in.refuse("is a halo between different blocks");
    if (kind == Kind::between && !(halo == Halo(halo.below.dims(), 0, halo.domain, halo.periodic)))
      in.refuse("copies between floor plans and has ghost cells");
    if (!axes.empty() && !halo.periodic.empty()) in.refuse("is a transpose and periodic");
    if (kind == Kind::by_hand && !(halo == Halo())) in.refuse("is by hand and has ghost cells");
    BlockPlan plan(kind, source, destination, Axes(axes.begin(), axes.end()), std::move(halo), rank, most_pairs);

    const auto sources = in.integers_of_most(most_pairs, "motions by hand");
    const auto destinations = in.integers(sources.size()), listed = in.integers(sources.size());
    Index regions = 0, points = 0;
    for (const Index n : listed) {
      if (n < 0) in.refuse("has a list of " + std::to_string(n) + " points");
      regions += n == 0, points = checked_add(points, n);
    }
    const auto from = read_regions(in, source.dims(), std::size_t(regions)),
               to = read_regions(in, destination.dims(), std::size_t(regions));
    PointsReader source_points(in, source.dims(), std::size_t(points)),
        destination_points(in, destination.dims(), std::size_t(points));
    const auto whole = in.integers(3);
    const ByHand everybodys{whole[0], std::uint64_t(whole[1]), std::uint64_t(whole[2])};
    in.end();
    for (std::size_t k = 0, r = 0; k < sources.size(); ++k) {
      if (listed[k] > 0) {
        auto out_of = source_points.next(listed[k]), into = destination_points.next(listed[k]);
        plan.copy_points(std::move(into), destinations[k], std::move(out_of), sources[k]);
      } else {
        plan.copy(to[r], destinations[k], from[r], sources[k]);
        ++r;
      }
    }
    if (plan.by_hand().size() != sources.size())
      in.refuse("has motions by hand that are empty, or of others than its rank");
    // What others have is taken at its word.
    const bool others = rank && everybodys.motions > plan.everybodys_.motions;
    if (!others && !(plan.everybodys_ == everybodys)) in.refuse("has another digest than its motions by hand");
    plan.everybodys_ = everybodys;
    return reversed ? plan.reverse() : plan;
  });
}

}  // namespace longshore

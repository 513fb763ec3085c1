#include "longshore/plans/block_plan.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "core/digest.hpp"
#include "plans/neighbours.hpp"

namespace longshore {

namespace {

void check_block(const FloorPlan& plan, Index k, const char* side) {
  if (k < 0 || k >= plan.size())
    throw Error(ErrorKind::argument, std::string("there is no ") + side + " block " + std::to_string(k) +
                                         "; the floor plan has " + std::to_string(plan.size()));
}

/// Of one end of a motion. What may be longer or shorter says so first, or what follows could be taken for it.
std::uint64_t digest_of(Index block, const Region& region, const PointList& points) {
  Digest digest;
  digest.mix(std::uint64_t(block));
  digest.mix(region.lower()), digest.mix(region.upper());
  digest.mix(std::uint64_t(points.size()));
  for (std::size_t d = 0; d < points.dims(); ++d) digest.mix(points.coordinates(d));
  return digest.value();
}

/// The dimensions of all blocks; where there are none, any will do.
std::size_t dims_of(const BlockPlan& plan, std::size_t otherwise) {
  const bool none = plan.source().empty() && plan.destination().empty();
  return none ? otherwise : std::max(plan.source().dims(), plan.destination().dims());
}

/// A halo that fits blocks of so many dimensions; where nothing is periodic, without a domain.
Halo checked(Halo halo, const FloorPlan& source, std::size_t dims) {
  check_same_dims(dims, halo.below.dims(), "blocks and ghost widths");
  check_same_dims(dims, halo.above.dims(), "blocks and ghost widths");
  for (std::size_t d = 0; d < dims; ++d)
    if (halo.below[d] < 0 || halo.above[d] < 0)
      throw Error(ErrorKind::argument, "ghost width " + std::to_string(std::min(halo.below[d], halo.above[d])) +
                                           " in dimension " + std::to_string(d) + " is negative");
  if (!halo.periodic.empty()) check_same_dims(dims, halo.periodic.size(), "blocks and periodic dimensions");
  if (std::find(halo.periodic.begin(), halo.periodic.end(), true) == halo.periodic.end()) {
    halo.periodic.clear();
    halo.domain = Region(Point(dims), Point(dims));
    return halo;
  }
  check_same_dims(dims, halo.domain.dims(), "blocks and the periodic domain");
  if (source.empty() || halo.domain.contains(source.bounding())) return halo;
  for (Index k = 0; k < source.size(); ++k)
    if (!halo.domain.contains(source.region(k)))
      throw Error(ErrorKind::argument, "block " + std::to_string(k) + " " + source.region(k).to_string() +
                                           " is not within the periodic domain " + halo.domain.to_string());
  return halo;
}

}  // namespace

BlockMotion BlockMotion::reverse() const {
  BlockMotion motion = *this;
  std::swap(motion.source, motion.destination);
  std::swap(motion.source_region, motion.destination_region);
  std::swap(motion.source_points, motion.destination_points);
  motion.axes = inverse(motion.axes);
  return motion;
}

bool BlockMotion::before(const BlockMotion& a, const BlockMotion& b) {
  if (a.destination != b.destination) return a.destination < b.destination;
  if (a.source != b.source) return a.source < b.source;
  const Point &to_a = a.destination_region.lower(), &to_b = b.destination_region.lower();
  return to_a == to_b ? a.source_region.lower() < b.source_region.lower() : to_a < to_b;
}

std::string BlockMotion::to_string() const {
  const std::string list = is_list() ? std::to_string(points()) + (points() == 1 ? " point of " : " points of ") : "";
  std::string permuting;
  for (const std::size_t axis : axes) permuting += (permuting.empty() ? ", axes " : ", ") + std::to_string(axis);
  return list + "block " + std::to_string(source) + " " + source_region.to_string() + " -> block " +
         std::to_string(destination) + " " + destination_region.to_string() + permuting;
}

BlockPlan::BlockPlan(FloorPlan source, FloorPlan destination, Axes axes, std::optional<Index> rank)
    : source_(std::move(source)), destination_(std::move(destination)), axes_(std::move(axes)), rank_(rank) {
  if (!source_.empty() && !destination_.empty())
    check_same_dims(source_.dims(), destination_.dims(), "a source and a destination");
  check_axes(axes_, dims_of(*this, axes_.size()));
  axes_back_ = inverse(axes_);
  constexpr Index most = std::numeric_limits<std::uint32_t>::max();
  if (source_.size() > most || destination_.size() > most)
    throw Error(ErrorKind::memory_limit, "a floor plan of " +
                                             std::to_string(std::max(source_.size(), destination_.size())) +
                                             " blocks; plans are for " + std::to_string(most) + " at most");
  if (rank && *rank < 0) throw Error(ErrorKind::argument, "rank " + std::to_string(*rank) + " is negative");
}

BlockPlan::BlockPlan(Kind kind, FloorPlan source, FloorPlan destination, Axes axes, Halo halo,
                     std::optional<Index> rank, Index most_pairs)
    : BlockPlan(std::move(source), std::move(destination), std::move(axes), rank) {
  if (kind == Kind::by_hand) return;
  kind_ = kind;
  const std::size_t dims = dims_of(*this, halo.below.dims());
  neighbours_ = std::make_shared<const Neighbours>(kind, source_, destination_, axes_,
                                                   checked(std::move(halo), source_, dims), rank, most_pairs);
}

const Halo& BlockPlan::halo() const& {
  static const Halo none;
  return neighbours_ ? neighbours_->halo() : none;
}

const Axes& BlockPlan::swept() const& {
  static const Axes none;
  return neighbours_ ? neighbours_->swept() : none;
}

void BlockPlan::check_motion(const BlockMotion& motion) const {
  check_block(source(), motion.source, "source");
  check_block(destination(), motion.destination, "destination");
  const std::size_t dims = source().dims();
  for (const Region* region : {&motion.source_region, &motion.destination_region})
    if (region->dims() != dims)
      check_same_dims(dims, region->dims(), (motion.to_string() + ": a block and a region").c_str());
}

void BlockPlan::copy(const Region& destination_region, Index destination, const Region& source_region, Index source) {
  BlockMotion motion{source, destination, source_region, destination_region, axes()};
  check_motion(motion);
  if (source_region.size() != destination_region.size())
    throw Error(ErrorKind::shape, motion.to_string() + ": " + std::to_string(source_region.size()) +
                                      " points do not fill " + std::to_string(destination_region.size()));
  if (!axes().empty() && permuted(source_region, axes()).shape() != destination_region.shape())
    throw Error(ErrorKind::shape,
                motion.to_string() + ": with axes, regions have the same extents in those dimensions that go together");
  add_by_hand(std::move(motion));
}

void BlockPlan::copy_points(PointList destination_points, Index destination, PointList source_points, Index source) {
  if (source_points.size() != destination_points.size())
    throw Error(ErrorKind::shape, std::to_string(source_points.size()) + " points of block " + std::to_string(source) +
                                      " do not go to " + std::to_string(destination_points.size()) +
                                      " points of block " + std::to_string(destination));
  check_block(this->source(), source, "source");
  check_block(this->destination(), destination, "destination");
  if (source_points.empty()) return;  // of no dimensions that could be wrong
  const Region from = source_points.bounding(), to = destination_points.bounding();
  BlockMotion motion{source, destination, from, to, {}, std::move(source_points), std::move(destination_points)};
  check_motion(motion);
  add_by_hand(std::move(motion));
}

void BlockPlan::ByHand::add(const BlockMotion& motion, Index number) {
  const std::uint64_t source = digest_of(motion.source, motion.source_region, motion.source_points),
                      destination = digest_of(motion.destination, motion.destination_region, motion.destination_points);
  auto of = [number](std::uint64_t from, std::uint64_t to) {
    Digest digest;
    digest.mix(std::uint64_t(number)), digest.mix(from), digest.mix(to);
    return digest.value();
  };
  ++motions;
  digest += of(source, destination), digest_back += of(destination, source);
}

bool BlockPlan::takes_part(const BlockMotion& motion) const {
  return !rank_ || source_.owner(motion.source) == *rank_ || destination_.owner(motion.destination) == *rank_;
}

void BlockPlan::add_by_hand(BlockMotion motion) {
  if (motion.points() == 0) return;
  if (reversed_) motion = motion.reverse();
  everybodys_.add(motion, everybodys_.motions);
  if (!takes_part(motion)) return;
  if (by_hand_.use_count() != 1) by_hand_ = std::make_shared<std::vector<BlockMotion>>(by_hand());
  std::atomic_thread_fence(std::memory_order_acquire);  // whoever has let go of them has read them before
  by_hand_->push_back(std::move(motion));
}

const std::vector<BlockMotion>& BlockPlan::by_hand() const {
  static const std::vector<BlockMotion> none;
  return by_hand_ ? *by_hand_ : none;
}

BlockPlan BlockPlan::of_rank(FloorPlan source, FloorPlan destination, Index rank, std::vector<BlockMotion> motions,
                             const ByHand& everybodys) {
  BlockPlan plan(std::move(source), std::move(destination), {}, rank);
  for (const auto& motion : motions) {
    plan.check_motion(motion);
    if (motion.points() == 0 || motion.source_points.size() != motion.destination_points.size() ||
        (!motion.is_list() && motion.source_region.size() != motion.destination_region.size()))
      throw Error(ErrorKind::shape, motion.to_string() + ": a motion has as many points on both sides, and some");
    if (!plan.takes_part(motion))
      throw Error(ErrorKind::argument, motion.to_string() + ": rank " + std::to_string(rank) + " takes no part in it");
  }
  plan.by_hand_ = std::make_shared<std::vector<BlockMotion>>(std::move(motions));
  plan.everybodys_ = everybodys;
  return plan;
}

void BlockPlan::for_each_shared(const Each& f) const {
  if (neighbours_) neighbours_->for_each(reversed_, f);
}

void BlockPlan::for_each_by_hand(const Each& f) const {
  for (const auto& motion : by_hand()) f(reversed_ ? motion.reverse() : motion);
}

void BlockPlan::for_each(const Each& f) const {
  for_each_shared(f);
  for_each_by_hand(f);
}

template <class F>
List<BlockMotion> BlockPlan::in_order(F&& wanted) const {
  List<BlockMotion> all;
  auto take = [&](const BlockMotion& motion) {
    if (wanted(motion)) all.push_back(motion);
  };
  for_each_shared(take);
  // As a rule they come in order. A motion is large: where they do not, their numbers are sorted.
  if (!std::is_sorted(all.begin(), all.end(), BlockMotion::before)) {
    std::vector<std::uint32_t> order(all.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return BlockMotion::before(all[a], all[b]); });
    List<BlockMotion> sorted;
    sorted.reserve(all.size());
    for (const std::uint32_t k : order) sorted.push_back(std::move(all[k]));
    all = std::move(sorted);
  }
  for_each_by_hand(take);
  return all;
}

void BlockPlan::check_rank(Index rank) const {
  if (rank_ && *rank_ != rank)
    throw Error(ErrorKind::argument, "the plan is rank " + std::to_string(*rank_) +
                                         "'s; it does not hold the motions of rank " + std::to_string(rank));
}

List<BlockMotion> BlockPlan::motions() const {
  return in_order([](const BlockMotion&) { return true; });
}

List<BlockMotion> BlockPlan::receives(Index rank) const {
  check_rank(rank);
  return in_order([&](const BlockMotion& motion) { return destination().owner(motion.destination) == rank; });
}

List<BlockMotion> BlockPlan::sends(Index rank) const {
  check_rank(rank);
  return in_order([&](const BlockMotion& motion) { return source().owner(motion.source) == rank; });
}

BlockPlan BlockPlan::reverse() const {
  BlockPlan back = *this;
  back.reversed_ = !reversed_;
  return back;
}

bool BlockPlan::operator==(const BlockPlan& other) const {
  return source() == other.source() && destination() == other.destination() && axes() == other.axes() &&
         kind_ == other.kind_ && (reversed_ == other.reversed_ || kind_ == Kind::by_hand) && rank_ == other.rank_ &&
         halo() == other.halo() && swept() == other.swept() &&
         digest() == other.digest() &&  // of motions that are not here
         std::equal(
             by_hand().begin(), by_hand().end(), other.by_hand().begin(), other.by_hand().end(),
             [&](const auto& a, const auto& b) { return reversed_ == other.reversed_ ? a == b : a == b.reverse(); });
}

bool BlockPlan::never_races(bool endogenous, bool combining) const {
  if (!neighbours_ || !by_hand().empty()) return false;
  // A halo reads what blocks own and writes outside of that, or the other way round.
  if (endogenous && (kind_ != Kind::halo || !(source_ == destination_))) return false;
  // What arrives at a block are parts of images of sources, and they do not overlap where sources do not: those are
  // within the domain, and its images lie side by side. Of destinations that is not known.
  return combining || (!reversed_ && neighbours_->sources_apart());
}

std::uint64_t BlockPlan::digest() const {
  Digest digest;
  digest.mix(source().digest());
  digest.mix(destination().digest());
  digest.mix(std::uint64_t(kind_));
  digest.mix(kind_ != Kind::by_hand && reversed_);
  digest.mix(axes().size());
  for (const std::size_t axis : axes()) digest.mix(axis);
  const auto& ghosts = halo();
  digest.mix(ghosts.below.dims());
  for (const Point* point : {&ghosts.below, &ghosts.above, &ghosts.domain.lower(), &ghosts.domain.upper()})
    digest.mix(*point);
  digest.mix(ghosts.periodic.size());
  for (const bool flag : ghosts.periodic) digest.mix(flag);
  digest.mix(ghosts.corners);
  for (const std::size_t d : swept()) digest.mix(d);
  digest.mix(std::uint64_t(everybodys_.motions));
  digest.mix(reversed_ ? everybodys_.digest_back : everybodys_.digest);
  return digest.value();
}

Index BlockPlan::workspace_bytes() const {
  Index total = Index(sizeof *this + (axes_.capacity() + axes_back_.capacity()) * sizeof(std::size_t) +
                      by_hand().capacity() * sizeof(BlockMotion));
  if (neighbours_) total += neighbours_->workspace_bytes();
  for (const auto& motion : by_hand())
    total += motion.source_points.workspace_bytes() + motion.destination_points.workspace_bytes();
  return total;
}

std::string BlockPlan::to_string(Index most) const {
  Index n = 0;
  std::string some;
  for (const auto& motion : motions()) {
    if (n < most) some += (n ? "; " : ": ") + motion.to_string();
    ++n;
  }
  return std::to_string(n) + (n == 1 ? " motion" : " motions") + some + (n > most ? "; ..." : "");
}

}  // namespace longshore

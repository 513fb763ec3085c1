#include "longshore/plans/block_plan.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "longshore/regions/region_index.hpp"

namespace longshore {

namespace {

constexpr std::size_t most_shifts = 256;

bool any(const std::vector<bool>& flags) { return std::find(flags.begin(), flags.end(), true) != flags.end(); }

void check_block(const FloorPlan& plan, Index k, const char* side) {
  if (k < 0 || k >= plan.size())
    throw Error(ErrorKind::argument, std::string("there is no ") + side + " block " + std::to_string(k) + "; the floor plan has " +
                                         std::to_string(plan.size()));
}

[[noreturn]] void refuse_images(const Halo& halo) {
  throw Error(ErrorKind::memory_limit, "the halo is so wide that it meets more than " + std::to_string(most_shifts) +
                                           " images of the periodic domain " + halo.domain.to_string());
}

BlockMotion turned(BlockMotion motion) {
  std::swap(motion.source, motion.destination);
  std::swap(motion.source_region, motion.destination_region);
  return motion;
}

}  // namespace

std::string BlockMotion::to_string() const {
  return "block " + std::to_string(source) + " " + source_region.to_string() + " -> block " + std::to_string(destination) + " " +
         destination_region.to_string();
}

BlockPlan::BlockPlan(FloorPlan source, FloorPlan destination)
    : source_(std::move(source)), destination_(std::move(destination)) {
  if (!source_.empty() && !destination_.empty())
    check_same_dims(source_.dims(), destination_.dims(), "a source and a destination");
  constexpr Index most = std::numeric_limits<std::uint32_t>::max();
  if (source_.size() > most || destination_.size() > most)
    throw Error(ErrorKind::memory_limit, "a floor plan of " + std::to_string(std::max(source_.size(), destination_.size())) +
                                             " blocks; plans are for " + std::to_string(most) + " at most");
}

BlockPlan BlockPlan::copy_between(FloorPlan source, FloorPlan destination, std::optional<Index> rank) {
  BlockPlan plan(std::move(source), std::move(destination));
  plan.kind_ = Kind::between;
  plan.rank_ = rank;
  plan.halo_.below = plan.halo_.above = Point(plan.destination_.dims());
  plan.look_up();
  return plan;
}

BlockPlan BlockPlan::halo(FloorPlan blocks, Halo halo, std::optional<Index> rank) {
  BlockPlan plan(blocks, blocks);
  const std::size_t dims = blocks.empty() ? halo.below.dims() : blocks.dims();
  check_same_dims(dims, halo.below.dims(), "blocks and ghost widths");
  check_same_dims(dims, halo.above.dims(), "blocks and ghost widths");
  for (std::size_t d = 0; d < dims; ++d)
    if (halo.below[d] < 0 || halo.above[d] < 0)
      throw Error(ErrorKind::argument, "ghost width " + std::to_string(std::min(halo.below[d], halo.above[d])) + " in dimension " +
                                           std::to_string(d) + " is negative");
  if (!halo.periodic.empty()) check_same_dims(dims, halo.periodic.size(), "blocks and periodic dimensions");
  if (any(halo.periodic)) {
    check_same_dims(dims, halo.domain.dims(), "blocks and the periodic domain");
    Wide images = 1;  // that may have to be looked at
    for (std::size_t d = 0; d < dims; ++d) {
      if (halo.periodic[d] && !halo.domain.empty())
        images *= (Wide(halo.below[d]) + halo.above[d]) / halo.domain.extent(d) + 3;
      if (images > Wide(64 * most_shifts)) refuse_images(halo);
    }
    for (Index k = 0; k < blocks.size(); ++k)
      if (!halo.domain.contains(blocks.region(k)))
        throw Error(ErrorKind::argument, "block " + std::to_string(k) + " " + blocks.region(k).to_string() +
                                             " is not within the periodic domain " + halo.domain.to_string());
  } else {
    halo.periodic.clear();
    halo.domain = Region(Point(dims), Point(dims));
  }
  plan.kind_ = Kind::halo;
  plan.rank_ = rank;
  plan.halo_ = std::move(halo);
  plan.look_up();
  return plan;
}

void BlockPlan::copy(const Region& destination_region, Index destination, const Region& source_region, Index source) {
  check_block(this->source(), source, "source");
  check_block(this->destination(), destination, "destination");
  BlockMotion motion{source, destination, source_region, destination_region};
  check_same_dims(this->source().dims(), source_region.dims(), "a block and a region");
  check_same_dims(this->destination().dims(), destination_region.dims(), "a block and a region");
  if (source_region.size() != destination_region.size())
    throw Error(ErrorKind::shape, motion.to_string() + ": " + std::to_string(source_region.size()) + " points do not fill " +
                                      std::to_string(destination_region.size()));
  if (source_region.empty()) return;
  by_hand_.push_back(reversed_ ? turned(std::move(motion)) : std::move(motion));
}

std::uint8_t BlockPlan::shift_number(const Point& shift) {
  const auto at = std::find(shifts_.begin(), shifts_.end(), shift);
  if (at != shifts_.end()) return std::uint8_t(at - shifts_.begin());
  if (shifts_.size() == most_shifts) refuse_images(halo_);
  shifts_.push_back(shift);
  return std::uint8_t(shifts_.size() - 1);
}

/// What a destination block takes of a source block's image: usually one box, more where it goes around the block itself.
std::vector<Region> BlockPlan::pieces(Index destination, Index source, const Point& shift) const {
  const Region own = destination_.region(destination), image = source_.region(source).shift(shift);
  std::vector<Region> found;
  auto take = [&found](Region region) {
    if (!region.empty()) found.push_back(std::move(region));
  };
  if (kind_ == Kind::between) {
    take(own & image);
  } else if (!halo_.corners) {
    for (std::size_t d = 0; d < own.dims(); ++d)
      for (const Index up : {-1, 1}) {
        Point face(own.dims());
        face[d] = up;
        take(own.side(face, up < 0 ? halo_.below : halo_.above) & image);
      }
  } else {
    const Region all = own.grow(halo_.below, halo_.above) & image;
    if (!all.overlaps(own)) {
      take(all);
    } else {
      for (auto& piece : subtract(all, own)) take(std::move(piece));
    }
  }
  return found;
}

/// In how many dimensions the image lies beside the block itself: 0 where they overlap.
std::size_t BlockPlan::beside(Index destination, Index source, const Point& shift) const {
  const std::size_t dims = source_.dims();
  const Index* const own = &destination_.bounds()[std::size_t(destination) * 2 * dims];
  const Index* const other = &source_.bounds()[std::size_t(source) * 2 * dims];
  std::size_t n = 0;
  for (std::size_t d = 0; d < dims; ++d)
    n += Wide(other[d]) + shift[d] >= own[dims + d] || Wide(other[dims + d]) + shift[d] <= own[d];
  return n;
}

/// Whether there are pieces, given that the block's reach meets the image. Most neighbours do not overlap the block, and need no
/// geometry to be told.
bool BlockPlan::shares(Index destination, Index source, const Point& shift) const {
  if (kind_ == Kind::between) return true;
  const std::size_t n = beside(destination, source, shift);
  if (n == 0) return !pieces(destination, source, shift).empty();
  return n == 1 || halo_.corners;  // in one dimension alone: beyond a face
}

void BlockPlan::append(Neighbours& to, Index block, std::vector<std::pair<std::uint32_t, std::uint8_t>>& found) {
  if (found.empty()) return;
  std::sort(found.begin(), found.end());
  to.blocks.push_back(std::uint32_t(block));
  for (const auto& [other, shift] : found) to.others.push_back(other), to.shifts.push_back(shift);
  if (to.others.size() > std::numeric_limits<std::uint32_t>::max())
    throw Error(ErrorKind::memory_limit, "more pairs of neighbours than a plan holds; make a plan for each rank");
  to.starts.push_back(std::uint32_t(to.others.size()));
  found.clear();
}

void BlockPlan::look_up() {
  if (source_.empty() || destination_.empty()) return;
  const std::size_t dims = source_.dims();
  if (dims == 0) throw Error(ErrorKind::argument, "blocks of no dimensions have no neighbours to be looked up");
  const bool same = source_ == destination_;
  const RegionIndex sources(dims, source_.bounds());
  const RegionIndex others = same ? RegionIndex() : RegionIndex(dims, destination_.bounds());
  const RegionIndex& destinations = same ? sources : others;
  const Region all_sources = source_.bounding(), all_reach = destination_.bounding().grow(halo_.below, halo_.above);
  const std::vector<Point> in_place{Point(dims)};
  auto shifts = [&](const Region& moving, const Region& target) {
    return halo_.periodic.empty() ? in_place : periodic_shifts(moving, target, halo_.domain, halo_.periodic);
  };
  std::vector<std::pair<std::uint32_t, std::uint8_t>> found;
  std::vector<Index> meets;
  // Neighbours are so to each other, if both reach as far and neither covers the other's ghost cells.
  bool mutual = kind_ == Kind::halo && halo_.below == halo_.above;
  auto receive = [&](Index i) {
    const Region reach = destination_.region(i).grow(halo_.below, halo_.above);
    for (const auto& shift : shifts(all_sources, reach)) {
      const bool still = shift == in_place[0];
      sources.find(reach.shift(-shift), meets);
      std::optional<std::uint8_t> number;
      for (const Index j : meets) {
        if (j == i && still && kind_ == Kind::halo) continue;
        mutual = mutual && beside(i, j, shift) > 0;
        if (shares(i, j, shift)) found.emplace_back(std::uint32_t(j), number ? *number : *(number = shift_number(shift)));
      }
    }
    append(received_, i, found);
  };
  if (!rank_) {
    for (Index i = 0; i < destination_.size(); ++i) receive(i);
    return;
  }
  for (const Index i : destination_.owned_by(*rank_)) receive(i);
  if (mutual) {
    for (std::size_t k = 0; k < received_.blocks.size(); ++k) {
      for (std::size_t n = received_.starts[k]; n < received_.starts[k + 1]; ++n)
        if (destination_.owner(received_.others[n]) != *rank_)
          found.emplace_back(received_.others[n], shift_number(-shifts_[received_.shifts[n]]));
      append(sent_, received_.blocks[k], found);
    }
    return;
  }
  for (const Index j : source_.owned_by(*rank_)) {
    const Region region = source_.region(j);
    for (const auto& shift : shifts(region, all_reach)) {
      // The blocks whose reach the image meets are those that meet the image's own reach the other way.
      destinations.find(region.shift(shift).grow(halo_.above, halo_.below), meets);
      std::optional<std::uint8_t> number;
      for (const Index i : meets)
        if (destination_.owner(i) != *rank_ && shares(i, j, shift))
          found.emplace_back(std::uint32_t(i), number ? *number : *(number = shift_number(shift)));
    }
    append(sent_, j, found);
  }
}

void BlockPlan::emit(Index destination, Index source, std::uint8_t number, const Each& f) const {
  const Point& shift = shifts_[number];
  for (auto& piece : pieces(destination, source, shift)) {
    BlockMotion motion{source, destination, piece.shift(-shift), piece};
    f(reversed_ ? turned(std::move(motion)) : motion);
  }
}

void BlockPlan::for_each_shared(const Each& f) const {
  for (std::size_t k = 0; k < received_.blocks.size(); ++k)
    for (std::size_t n = received_.starts[k]; n < received_.starts[k + 1]; ++n)
      emit(received_.blocks[k], received_.others[n], received_.shifts[n], f);
  for (std::size_t k = 0; k < sent_.blocks.size(); ++k)
    for (std::size_t n = sent_.starts[k]; n < sent_.starts[k + 1]; ++n)
      emit(sent_.others[n], sent_.blocks[k], sent_.shifts[n], f);
}

void BlockPlan::for_each_by_hand(const Each& f) const {
  for (const auto& motion : by_hand_) {
    if (rank_ && source_.owner(motion.source) != *rank_ && destination_.owner(motion.destination) != *rank_) continue;
    f(reversed_ ? turned(motion) : motion);
  }
}

void BlockPlan::for_each(const Each& f) const {
  for_each_shared(f);
  for_each_by_hand(f);
}

template <class F>
std::vector<BlockMotion> BlockPlan::in_order(F&& wanted) const {
  std::vector<BlockMotion> all;
  auto take = [&](const BlockMotion& motion) {
    if (wanted(motion)) all.push_back(motion);
  };
  for_each_shared(take);
  std::sort(all.begin(), all.end(), [](const BlockMotion& a, const BlockMotion& b) {
    if (a.destination != b.destination) return a.destination < b.destination;
    if (a.source != b.source) return a.source < b.source;
    const Point &to_a = a.destination_region.lower(), &to_b = b.destination_region.lower();
    return to_a == to_b ? a.source_region.lower() < b.source_region.lower() : to_a < to_b;
  });
  for_each_by_hand(take);
  return all;
}

void BlockPlan::check_rank(Index rank) const {
  if (rank_ && *rank_ != rank)
    throw Error(ErrorKind::argument, "the plan is rank " + std::to_string(*rank_) + "'s; it does not hold the motions of rank " +
                                         std::to_string(rank));
}

std::vector<BlockMotion> BlockPlan::motions() const {
  return in_order([](const BlockMotion&) { return true; });
}

std::vector<BlockMotion> BlockPlan::receives(Index rank) const {
  check_rank(rank);
  return in_order([&](const BlockMotion& motion) { return destination().owner(motion.destination) == rank; });
}

std::vector<BlockMotion> BlockPlan::sends(Index rank) const {
  check_rank(rank);
  return in_order([&](const BlockMotion& motion) { return source().owner(motion.source) == rank; });
}

std::vector<BlockPlan::Volume> BlockPlan::volumes() const {
  std::map<std::pair<Index, Index>, Volume> found;
  for_each([&](const BlockMotion& motion) {
    const Index from = source().owner(motion.source), to = destination().owner(motion.destination);
    auto& volume = found.try_emplace({from, to}, Volume{from, to}).first->second;
    ++volume.motions;
    volume.points = checked_add(volume.points, motion.source_region.size());
  });
  std::vector<Volume> volumes;
  for (const auto& [ranks, volume] : found) volumes.push_back(volume);
  return volumes;
}

void BlockPlan::check_races(bool endogenous, bool combining) const {
  struct Use {
    Index block;
    bool writes;
    std::size_t motion;
  };
  const auto all = motions();
  auto region = [&](const Use& use) -> const Region& {
    return use.writes ? all[use.motion].destination_region : all[use.motion].source_region;
  };
  std::vector<Use> uses;
  for (std::size_t k = 0; k < all.size(); ++k) {
    uses.push_back({all[k].destination, true, k});
    if (endogenous) uses.push_back({all[k].source, false, k});
  }
  std::stable_sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) { return a.block < b.block; });

  auto collide = [combining](const Use& a, const Use& b) { return a.writes != b.writes || (a.writes && !combining); };
  auto refuse = [&](const Use& a, const Use& b) {
    const std::string where = "the points " + (region(a) & region(b)).to_string() + " of block " + std::to_string(a.block) +
                              " (rank " + std::to_string(destination().owner(a.block)) + ")";
    if (a.motion == b.motion)
      throw Error(ErrorKind::argument, "a motion reads and writes " + where + ": " + all[a.motion].to_string());
    const auto &one = all[std::min(a.motion, b.motion)], &two = all[std::max(a.motion, b.motion)];
    const char* what = a.writes && b.writes ? "two motions write " : "one motion reads and another writes ";
    throw Error(ErrorKind::argument, what + where + ": " + one.to_string() + " and " + two.to_string());
  };
  // A block's uses are looked at in pairs where they are few, and in an index of what is written where they are many.
  constexpr std::size_t few = 32;
  std::vector<Region> written;
  std::vector<std::size_t> writers;
  std::vector<Index> meets;
  for (std::size_t first = 0, last; first < uses.size(); first = last) {
    for (last = first; last < uses.size() && uses[last].block == uses[first].block;) ++last;
    if (last - first <= few) {
      for (std::size_t k = first; k < last; ++k)
        for (std::size_t j = k + 1; j < last; ++j)
          if (collide(uses[k], uses[j]) && region(uses[k]).overlaps(region(uses[j]))) refuse(uses[k], uses[j]);
      continue;
    }
    written.clear(), writers.clear();
    for (std::size_t k = first; k < last; ++k)
      if (uses[k].writes) written.push_back(region(uses[k])), writers.push_back(k);
    const RegionIndex index(written);
    for (std::size_t k = first; k < last; ++k) {
      index.find(region(uses[k]), meets);
      for (const Index j : meets)
        if (const std::size_t other = writers[std::size_t(j)]; other != k && collide(uses[other], uses[k])) refuse(uses[other], uses[k]);
    }
  }
}

BlockPlan BlockPlan::reverse() const {
  BlockPlan back = *this;
  back.reversed_ = !reversed_;
  return back;
}

bool BlockPlan::operator==(const BlockPlan& other) const {
  return source() == other.source() && destination() == other.destination() && kind_ == other.kind_ &&
         (reversed_ == other.reversed_ || kind_ == Kind::by_hand) && rank_ == other.rank_ && halo_ == other.halo_ &&
         [&] {
           auto theirs = other.by_hand_;
           if (reversed_ != other.reversed_)
             for (auto& motion : theirs) motion = turned(std::move(motion));
           return by_hand_ == theirs;
         }();
}

std::uint64_t BlockPlan::digest() const {
  std::uint64_t hash = 14695981039346656037ull;  // FNV-1a, a number at a time
  auto mix = [&hash](std::uint64_t x) {
    hash = (hash ^ x) * 1099511628211ull;
    hash ^= hash >> 32;
  };
  auto mix_points = [&](std::span<const Index> values) {
    for (const Index x : values) mix(std::uint64_t(x));
  };
  mix(source().digest());
  mix(destination().digest());
  mix(std::uint64_t(kind_));
  mix(kind_ != Kind::by_hand && reversed_);
  for (const Point* point : {&halo_.below, &halo_.above, &halo_.domain.lower(), &halo_.domain.upper()}) mix_points(*point);
  for (const bool flag : halo_.periodic) mix(flag);
  mix(halo_.corners);
  for (const auto& hand : by_hand_) {
    const auto motion = reversed_ ? turned(hand) : hand;
    mix(std::uint64_t(motion.source));
    mix(std::uint64_t(motion.destination));
    for (const Region* region : {&motion.source_region, &motion.destination_region})
      mix_points(region->lower()), mix_points(region->upper());
  }
  return hash;
}

Index BlockPlan::workspace_bytes() const {
  auto bytes = [](const Neighbours& n) {
    return (n.blocks.capacity() + n.starts.capacity() + n.others.capacity()) * sizeof(std::uint32_t) + n.shifts.capacity();
  };
  return Index(sizeof *this + bytes(received_) + bytes(sent_) + shifts_.capacity() * sizeof(Point) +
               by_hand_.capacity() * sizeof(BlockMotion));
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

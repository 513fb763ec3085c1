// Who a block's neighbours are, and what it takes of them.
#include <algorithm>

#include "longshore/plans/block_plan.hpp"
#include "longshore/regions/region_index.hpp"

namespace longshore {

namespace {

constexpr std::size_t most_shifts = 256;

[[noreturn]] void refuse_images(const Region& domain) {
  throw Error(ErrorKind::memory_limit, "the blocks reach so far that they meet more than " + std::to_string(most_shifts) +
                                           " images of the periodic domain " + domain.to_string());
}

/// Refuses what meets more images than anybody looks at.
void check_images(const Region& moving, const Region& reach, const Halo& halo) {
  auto extent = [](const Region& region, std::size_t d) { return Wide(region.upper()[d]) - region.lower()[d]; };
  Wide images = 1;
  for (std::size_t d = 0; d < halo.periodic.size(); ++d) {
    if (halo.periodic[d] && extent(halo.domain, d) > 0)
      images *= (extent(moving, d) + extent(reach, d)) / extent(halo.domain, d) + 2;
    if (images > Wide(64 * most_shifts)) refuse_images(halo.domain);
  }
}

}  // namespace

void BlockPlan::find_neighbours(Kind kind, Halo halo, std::optional<Index> rank, Index most_pairs) {
  kind_ = kind;
  rank_ = rank;
  halo_ = std::move(halo);
  check_halo();
  look_up(most_pairs);
}

void BlockPlan::check_halo() {
  const std::size_t dims = !destination_.empty() ? destination_.dims() : !source_.empty() ? source_.dims() : halo_.below.dims();
  check_same_dims(dims, halo_.below.dims(), "blocks and ghost widths");
  check_same_dims(dims, halo_.above.dims(), "blocks and ghost widths");
  for (std::size_t d = 0; d < dims; ++d)
    if (halo_.below[d] < 0 || halo_.above[d] < 0)
      throw Error(ErrorKind::argument, "ghost width " + std::to_string(std::min(halo_.below[d], halo_.above[d])) +
                                           " in dimension " + std::to_string(d) + " is negative");
  if (!halo_.periodic.empty()) check_same_dims(dims, halo_.periodic.size(), "blocks and periodic dimensions");
  if (std::find(halo_.periodic.begin(), halo_.periodic.end(), true) == halo_.periodic.end()) {
    halo_.periodic.clear();
    halo_.domain = Region(Point(dims), Point(dims));
    return;
  }
  check_same_dims(dims, halo_.domain.dims(), "blocks and the periodic domain");
  for (Index k = 0; k < source_.size(); ++k)
    if (!halo_.domain.contains(source_.region(k)))
      throw Error(ErrorKind::argument, "block " + std::to_string(k) + " " + source_.region(k).to_string() +
                                           " is not within the periodic domain " + halo_.domain.to_string());
}

std::uint8_t BlockPlan::shift_number(const Point& shift) {
  const auto at = std::find(shifts_.begin(), shifts_.end(), shift);
  if (at != shifts_.end()) return std::uint8_t(at - shifts_.begin());
  if (shifts_.size() == most_shifts) refuse_images(halo_.domain);
  shifts_.push_back(shift);
  return std::uint8_t(shifts_.size() - 1);
}

/// A source block as destinations see it.
Region BlockPlan::image(Index source, const Point& shift) const {
  return permuted(source_.region(source), axes_).shift(shift);
}

/// What a destination block takes of a source block's image: usually one box, more where it goes around the block itself.
std::vector<Region> BlockPlan::pieces(Index destination, Index source, const Point& shift) const {
  const Region own = destination_.region(destination), other = image(source, shift);
  std::vector<Region> found;
  auto take = [&found](Region region) {
    if (!region.empty()) found.push_back(std::move(region));
  };
  if (kind_ == Kind::between) {
    take(own & other);
  } else if (!halo_.corners) {
    for (std::size_t d = 0; d < own.dims(); ++d)
      for (const Index up : {-1, 1}) {
        Point face(own.dims());
        face[d] = up;
        take(own.side(face, up < 0 ? halo_.below : halo_.above) & other);
      }
  } else {
    const Region all = own.grow(halo_.below, halo_.above) & other;
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

void BlockPlan::look_up(Index most_pairs) {
  if (source_.empty() || destination_.empty()) return;
  const std::size_t dims = source_.dims();
  if (dims == 0) throw Error(ErrorKind::argument, "blocks of no dimensions have no neighbours to be looked up");
  const FloorPlan seen = axes_.empty() ? source_ : source_.transpose(axes_);
  const bool same = seen == destination_;
  const RegionIndex sources(dims, seen.bounds());
  const RegionIndex others = same ? RegionIndex() : RegionIndex(dims, destination_.bounds());
  const RegionIndex& destinations = same ? sources : others;
  const Region all_sources = seen.bounding(), all_reach = destination_.bounding().grow(halo_.below, halo_.above);
  check_images(all_sources, all_reach, halo_);
  const std::vector<Point> in_place{Point(dims)};
  auto shifts = [&](const Region& moving, const Region& target) {
    return halo_.periodic.empty() ? in_place : periodic_shifts(moving, target, halo_.domain, halo_.periodic);
  };
  std::vector<std::pair<std::uint32_t, std::uint8_t>> found;
  auto append = [&](Neighbours& to, Index block) {
    if (found.empty()) return;
    std::sort(found.begin(), found.end());
    to.blocks.push_back(std::uint32_t(block));
    for (const auto& [other, shift] : found) to.others.push_back(other), to.shifts.push_back(shift);
    if (Index(to.others.size()) > most_pairs)
      throw Error(ErrorKind::memory_limit, "more than " + std::to_string(most_pairs) +
                                               " pairs of neighbours; make a plan for each rank, which has fewer");
    to.starts.push_back(std::uint32_t(to.others.size()));
    found.clear();
  };
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
    append(received_, i);
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
      append(sent_, received_.blocks[k]);
    }
    return;
  }
  for (const Index j : source_.owned_by(*rank_)) {
    const Region region = seen.region(j);
    for (const auto& shift : shifts(region, all_reach)) {
      // The blocks whose reach the image meets are those that meet the image's own reach the other way.
      destinations.find(region.shift(shift).grow(halo_.above, halo_.below), meets);
      std::optional<std::uint8_t> number;
      for (const Index i : meets)
        if (destination_.owner(i) != *rank_ && shares(i, j, shift))
          found.emplace_back(std::uint32_t(i), number ? *number : *(number = shift_number(shift)));
    }
    append(sent_, j);
  }
}

}  // namespace longshore

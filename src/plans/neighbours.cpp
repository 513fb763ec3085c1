#include "plans/neighbours.hpp"

#include <algorithm>
#include <limits>

#include "longshore/regions/region_index.hpp"

namespace longshore {

namespace {

/// Refuses what meets more images than anybody looks at. The same
/// on all ranks: of the domain's images each meets its own few.
void check_images(const Region& moving, const Region& reach, const Halo& halo) {
  constexpr Wide most_images = 1 << 14;
  auto extent = [](const Region& region, std::size_t d) { return Wide(region.upper()[d]) - region.lower()[d]; };
  Wide images = 1;
  for (std::size_t d = 0; d < halo.periodic.size(); ++d) {
    if (halo.periodic[d] && extent(halo.domain, d) > 0)
      images *= (extent(moving, d) + extent(reach, d)) / extent(halo.domain, d) + 2;
    if (images > most_images)
      throw Error(ErrorKind::memory_limit, "the blocks reach so far that they meet more than " +
                                               std::to_string(Index(most_images)) + " images of the periodic domain " +
                                               halo.domain.to_string());
  }
}

}  // namespace

Neighbours::Neighbours(BlockPlan::Kind kind, FloorPlan source, FloorPlan destination, const Axes& axes, Halo halo,
                       std::optional<Index> rank, Index most_pairs)
    : kind_(kind),
      source_(std::move(source)),
      destination_(std::move(destination)),
      axes_(axes),
      axes_back_(inverse(axes)),
      halo_(std::move(halo)) {
  look_up(rank, most_pairs);
}

Neighbours::Neighbours(const Neighbours& all, Axes swept)
    : kind_(all.kind_), source_(all.source_), destination_(all.destination_), halo_(all.halo_), shifts_(all.shifts_) {
  const std::size_t dims = source_.dims(), across = swept.back();
  Sweep sweep{std::move(swept), Point(dims, std::numeric_limits<Index>::min()),
              Point(dims, std::numeric_limits<Index>::max())};
  for (std::size_t d = 0; d < dims; ++d)
    if (halo_.periodic.empty() || !halo_.periodic[d])
      sweep.first[d] = source_.cuts()[d].front(), sweep.last[d] = source_.cuts()[d].back();
  sweep_ = std::make_shared<const Sweep>(std::move(sweep));
  // Of a lattice, those beside each other in this phase's dimension alone are so along a whole face.
  auto faces = [&](Index destination, Index source, const Point& shift) {
    const Index* const own = &destination_.bounds()[std::size_t(destination) * 2 * dims];
    const Index* const other = &source_.bounds()[std::size_t(source) * 2 * dims];
    for (std::size_t d = 0; d < dims; ++d)
      if (d != across && Wide(other[d]) + shift[d] != own[d]) return false;
    return true;
  };
  auto keep = [&](const Lists& from, Lists& to, bool received) {
    for (std::size_t k = 0; k < from.blocks.size(); ++k) {
      const Index block = from.blocks[k];
      for (std::size_t n = from.starts[k]; n < from.starts[k + 1]; ++n) {
        const Index other = from.others[n];
        if (!faces(received ? block : other, received ? other : block, shifts_[from.shifts[n]])) continue;
        to.others.push_back(from.others[n]), to.shifts.push_back(from.shifts[n]);
      }
      if (to.starts.back() == to.others.size()) continue;
      to.blocks.push_back(from.blocks[k]), to.starts.push_back(std::uint32_t(to.others.size()));
    }
  };
  keep(all.received_, received_, true), keep(all.sent_, sent_, false);
}

const Axes& Neighbours::swept() const {
  static const Axes none;
  return sweep_ ? sweep_->dims : none;
}

/// Where a shift is among those to all images.
std::uint16_t Neighbours::shift_number(const Point& shift) const {
  return std::uint16_t(std::lower_bound(shifts_.begin(), shifts_.end(), shift) - shifts_.begin());
}

/// A source block as destinations see it.
Region Neighbours::image(Index source, const Point& shift) const {
  return permuted(source_.region(source), axes_).shift(shift);
}

/// What a destination block takes of a source block's image:
/// usually one box, more where it goes around the block itself.
std::vector<Region> Neighbours::pieces(Index destination, Index source, const Point& shift) const {
  const Region own = destination_.region(destination), other = image(source, shift);
  std::vector<Region> found;
  auto take = [&found](Region region) {
    if (!region.empty()) found.push_back(std::move(region));
  };
  if (sweep_) {
    Region face{Point(own.dims()), Point(own.dims())};
    if (one_piece(destination, source, shift, face)) take(std::move(face));
    return found;
  }
  if (kind_ == BlockPlan::Kind::between) {
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

Neighbours::Place Neighbours::place(Index destination, Index source, const Point& shift) const {
  const std::size_t dims = source_.dims();
  const Index* const own = &destination_.bounds()[std::size_t(destination) * 2 * dims];
  const Index* const other = &source_.bounds()[std::size_t(source) * 2 * dims];
  Place place;
  for (std::size_t d = 0; d < dims; ++d) {
    const Wide lower = Wide(other[d]) + shift[d], upper = Wide(other[dims + d]) + shift[d];
    place.beside += lower >= own[dims + d] || upper <= own[d];
    place.beyond |= (halo_.below[d] > 0 && lower < own[d]) || (halo_.above[d] > 0 && upper > own[dims + d]);
  }
  return place;
}

void Neighbours::look_up(std::optional<Index> rank, Index most_pairs) {
  if (source_.empty() || destination_.empty()) return;
  const std::size_t dims = source_.dims();
  if (dims == 0) throw Error(ErrorKind::argument, "blocks of no dimensions have no neighbours to be looked up");
  const Region all_sources = permuted(source_.bounding(), axes_);
  const Region all_reach = destination_.bounding().grow(halo_.below, halo_.above);
  check_images(all_sources, all_reach, halo_);
  const std::vector<Point> in_place{Point(dims)};
  auto shifts = [&](const Region& moving, const Region& target) {
    return halo_.periodic.empty() ? in_place : periodic_shifts(moving, target, halo_.domain, halo_.periodic);
  };
  shifts_ = shifts(all_sources, all_reach);

  // Blocks upon blocks have few pairs, or none, and take the time
  // of many: no more is spent than some pairs would explain.
  const Wide most_looks = 64 * Wide(most_pairs) + 1024 * (Wide(source_.size()) + destination_.size());
  Wide looks = 0;
  std::vector<Index> meets;
  auto find = [&](const RegionIndex& blocks, const Region& region) -> const std::vector<Index>& {
    looks += 1 + Wide(blocks.find(region, meets)) + Wide(meets.size());
    if (looks > most_looks)
      throw Error(ErrorKind::memory_limit,
                  "looking for " + std::to_string(most_pairs) +
                      " pairs of neighbours at most takes too long: blocks lie upon each other");
    return meets;
  };
  std::vector<std::pair<std::uint32_t, std::uint16_t>> found;
  auto take = [&](Index other, std::uint16_t shift) {
    if (Index(found.size() + received_.others.size() + sent_.others.size()) >= most_pairs)
      throw Error(ErrorKind::memory_limit, "more than " + std::to_string(most_pairs) +
                                               " pairs of neighbours; make a plan for each rank, which has fewer");
    found.emplace_back(std::uint32_t(other), shift);
  };
  auto append = [&](Lists& to, Index block) {
    if (found.empty()) return;
    std::sort(found.begin(), found.end());
    to.blocks.push_back(std::uint32_t(block));
    for (const auto& [other, shift] : found) to.others.push_back(other), to.shifts.push_back(shift);
    to.starts.push_back(std::uint32_t(to.others.size()));
    found.clear();
  };
  // Neighbours are so to each other, if both reach as far and neither covers the other's ghost cells.
  bool mutual = kind_ == BlockPlan::Kind::halo && halo_.below == halo_.above;
  // Whether there are pieces, given that the block's reach meets the image: told without working them out.
  auto shares = [&](Index destination, Index source, const Point& shift) {
    if (kind_ == BlockPlan::Kind::between) return true;
    const Place at = place(destination, source, shift);
    mutual = mutual && at.beside > 0;
    return at.beside == 0 ? at.beyond : at.beside == 1 || halo_.corners;  // in one dimension alone: beyond a face
  };
  auto receive = [&](Index i) {
    const Region reach = destination_.region(i).grow(halo_.below, halo_.above);
    for (const auto& shift : shifts(all_sources, reach)) {
      const bool still = shift == in_place[0];
      const std::uint16_t number = shift_number(shift);
      for (const Index j : find(source_.index(), permuted(reach.shift(-shift), axes_back_)))
        if (!(j == i && still && kind_ == BlockPlan::Kind::halo) && shares(i, j, shift)) take(j, number);
    }
    append(received_, i);
  };
  if (!rank)
    for (Index i = 0; i < destination_.size(); ++i) receive(i);
  else
    for (const Index i : destination_.owned_by(*rank)) receive(i);
  if (rank && mutual) {
    for (std::size_t k = 0; k < received_.blocks.size(); ++k) {
      for (std::size_t n = received_.starts[k]; n < received_.starts[k + 1]; ++n)
        if (destination_.owner(received_.others[n]) != *rank)
          take(received_.others[n], shift_number(-shifts_[received_.shifts[n]]));
      append(sent_, received_.blocks[k]);
    }
  } else if (rank) {
    for (const Index j : source_.owned_by(*rank)) {
      const Region region = permuted(source_.region(j), axes_);
      for (const auto& shift : shifts(region, all_reach)) {
        const std::uint16_t number = shift_number(shift);
        // The blocks whose reach the image meets are those that meet the image's own reach the other way.
        for (const Index i : find(destination_.index(), region.shift(shift).grow(halo_.above, halo_.below)))
          if (destination_.owner(i) != *rank && shares(i, j, shift)) take(i, number);
      }
      append(sent_, j);
    }
  }
  for (auto* lists : {&received_, &sent_}) lists->others.shrink_to_fit(), lists->shifts.shrink_to_fit();
}

/// The same where it is one box, as it is but for blocks that lie upon each other, without making any region anew:
/// halos ask for it by the hundred thousand. False where `pieces` has to be asked.
bool Neighbours::one_piece(Index destination, Index source, const Point& shift, Region& piece) const {
  const bool halo = kind_ == BlockPlan::Kind::halo;
  if (halo && !halo_.corners) return false;
  const std::size_t dims = source_.dims();
  const Index* const own = &destination_.bounds()[std::size_t(destination) * 2 * dims];
  const Index* const other = &source_.bounds()[std::size_t(source) * 2 * dims];
  bool beside = !halo, some = true;
  for (std::size_t d = 0; d < dims; ++d) {
    const std::size_t e = axes_.empty() ? d : axes_[d];
    const Index lower = checked_add(other[e], shift[d]), upper = checked_add(other[dims + e], shift[d]);
    beside |= lower >= own[dims + d] || upper <= own[d];
    const bool grows = sweep_ && sweep_->grown(d);
    const Index first = std::max(grows ? sweep_->first[d] : lower, halo ? checked_sub(own[d], halo_.below[d]) : own[d]);
    const Index last =
        std::min(grows ? sweep_->last[d] : upper, halo ? checked_add(own[dims + d], halo_.above[d]) : own[dims + d]);
    some &= first < last;
    piece.set(d, first, last);
  }
  return beside && some;
}

void Neighbours::for_each(bool reversed, const std::function<void(const BlockMotion&)>& f) const {
  const std::size_t dims = source_.dims();
  const Region nowhere{Point(dims), Point(dims)};
  BlockMotion motion{0, 0, nowhere, nowhere, reversed ? axes_back_ : axes_};  // used again and again
  // What destinations see, and what it is of its source.
  Region &piece = reversed ? motion.source_region : motion.destination_region,
         &origin = reversed ? motion.destination_region : motion.source_region;
  std::vector<BlockMotion> several;
  // Of two blocks, the images by these shifts.
  auto emit = [&](Index destination, Index source, std::span<const std::uint16_t> shifts) {
    motion.source = reversed ? destination : source, motion.destination = reversed ? source : destination;
    auto place = [&](const Point& shift) {
      for (std::size_t d = 0; d < dims; ++d)
        origin.set(axes_.empty() ? d : axes_[d], piece.lower()[d] - shift[d], piece.upper()[d] - shift[d]);
    };
    if (shifts.size() == 1 && one_piece(destination, source, shifts_[shifts[0]], piece)) {
      place(shifts_[shifts[0]]);
      return f(motion);
    }
    several.clear();
    for (const std::uint16_t number : shifts)
      for (auto& box : pieces(destination, source, shifts_[number])) {
        piece = std::move(box);
        place(shifts_[number]);
        several.push_back(motion);
      }
    std::sort(several.begin(), several.end(), BlockMotion::before);
    for (const auto& one : several) f(one);
  };
  for (const auto* lists : {&received_, &sent_})
    for (std::size_t k = 0; k < lists->blocks.size(); ++k)
      for (std::size_t n = lists->starts[k], next; n < lists->starts[k + 1]; n = next) {
        for (next = n + 1; next < lists->starts[k + 1] && lists->others[next] == lists->others[n];) ++next;
        const Index block = lists->blocks[k], other = lists->others[n];
        const bool received = lists == &received_;
        emit(received ? block : other, received ? other : block, std::span(lists->shifts).subspan(n, next - n));
      }
}

bool Neighbours::sources_apart() const {
  if (sweep_) return true;  // the cells of a lattice
  std::vector<bool> takes_part(std::size_t(source_.size()));
  for (const auto* sources : {&received_.others, &sent_.blocks})
    for (const std::uint32_t k : *sources) takes_part[k] = true;
  std::vector<Index> meets;
  for (Index k = 0; k < source_.size(); ++k)
    if (takes_part[std::size_t(k)]) {
      source_.index().find(source_.region(k), meets);
      if (meets.size() > 1) return false;
    }
  return true;
}

Index Neighbours::workspace_bytes() const {
  Index total = Index(sizeof *this + shifts_.capacity() * sizeof(Point) +
                      (axes_.capacity() + axes_back_.capacity()) * sizeof(std::size_t));
  for (const auto* lists : {&received_, &sent_})
    total +=
        Index((lists->blocks.capacity() + lists->starts.capacity() + lists->others.capacity()) * sizeof(std::uint32_t) +
              lists->shifts.capacity() * sizeof(std::uint16_t));
  return total;
}

}  // namespace longshore

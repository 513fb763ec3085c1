// Destinations of a relation without a reduction do not overlap: found out in the cheapest way that tells.
#include <algorithm>
#include <bit>
#include <numeric>
#include <queue>

#include "longshore/sequences/affine_run.hpp"
#include "relations/parts.hpp"

namespace longshore {

namespace {

using PairList = AddressRelation::PairList;

/// Does every element come after the one before it ends?
bool ascends(const PairList& pairs, Index element) {
  bool ascending = true;
  for (std::size_t k = 1; k < pairs.size(); ++k)
    ascending &= pairs[k].destination >= pairs[k - 1].destination + element;
  return ascending;
}

bool ascends(const AddressRelation::RunList& runs, Index element) {
  Index end = runs.front().destination;
  for (const auto& run : runs) {
    if (run.destination < end || (run.count > 1 && run.destination_step < element)) return false;
    end = run.at(run.count - 1).destination + element;
  }
  return true;
}

bool ascends(const PackedList& list) {
  const auto blocks = list.reader(0, list.elements());
  bool ascending = true, any = false;
  Index end = 0;
  for_each_run(*blocks, [&](const OffsetRun& run) {
    ascending = ascending && (!any || run.destination >= end);
    end = run.destination + run.count * list.element_bytes();
    any = true;
  });
  return ascending;
}

bool distinct_by_itself(const AddressRelation::Part& part, Index element) {
  if (const auto* nest = std::get_if<LoopNest>(&part)) return nest->distinct_destinations();
  if (const auto* list = std::get_if<PackedList>(&part)) return ascends(*list);
  if (const auto* pairs = std::get_if<PairList>(&part)) return ascends(*pairs, element);
  return ascends(std::get<AddressRelation::RunList>(part), element);
}

/// Parts whose destinations may be the same bytes, and have to be looked at.
struct Suspects {
  const AddressRelation* relation;
  std::vector<Interval> positions;
  Interval extent;
  Index elements = 0;
  bool told = true;  ///< every part is known to be distinct by itself
};

[[noreturn]] void refuse(Index a, const OffsetPair& first, Index b, const OffsetPair& second) {
  auto words = [](Index position, const OffsetPair& pair) {
    return "pair " + std::to_string(position) + " (" + std::to_string(pair.source) + " -> " +
           std::to_string(pair.destination) + ")";
  };
  throw Error(ErrorKind::argument,
              words(a, first) + " and " + words(b, second) +
                  " write the same bytes; give a combining operation (add, minimum, ...) or one destination "
                  "to each pair");
}

[[noreturn]] void refuse_to_look(const Suspects& suspects) {
  throw Error(ErrorKind::memory_limit,
              "whether the destinations of " + std::to_string(suspects.elements) +
                  " interleaved elements overlap cannot be told; build the relation from parts that "
                  "do not interleave, or give a combining operation");
}

/// Calls f(position, run) for every run.
template <class F>
void for_each_run_at(const Suspects& suspects, F&& f) {
  const auto& parts = suspects.relation->parts();
  const auto* pairs = parts.size() == 1 ? std::get_if<PairList>(&parts.front()) : nullptr;
  for (auto [position, last] : suspects.positions) {
    if (pairs) {  // without the detour of batches, which takes longer than the looking
      for (; position < last; ++position) {
        const auto& pair = (*pairs)[std::size_t(position)];
        f(position, OffsetRun{pair.source, pair.destination, 1, 0, 0});
      }
      continue;
    }
    const auto some = suspects.relation->reader(position, last);
    for_each_run(*some, [&, at = position](const OffsetRun& run) mutable {
      f(at, run);
      at += run.count;
    });
  }
}

/// Names the first two pairs that write a byte. In no run do elements overlap.
[[noreturn]] void refuse_byte(const Suspects& suspects, Index byte) {
  Index position_of_first = -1;
  OffsetPair first;
  for_each_run_at(suspects, [&](Index position, const OffsetRun& run) {
    const Index step = std::abs(run.destination_step);
    const Index away = run.destination_step < 0 ? run.destination - byte : byte - run.destination;
    // The last element that begins at the byte or before it.
    const Index k = run.count == 1 || step == 0 ? 0
                    : run.destination_step < 0  ? away / step + (away % step > 0)
                                                : away / step;
    if (k < 0 || k >= run.count) return;
    const auto pair = run.at(k);
    if (pair.destination > byte || pair.destination + suspects.relation->element_bytes() <= byte) return;
    if (position_of_first >= 0) refuse(position_of_first, first, position + k, pair);
    position_of_first = position + k, first = pair;
  });
  throw Error(ErrorKind::argument, "two pairs write byte " + std::to_string(byte));
}

/// What one look at every run tells.
struct Survey {
  Index runs = 0;
  Index unit;  ///< all destinations and elements are whole multiples of it, counted from the first destination
};

Survey survey(const Suspects& suspects) {
  const Index element = suspects.relation->element_bytes(), origin = suspects.extent.first;
  // Lists may be read as long as they are; a nest has more runs than anybody waits for.
  const Index most = std::max<Index>(Index{1} << 22, suspects.relation->workspace_bytes() / Index(sizeof(OffsetPair)));
  Survey result{0, element};
  // Divisions are slow, and most elements are powers of two: what their offsets have in common shows in the lowest bit.
  const bool binary = std::has_single_bit(std::uint64_t(element));
  std::uint64_t offsets = std::uint64_t(element);
  for_each_run_at(suspects, [&](Index position, const OffsetRun& run) {
    if (++result.runs > most) refuse_to_look(suspects);
    if (run.count > 1 && std::abs(run.destination_step) < element) refuse(position, run.at(0), position + 1, run.at(1));
    auto divide = [&](Index offset) {
      offsets |= std::uint64_t(offset);
      if (!binary && offset % result.unit != 0) result.unit = std::gcd(result.unit, offset);
    };
    divide(run.destination - origin);
    if (run.count > 1) divide(run.destination_step);
  });
  if (binary) result.unit = Index(offsets & -offsets);
  return result;
}

/// One bit a unit: for destinations that lie closely.
void check_by_bits(const Suspects& suspects, Index unit, Index places) {
  const Index origin = suspects.extent.first, width = suspects.relation->element_bytes() / unit;
  std::vector<std::uint64_t> bits(std::size_t(places / 64 + 1));
  const int shift = std::has_single_bit(std::uint64_t(unit)) ? std::countr_zero(std::uint64_t(unit)) : -1;
  auto in_units = [&](Index bytes) { return shift >= 0 ? bytes >> shift : bytes / unit; };
  for_each_run_at(suspects, [&](Index, const OffsetRun& run) {
    Index place = in_units(run.destination - origin);
    if (width == 1 && run.count == 1) {  // most lists
      auto& word = bits[std::size_t(place / 64)];
      const std::uint64_t mask = std::uint64_t(1) << place % 64;
      if (word & mask) refuse_byte(suspects, run.destination);
      word |= mask;
      return;
    }
    const Index step = in_units(run.destination_step);
    // Elements that touch are one long one.
    const bool touch = run.count > 1 && std::abs(step) == width;
    if (touch && step < 0) place += (run.count - 1) * step;
    const Index length = touch ? run.count * width : width;
    for (Index k = touch ? run.count - 1 : 0; k < run.count; ++k, place += step)
      for (Index at = place, end = place + length; at < end;) {
        const Index n = std::min(end - at, 64 - at % 64);
        const std::uint64_t mask = ~std::uint64_t(0) >> (64 - n) << (at % 64);
        auto& word = bits[std::size_t(at / 64)];
        if (word & mask) refuse_byte(suspects, origin + (at / 64 * 64 + std::countr_zero(word & mask)) * unit);
        word |= mask;
        at += n;
      }
  });
}

/// Runs merged in the order of their destinations: for those that lie
/// far apart. What no other run interleaves with is passed at once.
void check_by_merging(const Suspects& suspects, Index runs) {
  const Index element = suspects.relation->element_bytes();
  std::vector<AffineRun> strips;  // of destinations, ascending
  strips.reserve(std::size_t(runs));
  for_each_run_at(suspects, [&](Index, const OffsetRun& run) {
    const bool down = run.count > 1 && run.destination_step < 0;
    strips.push_back(
        {down ? run.at(run.count - 1).destination : run.destination, std::abs(run.destination_step), run.count});
  });
  std::sort(strips.begin(), strips.end(), [](const AffineRun& a, const AffineRun& b) { return a.first < b.first; });

  auto later = [](const AffineRun* a, const AffineRun* b) { return a->first > b->first; };
  std::priority_queue<AffineRun*, std::vector<AffineRun*>, decltype(later)> open(later);
  Index end = suspects.extent.first;
  Index looks = std::max<Index>(Index{1} << 26, 64 * runs);  // at levels of the queue
  for (std::size_t k = 0; k < strips.size() || !open.empty();) {
    if (open.empty() || (k < strips.size() && strips[k].first <= open.top()->first)) {
      open.push(&strips[k++]);
      continue;
    }
    AffineRun& strip = *open.top();
    open.pop();
    if (strip.first < end) refuse_byte(suspects, strip.first);
    looks -= std::bit_width(open.size() + 1);
    if (looks < 0) refuse_to_look(suspects);
    Index n = strip.count;  // of its elements that come before anybody else's
    if (n > 1 && !open.empty()) n = std::min(n, (open.top()->first - strip.first) / strip.step + 1);
    if (n > 1 && k < strips.size()) n = std::min(n, (strips[k].first - strip.first) / strip.step + 1);
    strip.first += (n - 1) * strip.step;
    end = strip.first + element;
    strip.count -= n;
    if (strip.count > 0) strip.first += strip.step, open.push(&strip);
  }
}

void check(Suspects suspects) {
  // More elements than there is room for: the first so many do already.
  const Index room = (suspects.extent.last - suspects.extent.first) / suspects.relation->element_bytes() + 1;
  for (Index before = 0; auto& [first, last] : suspects.positions) {
    last = std::min(last, first + (room - before));
    before += last - first;
  }
  suspects.elements = std::min(suspects.elements, room);
  const auto found = survey(suspects);
  const Index places = (suspects.extent.last - suspects.extent.first) / found.unit;
  constexpr Index most_elements = Index{1} << 28, most_bits = Index{1} << 31;
  if (suspects.elements <= most_elements && places <= std::clamp<Index>(suspects.elements * 64, 1 << 20, most_bits))
    return check_by_bits(suspects, found.unit, places);
  check_by_merging(suspects, found.runs);
}

}  // namespace

void AddressRelation::check_destinations() const {
  if (!reduction_.is_replace() || elements_ <= 1) return;

  std::vector<Suspects> all;
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    const Index end = k + 1 < parts_.size() ? starts_[k + 1] : elements_;
    Suspects part{this,
                  {{starts_[k], end}},
                  destination_extent_,
                  end - starts_[k],
                  distinct_by_itself(parts_[k], element_bytes_)};
    if (parts_.size() > 1) {
      Extents extents(element_bytes_);
      extents.add(parts_[k]);
      part.extent = extents.destination;
    }
    all.push_back(std::move(part));
  }
  // Only parts whose extents overlap can write the same bytes.
  std::sort(all.begin(), all.end(),
            [](const Suspects& a, const Suspects& b) { return a.extent.first < b.extent.first; });
  std::vector<Suspects> groups;
  for (auto& part : all) {
    if (groups.empty() || part.extent.first >= groups.back().extent.last) {
      groups.push_back(std::move(part));
      continue;
    }
    auto& group = groups.back();
    group.positions.push_back(part.positions[0]);
    group.extent.last = std::max(group.extent.last, part.extent.last);
    group.elements += part.elements;
    group.told = false;
  }
  for (auto& group : groups) {
    if (group.told) continue;
    std::sort(group.positions.begin(), group.positions.end(),
              [](const Interval& a, const Interval& b) { return a.first < b.first; });
    check(group);
  }
}

}  // namespace longshore

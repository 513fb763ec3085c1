#include "ranks/set_algebra.hpp"

#include <algorithm>
#include <bit>

#include "ranks/forms.hpp"
#include "ranks/make.hpp"
#include "ranks/runs.hpp"

namespace longshore {

namespace ranks {

void check_worlds(const RankMap& a, const RankMap& b) {
  if (a.world() != b.world())
    throw Error(ErrorKind::argument, "one group is of a world of " + std::to_string(a.world()) +
                                         " ranks, the other of " + std::to_string(b.world()));
}

void check_enumerable(const RankMap& map) {
  constexpr Index most = Index{1} << 32;
  if (map.size() > most)
    throw Error(ErrorKind::memory_limit, "a group of " + std::to_string(map.size()) +
                                             " members without a few ranges in order is not enumerated; at most " +
                                             std::to_string(most));
}

std::vector<Index> listed(const RankMap& map) {
  check_enumerable(map);
  return map.to_vector();
}

std::optional<std::vector<Interval>> few_intervals(const RankMap& map, Index most) {
  const auto runs = known_runs(map, most);
  if (!runs) return map.size() <= most ? std::optional(Members(map).intervals()) : std::nullopt;
  Index pieces = 0;
  for (const auto& run : *runs) pieces = checked_add(pieces, run.step == 1 ? 1 : run.count);
  if (pieces > most) return std::nullopt;
  return runs->empty() ? std::vector<Interval>() : Members(*runs).intervals();
}

namespace {

constexpr bool holds(Operation operation, bool in_a, bool in_b) {
  switch (operation) {
    case Operation::unite: return in_a || in_b;
    case Operation::intersect: return in_a && in_b;
    default: return in_a && !in_b;
  }
}

}  // namespace

std::vector<AffineRun> combined(Operation operation, std::span<const Interval> a, std::span<const Interval> b) {
  std::vector<AffineRun> out;
  std::size_t i = 0, j = 0;
  bool in_a = false, in_b = false;
  Index begin = nobody;
  while (i < a.size() || j < b.size()) {
    const Index next_a = i == a.size() ? INT64_MAX : in_a ? a[i].last : a[i].first;
    const Index next_b = j == b.size() ? INT64_MAX : in_b ? b[j].last : b[j].first;
    const Index at = std::min(next_a, next_b);
    const bool before = holds(operation, in_a, in_b);
    if (next_a == at) i += in_a, in_a = !in_a;
    if (next_b == at) j += in_b, in_b = !in_b;
    const bool after = holds(operation, in_a, in_b);
    if (!before && after) begin = at;
    if (before && !after) out.push_back({begin, 1, at - begin});
  }
  return out;
}

Index most_intervals(const RankMap& a, const RankMap& b) {
  constexpr Index gain = 8, large = Index{1} << 28;
  const Index members = checked_add(a.size(), b.size());
  return members > large ? large : std::max<Index>(members / gain, 1);
}

Interval bounds_of(const RankMap& map) {
  if (map.nest() == nullptr && !map.ascending()) check_enumerable(map);
  const auto [lowest, highest] = map.extent();
  return {lowest, highest + 1};
}

bool worth_marks(const Interval& within, Index members) {
  constexpr Index most_words = Index{1} << 28;
  return within.size() / 64 <= std::min(2 * members + 1024, most_words);
}

void Marks::set(const RankMap& map) {
  const auto* bitmap = form_of<BitmapForm>(map);
  if (bitmap != nullptr && holds(bitmap->base()) && holds(bitmap->base() + bitmap->bits().size() - 1))
    return set(bitmap->base() - within_.first, bitmap->bits());
  Members(map).each_piece([&](Index, std::span<const Index> values) {
    for (const Index w : values)
      if (holds(w)) words_[std::size_t((w - within_.first) / 64)] |= bit(w);
  });
}

void Marks::set(Index shift, const Bitmap& bits) {
  const int within = int(shift % 64);
  auto to = std::size_t(shift / 64);
  for (Index k = 0; k < ceil_div(bits.size(), 64); ++k, ++to) {
    const std::uint64_t word = bits.words()[std::size_t(k)];
    words_[to] |= word << within;
    if (within > 0 && word >> (64 - within) != 0) words_[to + 1] |= word >> (64 - within);
  }
}

void Marks::combine(Operation operation, const Marks& other) {
  for (std::size_t k = 0; k < words_.size(); ++k) switch (operation) {
      case Operation::unite: words_[k] |= other.words_[k]; break;
      case Operation::intersect: words_[k] &= other.words_[k]; break;
      default: words_[k] &= ~other.words_[k];
    }
}

std::vector<Index> Marks::members() const {
  std::size_t n = 0;
  for (const auto word : words_) n += std::size_t(std::popcount(word));
  std::vector<Index> list(n);
  Index* to = list.data();
  for (std::size_t k = 0; k < words_.size(); ++k)
    for (std::uint64_t word = words_[k]; word != 0; word &= word - 1)
      *to++ = within_.first + Index(k) * 64 + std::countr_zero(word);
  return list;
}

Membership::Membership(const RankMap& map, Index questions) : map_(map) {
  const auto within = bounds_of(map);
  if (!map.empty() && map.nest() == nullptr && worth_marks(within, map.size() + questions))
    marks_.emplace(within).set(map);
  else
    map_ = map.with_lookup(LookupKind::hash);
}

namespace {

/// Of two ascending maps, an ascending one.
RankMap combine_sets(Operation operation, const RankMap& a, const RankMap& b, const Strategy& strategy) {
  const Index most = most_intervals(a, b);
  const auto in_a = few_intervals(a, most), in_b = in_a ? few_intervals(b, most) : std::nullopt;
  if (in_b) return make_trusted(Members(combined(operation, *in_a, *in_b)), a.world(), strategy);
  const auto of_a = bounds_of(a), of_b = bounds_of(b);
  const Interval both = a.empty()   ? of_b
                        : b.empty() ? of_a
                                    : Interval{std::min(of_a.first, of_b.first), std::max(of_a.last, of_b.last)};
  if (worth_marks(both, a.size() + b.size())) {
    Marks marks(both), others(both);
    marks.set(a);
    others.set(b);
    marks.combine(operation, others);
    return make_trusted(Members(marks.members()), a.world(), strategy);
  }
  const auto list_a = listed(a), list_b = listed(b);
  std::vector<Index> out;
  const auto into = std::back_inserter(out);
  switch (operation) {
    case Operation::unite: std::set_union(list_a.begin(), list_a.end(), list_b.begin(), list_b.end(), into); break;
    case Operation::intersect:
      std::set_intersection(list_a.begin(), list_a.end(), list_b.begin(), list_b.end(), into);
      break;
    default: std::set_difference(list_a.begin(), list_a.end(), list_b.begin(), list_b.end(), into);
  }
  return make_trusted(Members(out), a.world(), strategy);
}

}  // namespace
}  // namespace ranks

using namespace ranks;

RankMap as_set(const RankMap& map, const Strategy& strategy) {
  if (map.ascending()) return map;
  if (const auto* nest = map.nest()) {
    // The same loops, upwards and the smallest stride innermost.
    std::vector<AffineNest::Axis> axes;
    for (std::size_t k = 0; k < nest->depth(); ++k)
      axes.push_back({nest->axis(k).count, std::abs(nest->axis(k).stride)});
    std::sort(axes.begin(), axes.end(), [](const auto& a, const auto& b) { return a.stride < b.stride; });
    return RankMap::of_nest(AffineNest(nest->lowest(), axes), map.world());
  }
  if (const auto within = bounds_of(map); worth_marks(within, map.size())) {
    Marks marks(within);
    marks.set(map);
    return make_trusted(Members(marks.members()), map.world(), strategy);
  }
  auto members = listed(map);
  std::sort(members.begin(), members.end());
  return make_trusted(Members(members), map.world(), strategy);
}

RankMap set_union(const RankMap& a, const RankMap& b, const Strategy& strategy) {
  check_worlds(a, b);
  return combine_sets(Operation::unite, as_set(a), as_set(b), strategy);
}
RankMap set_intersection(const RankMap& a, const RankMap& b, const Strategy& strategy) {
  check_worlds(a, b);
  return combine_sets(Operation::intersect, as_set(a), as_set(b), strategy);
}
RankMap set_difference(const RankMap& a, const RankMap& b, const Strategy& strategy) {
  check_worlds(a, b);
  return combine_sets(Operation::subtract, as_set(a), as_set(b), strategy);
}

}  // namespace longshore

#include "longshore/ranks/rank_groups.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <unordered_map>

#include "ranks/forms.hpp"
#include "ranks/make.hpp"

namespace longshore {

using namespace ranks;

namespace {

void check_worlds(const RankMap& a, const RankMap& b) {
  if (a.world() != b.world())
    throw Error(ErrorKind::argument, "one group is of a world of " + std::to_string(a.world()) +
                                         " ranks, the other of " + std::to_string(b.world()));
}

/// Members that have to be looked at one by one are not too many.
void check_enumerable(const RankMap& map) {
  constexpr Index most = Index{1} << 32;
  if (map.size() > most)
    throw Error(ErrorKind::memory_limit, "a group of " + std::to_string(map.size()) +
                                             " members without a few ranges in order is "
                                             "not enumerated; at most " +
                                             std::to_string(most));
}

std::vector<Index> listed(const RankMap& map) {
  check_enumerable(map);
  return map.to_vector();
}

// --- sets as intervals

/// The intervals of an ascending map, or nothing where they are
/// more than `most`, or may be and each member had to be looked at.
std::optional<std::vector<Interval>> few_intervals(const RankMap& map, Index most) {
  const auto runs = known_runs(map, most);
  if (!runs) return map.size() <= most ? std::optional(intervals_of(Members(map))) : std::nullopt;
  Index pieces = 0;
  for (const auto& run : *runs) pieces = checked_add(pieces, run.step == 1 ? 1 : run.count);
  if (pieces > most) return std::nullopt;
  return runs->empty() ? std::vector<Interval>() : intervals_of(Members(*runs));
}

enum class Operation { unite, intersect, subtract };

constexpr bool holds(Operation operation, bool in_a, bool in_b) {
  switch (operation) {
    case Operation::unite: return in_a || in_b;
    case Operation::intersect: return in_a && in_b;
    default: return in_a && !in_b;
  }
}

/// Both lists swept from the lowest rank to the highest.
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

/// How many intervals of two maps are worth sweeping: few for
/// their members, or anything that is possible where bits are not.
Index most_intervals(const RankMap& a, const RankMap& b) {
  constexpr Index gain = 8, large = Index{1} << 28;
  const Index members = checked_add(a.size(), b.size());
  return members > large ? large : std::max<Index>(members / gain, 1);
}

// --- sets as bits

/// A bit for each rank of [lowest, highest].
class Marks {
 public:
  Marks(Index lowest, Index highest)
      : lowest_(lowest), highest_(highest), words_(std::size_t(ceil_div(highest - lowest + 1, 64))) {}

  void set(const RankMap& map) {
    const auto* bitmap = form_of<BitmapForm>(map);
    if (bitmap != nullptr && bitmap->base() >= lowest_ && bitmap->base() + bitmap->bits().size() - 1 <= highest_)
      return set(bitmap->base() - lowest_, bitmap->bits());
    Members(map).each_piece([&](Index, std::span<const Index> values) {
      for (const Index w : values)
        if (w >= lowest_ && w <= highest_) word(w) |= bit(w);
    });
  }
  bool test(Index w) const {
    return w >= lowest_ && w <= highest_ && (words_[std::size_t((w - lowest_) / 64)] & bit(w));
  }
  void combine(Operation operation, const Marks& other) {
    for (std::size_t k = 0; k < words_.size(); ++k) switch (operation) {
        case Operation::unite: words_[k] |= other.words_[k]; break;
        case Operation::intersect: words_[k] &= other.words_[k]; break;
        default: words_[k] &= ~other.words_[k];
      }
  }
  std::vector<Index> members() const {
    std::size_t n = 0;
    for (const auto word : words_) n += std::size_t(std::popcount(word));
    std::vector<Index> list(n);
    Index* to = list.data();
    for (std::size_t k = 0; k < words_.size(); ++k)
      for (std::uint64_t word = words_[k]; word != 0; word &= word - 1)
        *to++ = lowest_ + Index(k) * 64 + std::countr_zero(word);
    return list;
  }

 private:
  std::uint64_t& word(Index w) { return words_[std::size_t((w - lowest_) / 64)]; }
  std::uint64_t bit(Index w) const { return std::uint64_t{1} << ((w - lowest_) % 64); }
  void set(Index shift, const Bitmap& bits) {
    const int within = int(shift % 64);
    auto to = std::size_t(shift / 64);
    for (Index k = 0; k < ceil_div(bits.size(), 64); ++k, ++to) {
      const std::uint64_t word = bits.words()[std::size_t(k)];
      words_[to] |= word << within;
      if (within > 0 && word >> (64 - within) != 0) words_[to + 1] |= word >> (64 - within);
    }
  }

  Index lowest_, highest_;
  std::vector<std::uint64_t> words_;
};

struct Extent {
  Index lowest = INT64_MAX, highest = -1;
  bool worth_marks(Index members) const {
    constexpr Index most_words = Index{1} << 28;
    return highest < lowest || (highest - lowest) / 64 <= std::min(2 * members + 1024, most_words);
  }
};

Extent extent(const RankMap& map) {
  if (map.empty()) return {};
  if (map.nest() == nullptr && !map.ascending()) check_enumerable(map);
  const auto [lowest, highest] = map.extent();
  return {lowest, highest};
}

/// Whether ranks are members of a map, for those who ask many times.
class Membership {
 public:
  Membership(const RankMap& map, Index questions) : map_(map) {
    const auto e = extent(map);
    if (!map.empty() && map.nest() == nullptr && e.worth_marks(map.size() + questions))
      marks_.emplace(e.lowest, e.highest).set(map);
    else
      map_ = map.with_lookup(LookupKind::hash);
  }
  bool operator()(Index w) const { return marks_ ? marks_->test(w) : map_.contains(w); }

 private:
  RankMap map_;
  std::optional<Marks> marks_;
};

// --- both kinds of algebra

RankMap made(const std::vector<Index>& members, Index world, const Strategy& strategy) {
  return make_trusted(Members(members), world, strategy);
}
RankMap made(const std::vector<AffineRun>& runs, Index world, const Strategy& strategy) {
  return make_trusted(Members(std::span<const AffineRun>(runs)), world, strategy);
}

/// Of two ascending maps, an ascending one.
RankMap combine_sets(Operation operation, const RankMap& a, const RankMap& b, const Strategy& strategy) {
  const Index most = most_intervals(a, b);
  const auto in_a = few_intervals(a, most), in_b = in_a ? few_intervals(b, most) : std::nullopt;
  if (in_b) return made(combined(operation, *in_a, *in_b), a.world(), strategy);
  const auto ea = extent(a), eb = extent(b);
  const Extent both{std::min(ea.lowest, eb.lowest), std::max(ea.highest, eb.highest)};
  if (both.worth_marks(a.size() + b.size()) && both.highest >= both.lowest) {
    Marks marks(both.lowest, both.highest), others(both.lowest, both.highest);
    marks.set(a);
    others.set(b);
    marks.combine(operation, others);
    return made(marks.members(), a.world(), strategy);
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
  return made(out, a.world(), strategy);
}

/// Members of `a`, in order, that are in `b` or that are not.
std::vector<Index> filtered(const RankMap& a, const RankMap& b, bool wanted) {
  check_enumerable(a);
  const Membership in_b(b, a.size());
  std::vector<Index> out(std::size_t(a.size()));
  Index* to = out.data();
  // Nothing branches on the data, for nobody could predict it; what is not wanted is written over.
  Members(a).each_piece([&](Index, std::span<const Index> values) {
    for (const Index w : values) *to = w, to += in_b(w) == wanted;
  });
  out.resize(std::size_t(to - out.data()));
  return out;
}

std::vector<AffineRun> runs_of(std::span<const RankRange> ranges, Index size) {
  std::vector<AffineRun> runs;
  for (const auto& range : ranges) {
    auto refuse = [&range](const std::string& why) {
      throw Error(ErrorKind::argument, "range " + std::to_string(range.first) + " to " + std::to_string(range.last) +
                                           " by " + std::to_string(range.stride) + " " + why);
    };
    const auto [first, last, stride] = range;
    const std::string outside = "is not within [0, " + std::to_string(size) + ")";
    if (stride == 0 || stride == INT64_MIN || first < 0 || first >= size) refuse(outside);
    if (last != first && (last > first) != (stride > 0)) refuse("leads away from its end");
    // The end itself need not be a position, only where the stride leads to.
    const Wide steps = (Wide(last) - first) / stride, end = first + steps * stride;
    if (end < 0 || end >= size) refuse(outside);
    runs.push_back({first, stride, Index(steps) + 1});
  }
  return runs;
}

RankMap all_but(const RankMap& map, const RankMap& positions, const Strategy& strategy) {
  return flattened(RankMap::child(map, set_difference(RankMap::whole(map.size()), positions)), strategy);
}

}  // namespace

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
  const auto e = extent(map);
  if (e.worth_marks(map.size())) {
    Marks marks(e.lowest, e.highest);
    marks.set(map);
    return made(marks.members(), map.world(), strategy);
  }
  auto members = listed(map);
  std::sort(members.begin(), members.end());
  return made(members, map.world(), strategy);
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

RankMap group_intersection(const RankMap& a, const RankMap& b, const Strategy& strategy) {
  check_worlds(a, b);
  if (a.ascending()) return set_intersection(a, b, strategy);
  return made(filtered(a, b, true), a.world(), strategy);
}
RankMap group_difference(const RankMap& a, const RankMap& b, const Strategy& strategy) {
  check_worlds(a, b);
  if (a.ascending()) return set_difference(a, b, strategy);
  return made(filtered(a, b, false), a.world(), strategy);
}
RankMap group_union(const RankMap& a, const RankMap& b, const Strategy& strategy) {
  check_worlds(a, b);
  if (a.ascending() && b.ascending()) {
    if (a.empty()) return b;
    if (b.empty() || a == b) return a;
    if (a.select(a.size() - 1) < b.select(0)) return set_union(a, b, strategy);
    const Index most = most_intervals(a, b);
    const auto in_a = few_intervals(a, most), in_b = in_a ? few_intervals(b, most) : std::nullopt;
    if (in_b) {
      std::vector<AffineRun> runs;
      for (const auto& [first, last] : *in_a) runs.push_back({first, 1, last - first});
      const auto more = combined(Operation::subtract, *in_b, *in_a);
      runs.insert(runs.end(), more.begin(), more.end());
      return made(runs, a.world(), strategy);
    }
  }
  auto members = listed(a);
  const auto more = filtered(b, a, false);
  members.insert(members.end(), more.begin(), more.end());
  return made(members, a.world(), strategy);
}

RankMap group_incl(const RankMap& map, std::span<const Index> positions, const Strategy& strategy) {
  return flattened(RankMap::child(map, RankMap::of(positions, map.size())), strategy);
}
RankMap group_range_incl(const RankMap& map, std::span<const RankRange> ranges, const Strategy& strategy) {
  return flattened(RankMap::child(map, RankMap::of_runs(runs_of(ranges, map.size()), map.size())), strategy);
}
RankMap group_excl(const RankMap& map, std::span<const Index> positions, const Strategy& strategy) {
  return all_but(map, RankMap::of(positions, map.size()), strategy);
}
RankMap group_range_excl(const RankMap& map, std::span<const RankRange> ranges, const Strategy& strategy) {
  return all_but(map, RankMap::of_runs(runs_of(ranges, map.size()), map.size()), strategy);
}

std::vector<Index> translate_ranks(const RankMap& a, std::span<const Index> positions, const RankMap& b) {
  check_worlds(a, b);
  std::vector<Index> out(positions.size());
  a.world_ranks(positions, out);
  b.ranks(out, out);
  return out;
}

std::vector<Index> translate_ranks(const RankMap& a, const RankMap& b) {
  check_worlds(a, b);
  auto out = listed(a);
  b.ranks(out, out);
  return out;
}

Comparison compare(const RankMap& a, const RankMap& b) {
  if (a.size() != b.size()) return Comparison::unequal;
  if (a == b) return Comparison::identical;
  if (a.ascending() && b.ascending()) return Comparison::unequal;
  if (a.nest() && b.nest()) return as_set(a) == as_set(b) ? Comparison::similar : Comparison::unequal;
  check_enumerable(b);
  // As many members, none twice: the same if all of one are in the other.
  const Membership in_a(a, b.size());
  constexpr Index piece = 4096;
  std::vector<Index> values(std::size_t(std::min(piece, b.size())));
  for (Index first = 0; first < b.size(); first += piece) {
    const Index n = std::min(piece, b.size() - first);
    b.read(first, n, values.data());
    if (!std::all_of(values.begin(), values.begin() + n, [&](Index w) { return in_a(w); })) return Comparison::unequal;
  }
  return Comparison::similar;
}

RankMap node_order(std::span<const Index> nodes) {
  std::unordered_map<Index, Index> places;  // of each node, in the order of their first members
  std::vector<Index> place(nodes.size()), order(nodes.size());
  for (std::size_t w = 0; w < nodes.size(); ++w)
    place[w] = places.try_emplace(nodes[w], Index(places.size())).first->second;
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return place[std::size_t(a)] < place[std::size_t(b)]; });
  return RankMap::of(order, Index(nodes.size()));
}

std::vector<Part> split(const RankMap& parent, std::span<const Index> colours, std::span<const Index> keys,
                        const Strategy& strategy) {
  const auto n = std::size_t(parent.size());
  if (colours.size() != n || (!keys.empty() && keys.size() != n))
    throw Error(ErrorKind::argument, std::to_string(colours.size()) + " colours and " + std::to_string(keys.size()) +
                                         " keys for " + std::to_string(n) + " members");
  std::vector<Index> order;
  for (std::size_t i = 0; i < n; ++i)
    if (colours[i] >= 0) order.push_back(Index(i));
  auto before = [&](Index a, Index b) {
    const auto i = std::size_t(a), j = std::size_t(b);
    if (colours[i] != colours[j]) return colours[i] < colours[j];
    return !keys.empty() && keys[i] < keys[j];
  };
  if (!std::is_sorted(order.begin(), order.end(), before)) std::stable_sort(order.begin(), order.end(), before);
  std::vector<Part> parts;
  for (std::size_t first = 0, last; first < order.size(); first = last) {
    const Index colour = colours[std::size_t(order[first])];
    for (last = first + 1; last < order.size() && colours[std::size_t(order[last])] == colour;) ++last;
    const std::span<const Index> positions(order.data() + first, last - first);
    auto part = RankMap::child(parent, make_trusted(Members(positions), parent.size(), strategy));
    parts.push_back({colour, positions.size() == n ? std::move(part) : flattened(part, strategy)});
  }
  return parts;
}

}  // namespace longshore

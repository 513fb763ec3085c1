#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "ranks/make.hpp"
#include "ranks/set_algebra.hpp"

namespace longshore {

using namespace ranks;

namespace {

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

RankMap group_intersection(const RankMap& a, const RankMap& b, const Strategy& strategy) {
  check_worlds(a, b);
  if (a.ascending()) return set_intersection(a, b, strategy);
  return make_trusted(Members(filtered(a, b, true)), a.world(), strategy);
}
RankMap group_difference(const RankMap& a, const RankMap& b, const Strategy& strategy) {
  check_worlds(a, b);
  if (a.ascending()) return set_difference(a, b, strategy);
  return make_trusted(Members(filtered(a, b, false)), a.world(), strategy);
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
      return make_trusted(Members(runs), a.world(), strategy);
    }
  }
  auto members = listed(a);
  const auto more = filtered(b, a, false);
  members.insert(members.end(), more.begin(), more.end());
  return make_trusted(Members(members), a.world(), strategy);
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

std::vector<ColourGroup> by_colour(const RankMap& parent, std::span<const Index> colours, std::span<const Index> keys,
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
  std::vector<ColourGroup> groups;
  for (std::size_t first = 0, last; first < order.size(); first = last) {
    const Index colour = colours[std::size_t(order[first])];
    for (last = first + 1; last < order.size() && colours[std::size_t(order[last])] == colour;) ++last;
    const std::span<const Index> positions(order.data() + first, last - first);
    auto part = RankMap::child(parent, make_trusted(Members(positions), parent.size(), strategy));
    groups.push_back({colour, positions.size() == n ? std::move(part) : flattened(part, strategy)});
  }
  return groups;
}

}  // namespace longshore

// The algebra of groups beside std::set and plain loops, on every pair of sorts of maps.
#include "longshore/ranks/rank_groups.hpp"

#include <map>
#include <set>
#include <unordered_set>

#include "support/expect_error.hpp"
#include "support/quick.hpp"
#include "support/ranks.hpp"

namespace longshore {
namespace {

using namespace test;

Ranks kept(const Ranks& a, const Ranks& b, bool wanted) {
  const std::unordered_set<Index> in_b(b.begin(), b.end());
  Ranks out;
  for (const Index w : a)
    if (in_b.contains(w) == wanted) out.push_back(w);
  return out;
}

Ranks sorted(Ranks list) {
  std::sort(list.begin(), list.end());
  return list;
}

Ranks joined(Ranks a, const Ranks& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Maps of one world.
std::vector<RankCase> one_world() {
  std::vector<RankCase> cases;
  const int bits = quick() ? 10 : 12;
  const Index world = Index{1} << bits;
  for (auto& c : rank_cases(bits))
    if (c.world <= world) cases.push_back({c.name, c.members, world});
  return cases;
}

TEST(Groups, algebra_of_every_two_maps) {
  const auto cases = one_world();
  for (const auto& a : cases)
    for (const auto& b : cases) {
      SCOPED_TRACE(a.name + " and " + b.name);
      const auto x = RankMap::of(a.members, a.world), y = RankMap::of(b.members, b.world);
      const auto both = kept(a.members, b.members, true), only = kept(a.members, b.members, false);
      const auto more = kept(b.members, a.members, false);
      ASSERT_EQ(group_union(x, y).to_vector(), joined(a.members, more));
      ASSERT_EQ(group_intersection(x, y).to_vector(), both);
      ASSERT_EQ(group_difference(x, y).to_vector(), only);
      ASSERT_EQ(set_union(x, y).to_vector(), sorted(joined(a.members, more)));
      ASSERT_EQ(set_intersection(x, y).to_vector(), sorted(both));
      ASSERT_EQ(set_difference(x, y).to_vector(), sorted(only));
      const auto same = compare(x, y);
      ASSERT_EQ(same, a.members == b.members                   ? Comparison::identical
                      : sorted(a.members) == sorted(b.members) ? Comparison::similar
                                                               : Comparison::unequal);
      Ranks positions;
      std::map<Index, Index> at;
      for (std::size_t i = 0; i < b.members.size(); ++i) at[b.members[i]] = Index(i);
      for (const Index w : a.members) positions.push_back(at.contains(w) ? at[w] : nobody);
      ASSERT_EQ(translate_ranks(x, y), positions);
    }
}

TEST(Groups, sets_of_huge_worlds_are_intervals) {
  const Index world = RankMap::largest_world, half = world / 2;
  const auto whole = RankMap::whole(world), low = whole.slice(0, half), middle = whole.slice(half / 2, half + half / 2);
  const auto outside = set_difference(whole, middle);
  EXPECT_EQ(outside.size(), half);
  EXPECT_EQ(outside.world_rank(half / 2), half + half / 2);
  EXPECT_EQ(set_union(outside, middle), whole);
  EXPECT_EQ(group_union(middle, low).world_rank(half), 0);  // those of `low` alone come last
  EXPECT_EQ(set_intersection(low, middle).size(), half / 2);
  const auto failed = RankMap::of(Ranks{5, world / 3, world - 1}, world);
  const auto alive = group_difference(whole, failed);
  EXPECT_EQ(alive.size(), world - 3);
  EXPECT_EQ(alive.rank(world / 3 + 1), world / 3 - 1);
  EXPECT_EQ(alive.rank(world / 3), nobody);
  EXPECT_LT(alive.bytes(), 1000);
  expect_error(ErrorKind::memory_limit, {"enumerated"},
               [&] { set_difference(whole, RankMap::of_nest(AffineNest::stride(0, half, 2), world)); });
}

TEST(Groups, few_runs_are_compared_as_runs) {
  const Index world = RankMap::largest_world, n = Index{1} << 30;
  auto three = [&](Index last) {
    return RankMap::of_runs(std::vector<AffineRun>{{0, 1, n}, {2 * n, 1, n}, {last, 1, n}}, world);
  };
  EXPECT_EQ(three(8 * n), three(8 * n));
  EXPECT_FALSE(three(8 * n) == three(8 * n + 1));
  EXPECT_EQ(compare(three(8 * n), three(8 * n + 1)), Comparison::unequal);
  EXPECT_EQ(group_union(three(8 * n), three(8 * n + 1)).size(), 3 * n + 1);
  // The same members from other pieces.
  const std::vector<AffineRun> halves{{0, 1, n / 2}, {n / 2, 1, n / 2}, {2 * n, 1, n}, {8 * n, 1, n}};
  const auto pieces = RankMap::of_runs(halves, world);
  EXPECT_EQ(pieces, three(8 * n));
  const auto whole = RankMap::whole(world), back = whole.slice(world - 1, -1, -1);
  EXPECT_EQ(compare(whole, back), Comparison::similar);
  EXPECT_EQ(compare(whole.slice(1, world), back.slice(1, world)), Comparison::unequal);
}

TEST(Groups, runs_of_one_member_have_no_step) {
  // A step of 2^30 in steps of 2^34 would not fit; nobody takes it.
  const Index far = Index{1} << 34;
  const std::vector<AffineRun> runs{{0, Index{1} << 30, 2}, {Index{1} << 31, 1, far + 2}};
  const auto parent = RankMap::of_runs(runs, RankMap::largest_world);
  const auto child = RankMap::child(parent, RankMap::of_nest(AffineNest::stride(0, 2, far), parent.size()));
  const auto all = set_union(child, RankMap::whole(RankMap::largest_world));
  EXPECT_EQ(all.size(), RankMap::largest_world);
  EXPECT_EQ(child.world_rank(1), (Index{1} << 31) + far - 2);
}

TEST(Groups, incl_and_excl) {
  std::mt19937_64 random(4);
  for (const auto& [name, members, world] : rank_cases(10)) {
    if (members.size() < 10) continue;
    SCOPED_TRACE(name);
    const auto map = RankMap::of(members, world);
    const auto n = Index(members.size());
    auto positions = shuffled(iota(0, n), random);
    positions.resize(std::size_t(n / 3));
    Ranks in, out;
    for (const Index i : positions) in.push_back(members[std::size_t(i)]);
    ASSERT_EQ(group_incl(map, positions).to_vector(), in);
    ASSERT_EQ(group_excl(map, positions).to_vector(), kept(members, in, false));
    ASSERT_EQ(group_incl(map, {}).size(), 0);
    ASSERT_EQ(group_excl(map, {}), map);
    const std::vector<RankRange> ranges{{n - 1, n / 2, -2}, {1, n / 3, 3}, {0, 0, 1}};
    Ranks picked;
    for (const auto& [first, last, stride] : ranges)
      for (Index i = first; stride > 0 ? i <= last : i >= last; i += stride) picked.push_back(members[std::size_t(i)]);
    ASSERT_EQ(group_range_incl(map, ranges).to_vector(), picked);
    ASSERT_EQ(group_range_excl(map, ranges).to_vector(), kept(members, picked, false));
  }
}

TEST(Groups, mistakes_are_refused) {
  const auto map = RankMap::whole(100);
  expect_error(ErrorKind::argument, {"100"}, [&] { group_incl(map, Ranks{3, 100}); });
  expect_error(ErrorKind::argument, {"3", "twice"}, [&] { group_incl(map, Ranks{3, 4, 3}); });
  expect_error(ErrorKind::argument, {"3", "twice"}, [&] { group_excl(map, Ranks{3, 4, 3}); });
  expect_error(ErrorKind::argument, {"range 0 to 5 by 0"}, [&] {
    group_range_incl(map, std::vector<RankRange>{{0, 5, 0}});
  });
  expect_error(ErrorKind::argument, {"range 0 to 100 by 1", "[0, 100)"}, [&] {
    group_range_incl(map, std::vector<RankRange>{{0, 100, 1}});
  });
  const std::vector<RankRange> wrong_ranges{{5, 4, 1},         {4, 5, -1},         {5, 4, INT64_MIN}, {5, 5, INT64_MIN},
                                            {-1, 5, 1},        {100, 5, -1},       {5, 200, 3},       {5, -200, -3},
                                            {0, INT64_MAX, 1}, {99, INT64_MIN, -1}};
  for (const auto& wrong : wrong_ranges)
    expect_error(ErrorKind::argument, {"range " + std::to_string(wrong.first)},
                 [&] { group_range_incl(map, std::vector<RankRange>{wrong}); });
  // The end of a range need not be a rank: only what the stride leads to.
  EXPECT_EQ(group_range_incl(map, std::vector<RankRange>{{0, 100, 3}}).to_vector(), iota(0, 34, 3));
  EXPECT_EQ(group_range_incl(map, std::vector<RankRange>{{97, -1, -3}}).to_vector(), iota(97, 33, -3));
  EXPECT_EQ(group_range_incl(map, std::vector<RankRange>{{7, INT64_MAX, INT64_MAX}}).to_vector(), Ranks{7});
  expect_error(ErrorKind::argument, {"twice"}, [&] {
    group_range_incl(map, std::vector<RankRange>{{0, 50, 1}, {60, 40, -5}});
  });
  expect_error(ErrorKind::argument, {"world of 100", "99"}, [&] { group_union(map, RankMap::whole(99)); });
  expect_error(ErrorKind::argument, {"2 colours", "100 members"}, [&] { by_colour(map, Ranks{1, 2}, {}); });
}

TEST(Groups, split_orders_by_key_then_by_rank) {
  std::mt19937_64 random(5);
  for (const auto& [name, members, world] : rank_cases(8)) {
    SCOPED_TRACE(name);
    const auto map = RankMap::of(members, world);
    Ranks colours, keys;
    for (std::size_t i = 0; i < members.size(); ++i)
      colours.push_back(Index(random() % 5) - 1), keys.push_back(Index(random() % 7) - 3);
    for (const bool with_keys : {true, false}) {
      std::map<Index, std::vector<std::pair<Index, Index>>> expected;
      for (std::size_t i = 0; i < members.size(); ++i)
        if (colours[i] >= 0) expected[colours[i]].push_back({with_keys ? keys[i] : 0, Index(i)});
      const auto parts = by_colour(map, colours, with_keys ? std::span<const Index>(keys) : std::span<const Index>());
      ASSERT_EQ(parts.size(), expected.size());
      for (const auto& [colour, part] : parts) {
        auto order = expected.at(colour);
        std::sort(order.begin(), order.end());
        Ranks ranks;
        for (const auto& [key, i] : order) ranks.push_back(members[std::size_t(i)]);
        ASSERT_EQ(part.to_vector(), ranks) << colour;
      }
    }
  }
}

TEST(Groups, a_reordered_group_shares_its_parents_set) {
  std::mt19937_64 random(6);
  const auto members = random_set(5000, 1 << 16, random), keys = shuffled(iota(0, 5000), random);
  const auto parent = RankMap::of(members, 1 << 16);
  const auto parts = by_colour(parent, Ranks(5000, 0), keys);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].members.representation(), "child");
  Ranks expected(5000);
  for (std::size_t i = 0; i < 5000; ++i) expected[std::size_t(keys[i])] = members[i];
  expect_map(parts[0].members, expected, 1 << 16);
  // What is not re-ordered is the parent itself.
  EXPECT_EQ(by_colour(parent, Ranks(5000, 3), {})[0].members.representation(), parent.representation());
}

}  // namespace
}  // namespace longshore

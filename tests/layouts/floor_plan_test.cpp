#include "longshore/layouts/balance.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "support/expect_error.hpp"

namespace longshore {
namespace {

using test::expect_error;

TEST(FloorPlan, is_regions_and_owners) {
  const std::vector<Region> regions{Region({0, 0}, {4, 4}), Region({2, 2}, {8, 8}), Region({5, 5}, {5, 9})};
  const FloorPlan plan(regions, {3, 0, 3});
  EXPECT_EQ(plan.size(), 3);
  EXPECT_EQ(plan.dims(), 2u);
  EXPECT_EQ(plan.world_size(), 4);
  EXPECT_EQ(plan.regions(), regions);
  EXPECT_EQ(plan.region(1), regions[1]);
  EXPECT_EQ(plan.owner(2), 3);
  EXPECT_EQ(plan.owned_by(3), (std::vector<Index>{0, 2}));
  EXPECT_TRUE(plan.owned_by(1).empty());
  EXPECT_EQ(plan.points(), 16 + 36);
  EXPECT_EQ(plan.bounding(), Region({0, 0}, {8, 8}));
  EXPECT_EQ(plan.to_string(2), "3 regions of 2 dimensions: [0:4, 0:4] on 3, [2:8, 2:8] on 0, ...");
  EXPECT_EQ(plan.grow({1, 0}).region(0), Region({-1, 0}, {5, 4}));
  EXPECT_EQ(plan.coarsen({4, 4}).region(1), Region({0, 0}, {2, 2}));
  EXPECT_EQ(plan.refine({2, 1}).region(0), Region({0, 0}, {8, 4}));
  EXPECT_EQ(plan.with_owners({0, 1, 2}).owner(2), 2);
  EXPECT_GT(plan.workspace_bytes(), 3 * 5 * 8);
}

TEST(FloorPlan, is_a_value) {
  const FloorPlan a = even_floor_plan(Region({0, 0}, {64, 64}), 4), b = even_floor_plan(Region({0, 0}, {64, 64}), 4);
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.digest(), b.digest());
  EXPECT_NE(a, even_floor_plan(Region({0, 0}, {64, 65}), 4));
  EXPECT_NE(a.digest(), a.with_owners({0, 1, 3, 2}).digest());
  EXPECT_EQ(a.digest(), 15026902216559889402u);  // what other machines say
  EXPECT_TRUE(FloorPlan().empty());
  EXPECT_EQ(FloorPlan().to_string(), "0 regions of 0 dimensions");
  EXPECT_EQ(FloorPlan(), FloorPlan(std::vector<Region>{}, {}));
  // Owners take a few bytes, or few bits each, and what is made of a plan shares them.
  std::vector<Region> many;
  Map owners, shuffled;
  for (Index k = 0; k < 4096; ++k) {
    many.push_back(Region({k}, {k + 1}));
    owners.push_back(3 + 2 * k), shuffled.push_back(k * 37 % 16);
  }
  const FloorPlan each(many, owners), several(many, shuffled);
  EXPECT_EQ(each.owning_ranks().representation(), "stride");
  EXPECT_EQ(each.owned_by(5), std::vector<Index>{1});
  EXPECT_TRUE(each.owned_by(4).empty() && each.owned_by(-1).empty());
  EXPECT_EQ(each.owners(), owners);
  EXPECT_EQ(each.grow({1}).owners(), owners);
  EXPECT_EQ(several.owning_ranks(), RankMap::whole(16));
  EXPECT_EQ(several.owners(), shuffled);
  for (Index rank = 0; rank < 17; ++rank) {
    std::vector<Index> expected;
    for (Index k = 0; k < 4096; ++k)
      if (shuffled[std::size_t(k)] == rank) expected.push_back(k);
    EXPECT_EQ(several.owned_by(rank), expected);
    for (const Index k : expected) EXPECT_EQ(several.owner(k), rank);
  }
  EXPECT_LT(several.workspace_bytes() - each.workspace_bytes(), 4096 * 9);  // of which eight are the order by owner
}

TEST(FloorPlan, knows_what_a_rank_owns) {
  std::mt19937 random(3);
  for (const Index largest : {Index{0}, Index{4}, Index{60}, Index{1000000}, RankMap::largest_world - 1}) {
    std::vector<Region> regions;
    Map owners;
    for (Index k = 0; k < 50; ++k)
      regions.push_back(Region({k}, {k + 1})), owners.push_back(Index(random()) % (largest + 1));
    owners.back() = largest;
    const FloorPlan plan(regions, owners);
    for (const Index rank : {Index{-1}, Index{0}, Index{1}, Index{3}, owners[7], owners[20], largest, INT64_MAX}) {
      std::vector<Index> expected;
      for (Index k = 0; k < 50; ++k)
        if (owners[std::size_t(k)] == rank) expected.push_back(k);
      EXPECT_EQ(plan.owned_by(rank), expected) << rank;
    }
  }
  EXPECT_TRUE(FloorPlan().owned_by(0).empty());
}

TEST(FloorPlan, keeps_what_look_ups_need) {
  const FloorPlan plan = even_floor_plan(Region({0, 0}, {64, 64}), 16), copy = plan;
  const Index before = plan.workspace_bytes();
  EXPECT_EQ(plan.index().find(Region({0, 0}, {17, 1})), (std::vector<Index>{0, 4}));
  EXPECT_EQ(&plan.index(), &copy.index());
  EXPECT_EQ(copy.workspace_bytes(), before + plan.index().workspace_bytes());
  EXPECT_EQ(copy.owned_by(3), (std::vector<Index>{3}));
  EXPECT_EQ(plan.workspace_bytes(),
            before + plan.index().workspace_bytes());  // where each owns one, owners say it themselves
  const FloorPlan twice = plan.with_owners({0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7});
  const Index unsorted = twice.workspace_bytes();
  EXPECT_EQ(twice.owned_by(3), (std::vector<Index>{6, 7}));
  EXPECT_EQ(twice.workspace_bytes(), unsorted + 16 * 8);
  EXPECT_TRUE(FloorPlan().index().find(Region()).empty());
  EXPECT_EQ(FloorPlan(std::vector(2, Region(Point(), Point())), {0, 1}).index().find(Region()),
            (std::vector<Index>{0, 1}));
}

TEST(FloorPlan, says_what_is_wrong) {
  const std::vector<Region> two{Region({0}, {4}), Region({4}, {8})}, mixed{Region({0}, {4}), Region({0, 0}, {4, 4})};
  expect_error(ErrorKind::shape, {"3 owners", "2 regions"}, [&] { FloorPlan(two, {0, 1, 2}); });
  expect_error(ErrorKind::shape, {"region 1", "2 dimensions"}, [&] { FloorPlan(mixed, {0, 1}); });
  for (const Index owner : {Index{-1}, RankMap::largest_world, INT64_MAX})
    expect_error(ErrorKind::argument, {"region 1", std::to_string(owner)}, [&] { FloorPlan(two, {0, owner}); });
  const FloorPlan plan(two, {0, 1});
  for (const Index k : {-1, 2})
    expect_error(ErrorKind::argument, {"no region " + std::to_string(k), "of 2"}, [&] { plan.region(k); });
  expect_error(ErrorKind::argument, {"no region"}, [&] { plan.owner(7); });
  expect_error(ErrorKind::argument, {"0 ranks"}, [] { even_floor_plan(Region({0}, {4}), 0); });
  expect_error(ErrorKind::shape, {"1 weights", "2 regions"},
               [&] { balanced_along(two, 2, Curve::hilbert, std::vector<Index>{1}); });
}

TEST(FloorPlan, of_a_layout) {
  const auto blocks = floor_plan_of(Layout::parse("(BLOCK, CYCLIC(2)) on 2x2", {5, 7}));
  EXPECT_EQ(blocks.owned_by(0).size(), 2u);
  EXPECT_EQ(blocks.region(0), Region({0, 0}, {3, 2}));
  EXPECT_EQ(blocks.points(), 35);
  EXPECT_EQ(blocks.bounding(), Region({0, 0}, {5, 7}));
  EXPECT_EQ(floor_plan_of(Layout::parse("(BLOCK) on 7", {3})).size(), 3);  // four ranks own nothing
  EXPECT_EQ(floor_plan_of(Layout::parse("(BLOCK) on 2xREPLICATED(3)", {4})).points(), 12);
  EXPECT_EQ(floor_plan_of(Layout::parse("(BLOCK) on 2, ranks=[5,3]", {4})).owners(), (Map{3, 5}));
  for (const Index n : {Index{1} << 20, Index{1} << 31})
    expect_error(ErrorKind::memory_limit, {"rank 0", "boxes", "CYCLIC"}, [&] {
      floor_plan_of(Layout::parse("(CYCLIC, CYCLIC) on 2x2", {n, n}));
    });
}

std::vector<Index> loads_of(const std::vector<Index>& weights, const Map& owners, Index ranks) {
  std::vector<Index> loads(std::size_t(ranks), 0);
  for (std::size_t k = 0; k < weights.size(); ++k) loads.at(std::size_t(owners[k])) += weights[k];
  return loads;
}

TEST(Balance, in_order) {
  EXPECT_EQ(balance_in_order(std::vector<Index>{1, 1, 1, 1, 1, 1}, 3), (Map{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(balance_in_order(std::vector<Index>{9, 1, 1, 1}, 2), (Map{0, 1, 1, 1}));
  EXPECT_EQ(balance_in_order(std::vector<Index>{0, 0, 0, 0}, 2), (Map{0, 0, 1, 1}));
  EXPECT_EQ(balance_in_order(std::vector<Index>{5, 5}, 7), (Map{0, 1}));
  EXPECT_TRUE(balance_in_order({}, 3).empty());
  expect_error(ErrorKind::argument, {"-1", "number 1"}, [] { balance_in_order(std::vector<Index>{1, -1}, 2); });
  expect_error(ErrorKind::overflow, {"64 bits"}, [] { balance_in_order(std::vector<Index>{INT64_MAX, 1}, 2); });
}

/// The least bottleneck of all ways to cut, the plainest way.
Index least_bottleneck(const std::vector<Index>& weights, Index ranks) {
  const std::size_t n = weights.size();
  std::vector<Index> best(n + 1, INT64_MAX);
  best[0] = 0;
  for (Index r = 0; r < ranks; ++r) {
    auto next = best;
    for (std::size_t first = 0; first < n; ++first) {
      if (best[first] == INT64_MAX) continue;
      Index sum = 0;
      for (std::size_t last = first + 1; last <= n; ++last) {
        sum += weights[last - 1];
        next[last] = std::min(next[last], std::max(best[first], sum));
      }
    }
    best = next;
  }
  return best[n];
}

TEST(Balance, heaviest_as_light_as_can_be) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<Index> weights(random() % 20);
    for (auto& w : weights) w = random() % 3 ? Index(random() % 10) : Index(random() % 60);
    const Index ranks = 1 + Index(random() % 8);
    const auto owners = balance_in_order(weights, ranks);
    EXPECT_TRUE(std::is_sorted(owners.begin(), owners.end()));
    if (weights.empty() || std::accumulate(weights.begin(), weights.end(), Index{0}) == 0) continue;
    const auto loads = loads_of(weights, owners, ranks);
    EXPECT_EQ(*std::max_element(loads.begin(), loads.end()), least_bottleneck(weights, ranks));
    const auto packed = loads_of(weights, balance_by_knapsack(weights, ranks), ranks);
    // 4/3 of the best possible, which no cut in order is below.
    EXPECT_LE(3 * *std::max_element(packed.begin(), packed.end()), 4 * least_bottleneck(weights, ranks));
  }
}

TEST(FloorPlan, knows_the_cuts_of_a_lattice) {
  using Cuts = std::vector<std::vector<Index>>;
  const auto cuts = [](const std::vector<Region>& regions) { return FloorPlan(regions, Map(regions.size())).cuts(); };
  const Region a({-2, 0}, {1, 5}), b({1, 0}, {3, 5}), c({-2, 5}, {1, 6}), d({1, 5}, {3, 6}), none({0, 9}, {0, 9});
  EXPECT_EQ(cuts({d, a, none, c, b}), (Cuts{{-2, 1, 3}, {0, 5, 6}}));
  EXPECT_EQ(cuts({a}), (Cuts{{-2, 1}, {0, 5}}));
  EXPECT_EQ(cuts({a, b}), (Cuts{{-2, 1, 3}, {0, 5}}));
  EXPECT_EQ(cuts({a, c, d}), Cuts());                          // a hole
  EXPECT_EQ(cuts({a, b, c, c}), Cuts());                       // one twice, one nowhere
  EXPECT_EQ(cuts({a, Region({2, 0}, {3, 5})}), Cuts());        // a gap
  EXPECT_EQ(cuts({a, b, Region({-2, 5}, {3, 6})}), Cuts());    // not cut all the way through
  EXPECT_EQ(cuts({a, b, c, Region({0, 5}, {3, 6})}), Cuts());  // overlap
  EXPECT_EQ(cuts({none}), Cuts());
  EXPECT_EQ(FloorPlan().cuts(), Cuts());
}

TEST(Balance, by_knapsack) {
  const std::vector<Index> weights{3, 3, 2, 2, 2};
  const auto loads = loads_of(weights, balance_by_knapsack(weights, 2), 2);
  EXPECT_EQ(std::accumulate(loads.begin(), loads.end(), Index{0}), 12);
  EXPECT_LE(*std::max_element(loads.begin(), loads.end()), 7);
  EXPECT_EQ(balance_by_knapsack(std::vector<Index>{1, 5}, 9).size(), 2u);
}

TEST(Balance, along_a_curve_keeps_neighbours_together) {
  const auto boxes = split_evenly(Region({0, 0, 0}, {64, 64, 64}), {8, 8, 8});
  // Pairs of boxes with a common face on two ranks, out of 3 * 8 * 8 * 7.
  auto cut = [&](const FloorPlan& plan) {
    Index n = 0;
    for (Index a = 0; a < plan.size(); ++a)
      for (const auto& face : directions(3, 1, 1)) {
        const auto beside = plan.region(a).side(face, Point(3, 1));
        for (Index b = 0; b < a; ++b) n += plan.owner(a) != plan.owner(b) && beside.overlaps(plan.region(b));
      }
    return n;
  };
  const auto hilbert = balanced_along(boxes, 8), morton = balanced_along(boxes, 8, Curve::morton);
  EXPECT_EQ(cut(hilbert), 3 * 64);  // eight cubes: no better way
  EXPECT_EQ(cut(morton), 3 * 64);
  EXPECT_GT(cut(FloorPlan(boxes, balance_by_knapsack(std::vector<Index>(512, 1), 8))), 3 * 64);
  const auto loads = loads_of(std::vector<Index>(512, 1), hilbert.owners(), 8);
  EXPECT_EQ(*std::max_element(loads.begin(), loads.end()), 64);
}

}  // namespace
}  // namespace longshore

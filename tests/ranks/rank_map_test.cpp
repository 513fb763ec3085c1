// Every representation of every sort of map, beside the list of its members.
#include "longshore/ranks/rank_map.hpp"

#include <atomic>
#include <thread>

#include "longshore/ranks/rank_groups.hpp"
#include "ranks/forms.hpp"
#include "sequences/stored_words.hpp"
#include "support/expect_error.hpp"
#include "support/quick.hpp"
#include "support/ranks.hpp"

namespace longshore {
namespace {

using namespace test;

constexpr Index huge_world = RankMap::largest_world;

/// Modules without their library must say so of every map.
bool has_library(const RankModule& module) {
  const Ranks some{1, 2, 5};
  return module.estimate(Members(some), analyse(Members(some), 6)).note.find("needs the library") == std::string::npos;
}

class EveryModule : public testing::TestWithParam<const RankModule*> {};

TEST_P(EveryModule, holds_what_it_was_given_or_says_why_not) {
  const auto& module = *GetParam();
  int held = 0;
  // A BDD is asked along all of its paths, and BWT decompresses a block a question; chunks are of 4096 members.
  const bool slow = module.name() == "bdd" || module.name() == "bwt", large = module.name() == "chunks";
  for (const auto& [name, members, world] : rank_cases(large ? 14 : slow ? 8 : quick() ? 10 : 12)) {
    SCOPED_TRACE(std::string(module.name()) + ": " + name);
    const Strategy strategy{0.25, {&module}, LookupKind::hash};
    const auto analysis = analyse(Members(members), world);
    const auto estimate = module.estimate(Members(members), analysis);
    if (!estimate.possible) {
      EXPECT_FALSE(estimate.note.empty());
      if (!members.empty())
        expect_error(ErrorKind::argument, {std::string(module.name())},
                     [&, &members = members, world = world] { RankMap::of(members, world, strategy); });
      continue;
    }
    const auto map = RankMap::of(members, world, strategy);
    expect_map(map, members, world);
    if (HasFatalFailure()) return;
    EXPECT_GT(estimate.select_ns, 0);
    const auto bytes = map.to_bytes();
    const auto back = RankMap::from_bytes(bytes, Index(members.size()));
    EXPECT_EQ(back.representation(), map.representation());
    EXPECT_EQ(back.lookup(), map.lookup());
    expect_map(back, members, world);
    if (HasFatalFailure()) return;
    EXPECT_EQ(back.to_bytes(), bytes);
    ++held;
  }
  EXPECT_GT(held, has_library(module) ? 0 : -1);
}

INSTANTIATE_TEST_SUITE_P(, EveryModule, testing::ValuesIn(all_modules()), [](const auto& info) {
  std::string name(info.param->name());
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(RankMap, every_strategy_holds_every_map) {
  for (const auto& [name, members, world] : rank_cases(quick() ? 10 : 14))
    for (const double alpha : {0.0, 0.25, 1.0}) {
      SCOPED_TRACE(name + " " + std::to_string(alpha));
      expect_map(RankMap::of(members, world, Strategy::hybrid(alpha)).with_lookup(LookupKind::hash), members, world);
      if (HasFatalFailure()) return;
    }
}

TEST(RankMap, threads_ask_at_once) {
  std::mt19937_64 random(8);
  const auto members = shuffled(iota(0, 5000), random);
  for (const auto* module : {"packed", "bwt"}) {
    if (!has_library(rank_module(module))) continue;
    auto strategy = Strategy::only(module);
    strategy.lookup = LookupKind::lazy;  // its index is made by whoever asks first
    const auto map = RankMap::of(members, 5000, strategy);
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        std::mt19937_64 own(static_cast<unsigned>(t));
        for (int k = 0; k < (quick() || *module == 'b' ? 200 : 5000); ++k) {
          const auto i = Index(own() % members.size());
          wrong +=
              map.rank(members[std::size_t(i)]) != i || map.select(i) != members[std::size_t(i)] || map.bytes() <= 0;
        }
      });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0) << module;
  }
}

TEST(RankMap, every_index_finds_every_member) {
  for (const auto& [name, members, world] : rank_cases(quick() ? 8 : 12))
    for (const auto kind : {LookupKind::none, LookupKind::lazy, LookupKind::hash, LookupKind::shortcuts})
      for (const auto* module : {"packed", "linear", "standard"}) {
        SCOPED_TRACE(name + " " + module + " " + std::to_string(int(kind)));
        auto strategy = module == std::string("standard") ? Strategy() : Strategy::only(module);
        strategy.lookup = kind;
        if (members.empty()) continue;
        const auto map = RankMap::of(members, world, strategy);
        const Index before = map.bytes();
        expect_map(map, members, world);
        if (HasFatalFailure()) return;
        if (map.lookup() == LookupKind::lazy) {
          EXPECT_GT(map.bytes(), before);  // it was asked
        }
        EXPECT_EQ(map.with_lookup(LookupKind::none).lookup(), LookupKind::none);
      }
}

TEST(RankMap, closed_forms_need_no_memory_and_few_bytes) {
  const auto whole = RankMap::whole(huge_world);
  EXPECT_EQ(whole.representation(), "stride");
  EXPECT_EQ(whole.world_rank(huge_world - 1), huge_world - 1);
  EXPECT_EQ(whole.rank(12345678901), 12345678901);
  EXPECT_EQ(whole.rank(huge_world), nobody);
  const std::array<AffineNest::Axis, 3> axes{{{1000, 1}, {500, 5000}, {800, 100'000'000}}};
  const auto mesh = RankMap::of_nest(AffineNest(17, axes), huge_world);
  EXPECT_EQ(mesh.representation(), "nest");
  EXPECT_LE(mesh.bytes(), 200);
  EXPECT_EQ(mesh.world_rank(1000 * 500 * 3 + 1000 * 7 + 5), 17 + 5 + 7 * 5000 + 300'000'000);
  EXPECT_EQ(mesh.rank(17 + 5 + 7 * 5000 + 300'000'000), 1000 * 500 * 3 + 1000 * 7 + 5);
  EXPECT_EQ(mesh.rank(17 + 1000), nobody);
  std::string reason;
  EXPECT_TRUE(mesh.validate(reason)) << reason;
  EXPECT_EQ(RankMap::from_bytes(mesh.to_bytes()), mesh);
}

TEST(RankMap, structured_maps_are_recognised) {
  for (const auto& [name, members, world] : rank_cases(14)) {
    const auto map = RankMap::of(members, world);
    for (const auto* closed :
         {"box of a mesh", "transpose", "block-cyclic", "Morton order", "backwards", "stride", "everybody"})
      if (name == closed) {
        EXPECT_TRUE(map.representation() == "nest" || map.representation() == "stride")
            << name << ": " << map.representation();
      }
    if (name == "shuffled nodes") {
      EXPECT_EQ(map.representation(), "product");
    }
  }
}

TEST(RankMap, a_unit_that_all_ranks_share_is_recognised) {
  std::mt19937_64 random(48);
  auto leaders = shuffled(iota(5, 20000, 48), random);
  const Index world = 48 * 20000;
  const auto map = RankMap::of(leaders, world);
  EXPECT_EQ(map.representation(), "product");
  EXPECT_LT(map.bytes(), 20000 * 15 / 8 + 1000);
  expect_map(map, leaders, world);
  // Of a set too; and one that is out of step ends it.
  auto some = leaders;
  some.resize(7000);
  std::sort(some.begin(), some.end());
  EXPECT_EQ(RankMap::of(some, world).representation(), "product");
  expect_map(RankMap::of(some, world), some, world);
  for (auto* list : {&leaders, &some}) {
    list->back() += 1;
    EXPECT_NE(RankMap::of(*list, world).representation(), "product");
    expect_map(RankMap::of(*list, world), *list, world);
  }
}

TEST(RankMap, mistakes_say_which_rank_where) {
  expect_error(ErrorKind::argument, {"rank 100", "position 2", "[0, 100)"}, [] { RankMap::of(Ranks{1, 7, 100}, 100); });
  expect_error(ErrorKind::argument, {"rank -4", "position 1"}, [] { RankMap::of(Ranks{1, -4}, 100); });
  expect_error(ErrorKind::argument, {"rank 7", "twice", "positions 1 and 3"}, [] {
    RankMap::of(Ranks{1, 7, 3, 7}, 100);
  });
  expect_error(ErrorKind::argument, {"rank 5", "twice"}, [] { RankMap::of(Ranks{5, 5}, 100); });
  auto long_list = iota(0, 5000);
  long_list[4999] = 17;
  expect_error(ErrorKind::argument, {"rank 17", "positions 17 and 4999"}, [&] { RankMap::of(long_list, 10000); });
  long_list[4999] = INT64_MIN;
  expect_error(ErrorKind::argument, {"position 4999"}, [&] { RankMap::of(long_list, 10000); });
  long_list[4999] = INT64_MAX;
  expect_error(ErrorKind::argument, {"position 4999"}, [&] { RankMap::of(long_list, 10000); });
  expect_error(ErrorKind::argument, {"2^40"}, [] { RankMap::of(Ranks{}, RankMap::largest_world + 1); });
  // A whole stretch again, of every length that loops are found in.
  for (const Index n : {2, 3, 4, 8, 64, 100, 5000}) {
    auto again = iota(0, n);
    again.insert(again.end(), again.begin(), again.end());
    expect_error(ErrorKind::argument, {"twice"}, [&] { RankMap::of(again, 10 * n); });
    again.insert(again.end(), again.begin(), again.end());
    expect_error(ErrorKind::argument, {"twice"}, [&] { RankMap::of(again, 10 * n); });
    expect_error(ErrorKind::argument, {"twice"}, [&] {
      RankMap::of_runs(std::vector<AffineRun>{{0, 1, n}, {0, 1, n}, {0, 1, n}}, 10 * n);
    });
  }
  const auto map = RankMap::of(Ranks{4, 2}, 5);
  expect_error(ErrorKind::argument, {"position 2", "[0, 2)"}, [&] { map.world_rank(2); });
  expect_error(ErrorKind::argument, {"position -1"}, [&] { map.world_rank(-1); });
  Ranks out(1);
  expect_error(ErrorKind::argument, {"position 9"}, [&] { map.world_ranks(Ranks{9}, out); });
  expect_error(ErrorKind::argument, {"there is no representation \"zip\"", "elias-fano"},
               [] { Strategy::only("zip"); });
  expect_error(ErrorKind::argument, {"alpha is 2"}, [] { RankMap::of(Ranks{1, 5, 6}, 9, Strategy::hybrid(2)); });
}

TEST(RankMap, runs_are_not_enumerated) {
  const std::vector<AffineRun> runs{
      {0, 1, Index{1} << 38}, {Index{1} << 39, 1, Index{1} << 38}, {(Index{1} << 39) + (Index{1} << 38) + 5, 3, 1000}};
  const auto map = RankMap::of_runs(runs, huge_world);
  EXPECT_EQ(map.size(), (Index{1} << 39) + 1000);
  EXPECT_TRUE(map.ascending());
  EXPECT_EQ(map.world_rank(Index{1} << 38), Index{1} << 39);
  EXPECT_EQ(map.world_rank(map.size() - 1), runs[2].last());
  EXPECT_EQ(map.rank(runs[2].first + 3 * 77), (Index{1} << 39) + 77);
  EXPECT_EQ(map.rank(runs[2].first + 1), nobody);
  EXPECT_LT(map.bytes(), 1000);
  std::string reason;
  EXPECT_TRUE(map.validate(reason)) << reason;
  EXPECT_EQ(RankMap::from_bytes(map.to_bytes()), map.slice(0, map.size()));
  expect_error(ErrorKind::argument, {"rank 1099511627776"}, [] {
    RankMap::of_runs(std::vector<AffineRun>{{5, 1, huge_world - 4}}, huge_world);
  });
  expect_error(ErrorKind::memory_limit, {"come twice"}, [] {
    RankMap::of_runs(std::vector<AffineRun>{{0, 1, huge_world}, {7, 1, 5}, {90, -3, 2}}, huge_world);
  });
  expect_error(ErrorKind::argument, {"rank 8", "twice"}, [] {
    RankMap::of_runs(std::vector<AffineRun>{{0, 1, 100}, {8, 1, 1}}, 1000);
  });
}

TEST(RankMap, long_runs_are_not_cut_to_pieces) {
  const auto whole = RankMap::whole(huge_world);
  const auto alive = group_excl(whole, Ranks{Index{1} << 20, (Index{1} << 20) + 1});
  EXPECT_EQ(alive.size(), huge_world - 2);
  EXPECT_EQ(alive.world_rank(Index{1} << 20), (Index{1} << 20) + 2);
  EXPECT_LT(alive.bytes(), 600);
  EXPECT_EQ(explain(alive).size, alive.size());
  // Neither are maps made of maps of long runs.
  const auto second = alive.slice(1, alive.size(), 3);
  EXPECT_EQ(second.rank(second.world_rank(1 << 30)), 1 << 30);
  EXPECT_LT(second.bytes(), 600);
  const auto backwards = alive.slice(alive.size() - 1, -1, -1);
  EXPECT_EQ(backwards.world_rank(backwards.size() - 1), 0);
  EXPECT_EQ(backwards.world_rank(0), huge_world - 1);
  EXPECT_LT(backwards.bytes(), 600);
  const auto without = set_difference(alive, RankMap::whole(huge_world).slice(0, 1 << 24));
  EXPECT_EQ(without.size(), huge_world - (1 << 24));
}

TEST(RankMap, what_nobody_can_look_through_is_refused) {
  const Index side = Index{1} << 20;
  const auto transpose =
      RankMap::of_nest(AffineNest(0, std::array<AffineNest::Axis, 2>{{{side, side}, {side, 1}}}), huge_world);
  const auto twice = RankMap::child(transpose, transpose.slice(1, side * side - 1));
  expect_error(ErrorKind::memory_limit, {"members", "not looked through"}, [&] { explain(twice); });
  EXPECT_EQ(twice.world_rank(0), transpose.world_rank(transpose.world_rank(1)));
}

TEST(RankMap, a_parents_index_is_no_index_of_the_positions) {
  std::mt19937_64 random(5);
  const auto parent = RankMap::of(shuffled(iota(0, 5000), random), 5000).with_lookup(LookupKind::hash);
  const auto child = RankMap::child(parent, RankMap::of(shuffled(iota(0, 5000), random), 5000));
  EXPECT_EQ(parent.lookup(), LookupKind::hash);
  EXPECT_EQ(child.lookup(), LookupKind::none);
  EXPECT_EQ(child.with_lookup(LookupKind::hash).lookup(), LookupKind::hash);
}

TEST(RankMap, steps_of_one_place_may_be_any) {
  // Two loops as a list whose runs go far together.
  Ranks members;
  for (Index k = 0; k < 3000; ++k) members.push_back(k), members.push_back(huge_world / 2 + k);
  expect_map(RankMap::of(members, huge_world), members, huge_world);
  Ranks wild;
  for (int k = 0; k < 100; ++k) wild.push_back(k % 2 ? INT64_MAX : -2);
  expect_error(ErrorKind::argument, {"rank -2 at position 0"}, [&] { RankMap::of(wild, 100); });
}

TEST(RankMap, loops_are_analysed_as_loops) {
  const std::array<AffineNest::Axis, 3> axes{{{1 << 12, 1}, {1 << 12, -(1 << 14)}, {4, Index{1} << 30}}};
  const auto mesh = RankMap::of_nest(AffineNest(1 << 27, axes), huge_world);
  const auto explanation = explain(mesh);
  EXPECT_EQ(explanation.size, mesh.size());
  EXPECT_TRUE(explanation.rows[0].chosen);
  EXPECT_EQ(explanation.rows[0].module, "nest");
  const auto stride = RankMap::whole(huge_world).slice(5, huge_world, 3);
  Strategy thesis;
  thesis.modules = thesis_modules();
  EXPECT_EQ(rebuilt(stride, thesis), stride);
  expect_error(ErrorKind::argument, {"alpha is 7"}, [&] { rebuilt(stride, Strategy::hybrid(7)); });
  // The same numbers as by looking.
  for (const auto& [name, members, world] : rank_cases(12)) {
    const auto map = RankMap::of(members, world);
    if (map.nest() == nullptr || map.empty()) continue;
    SCOPED_TRACE(name);
    // Again and again further up, until it is large enough to be taken at its word.
    std::vector<AffineNest::Axis> more;
    for (std::size_t k = 0; k < map.nest()->depth(); ++k) more.push_back(map.nest()->axis(k));
    const Index reach = map.nest()->highest() + 5, times = (Index{1} << 22) / map.size() + 1;
    if (reach > huge_world / times) continue;
    more.push_back({times, reach});
    const AffineNest nest(map.nest()->base(), more);
    const auto large = RankMap::of_nest(nest, nest.highest() + 1);
    const auto told = analyse(Members(large), large.world());
    EXPECT_FALSE(told.enumerated);
    const auto list = large.to_vector();
    const auto seen = analyse(Members(list), large.world());
    EXPECT_EQ(told.nest, seen.nest);
    EXPECT_EQ(told.lowest, seen.lowest);
    EXPECT_EQ(told.highest, seen.highest);
    EXPECT_EQ(told.ascending, seen.ascending);
    EXPECT_EQ(told.least_step, seen.least_step);
    EXPECT_EQ(told.largest_step, seen.largest_step);
    EXPECT_EQ(told.ranges, seen.ranges);
    EXPECT_EQ(told.ascents, seen.ascents);
  }
}

TEST(RankMap, iterates_in_any_direction) {
  for (const auto& [name, members, world] : rank_cases(8)) {
    const auto map = RankMap::of(members, world);
    EXPECT_TRUE(std::equal(map.begin(), map.end(), members.begin(), members.end())) << name;
    EXPECT_EQ(map.end() - map.begin(), map.size());
    static_assert(std::random_access_iterator<RankMap::Iterator>);
    if (map.size() < 3) continue;
    auto at = map.begin() + 2;
    EXPECT_EQ(*at, members[2]);
    EXPECT_EQ(*--at, members[1]);
    EXPECT_EQ(at[1], members[2]);
    EXPECT_TRUE(at < map.end() && at > map.begin());
  }
}

TEST(RankMap, slices_are_maps) {
  for (const auto& [name, members, world] : rank_cases(10)) {
    SCOPED_TRACE(name);
    const auto map = RankMap::of(members, world);
    const Index n = map.size();
    for (const Index step : {1, 3, -1, -2})
      for (const Index first : {Index{0}, n / 3, n}) {
        const Index last = step > 0 ? n : -1, from = step > 0 ? first : std::min(first, n - 1);
        if (from < 0) continue;
        Ranks expected;
        for (Index i = from; step > 0 ? i < last : i > last; i += step) expected.push_back(members[std::size_t(i)]);
        const auto slice = map.slice(from, last, step).with_lookup(LookupKind::hash);
        expect_map(slice, expected, world);
        if (HasFatalFailure()) return;
      }
    expect_error(ErrorKind::argument, {"a slice from 0"}, [&] { map.slice(0, n + 1); });
    expect_error(ErrorKind::argument, {"by 0"}, [&] { map.slice(0, n, 0); });
  }
}

TEST(RankMap, equal_is_what_has_the_same_members_in_order) {
  for (const auto& [name, members, world] : rank_cases(8)) {
    if (members.size() < 3) continue;
    const auto a = RankMap::of(members, world), b = RankMap::of(members, world, Strategy::only("packed"));
    EXPECT_EQ(a, b) << name;
    auto other = members;
    std::swap(other[1], other[2]);
    EXPECT_NE(a, RankMap::of(other, world)) << name;
    EXPECT_NE(a, a.slice(0, a.size() - 1)) << name;
  }
}

TEST(RankMap, children_share_their_parent_and_survive_it) {
  std::mt19937_64 random(3);
  const auto members = random_set(30000, 100000, random), order = shuffled(iota(0, 30000), random);
  Ranks expected;
  RankMap child;
  Index alone;
  {
    const auto parent = RankMap::of(members, 100000);
    const auto positions = RankMap::of(order, 30000);
    child = RankMap::child(parent, positions).with_lookup(LookupKind::hash);
    alone = positions.bytes() + parent.bytes();
    for (const Index i : order) expected.push_back(members[std::size_t(i)]);
  }
  EXPECT_EQ(child.representation(), "child");
  EXPECT_GT(child.bytes(), alone);
  expect_map(child, expected, 100000);
  // A child of a child of a child is flattened: never more than two maps behind one another.
  auto youngest = child;
  for (int generation = 0; generation < 5; ++generation) {
    const auto again = shuffled(iota(0, youngest.size() / 2), random);
    Ranks next;
    for (const Index i : again) next.push_back(expected[std::size_t(i)]);
    expected = next;
    youngest = RankMap::child(youngest, RankMap::of(again, youngest.size()));
    const auto* form = ranks::form_of<ranks::ChildForm>(youngest);
    ASSERT_NE(form, nullptr);
    const auto* parent = ranks::form_of<ranks::ChildForm>(form->parent());
    EXPECT_TRUE(parent == nullptr || ranks::form_of<ranks::ChildForm>(parent->parent()) == nullptr);
    expect_map(youngest, expected, 100000);
    if (HasFatalFailure()) return;
  }
  const auto back = RankMap::from_bytes(youngest.to_bytes());
  expect_map(back, expected, 100000);
  expect_error(ErrorKind::argument, {"7", "the parent has 30000"},
               [&] { RankMap::child(RankMap::of(members, 100000), RankMap::whole(7)); });
}

TEST(RankMap, children_within_positions_are_flattened_too) {
  std::mt19937_64 random(9);
  Ranks expected = iota(0, 500);
  RankMap positions = RankMap::of(expected, 500);
  for (int generation = 0; generation < 20; ++generation) {
    const auto order = shuffled(iota(0, 500), random);
    Ranks next;
    for (const Index i : expected) next.push_back(order[std::size_t(i)]);
    expected = next;
    positions = RankMap::child(RankMap::of(order, 500), positions).with_lookup(LookupKind::hash);
    expect_map(positions, expected, 500);
    if (HasFatalFailure()) return;
    const auto back = RankMap::from_bytes(positions.to_bytes());
    EXPECT_EQ(back, positions);
    EXPECT_EQ(back.to_bytes(), positions.to_bytes());
  }
}

TEST(RankMap, nobody_of_a_list_is_a_set) {
  std::mt19937_64 random(10);
  const auto parent = RankMap::of(shuffled(iota(0, 100), random), 100);
  const auto none = RankMap::child(parent, RankMap::of({}, 100)),
             one = RankMap::child(parent, RankMap::of(Ranks{7}, 100));
  EXPECT_TRUE(none.ascending());
  EXPECT_TRUE(as_set(none).empty());
  EXPECT_TRUE(one.ascending());
  EXPECT_EQ(as_set(one).to_vector(), one.to_vector());
  for (const auto kind : {LookupKind::none, LookupKind::lazy, LookupKind::hash, LookupKind::shortcuts})
    for (const auto& map : {none.with_lookup(kind), one.with_lookup(kind)}) {
      EXPECT_EQ(map.rank(101), nobody);
      EXPECT_EQ(RankMap::from_bytes(map.to_bytes()), map);
    }
}

TEST(RankMap, a_user_adds_a_module_without_touching_others) {
  struct Squares : CustomForm {
    Index n;
    explicit Squares(Index size) : n(size) {}
    Index size() const override { return n; }
    Index select(Index i) const override { return i * i; }
    std::optional<Index> rank(Index w) const override {
      for (Index i = 0; i < n && i * i <= w; ++i)
        if (i * i == w) return i;
      return nobody;
    }
    Index bytes() const override { return 8; }
    std::string_view name() const override { return "squares"; }
  };
  struct SquaresModule : RankModule {
    std::string_view name() const override { return "squares"; }
    Estimate estimate(const Members&, const Analysis& a) const override {
      for (const auto& run : a.runs)
        if (run.count > 3) return {};
      return {a.ascending && a.lowest == 0 && a.highest == (a.size - 1) * (a.size - 1), 8, 1, 10, "squares"};
    }
    RankMap::Form build(const Members& members, const Analysis&) const override {
      return custom(std::make_shared<Squares>(members.size()));
    }
  } module;
  Ranks squares;
  for (Index i = 0; i < 100; ++i) squares.push_back(i * i);
  Strategy strategy;
  strategy.modules = standard_modules();
  strategy.modules.push_back(&module);
  const auto map = RankMap::of(squares, 10000, strategy);
  EXPECT_EQ(map.representation(), "squares");
  EXPECT_EQ(map.bytes(), 8 + RankForm::counts_bytes);
  expect_map(map, squares, 10000);
  const auto back = RankMap::from_bytes(map.to_bytes());
  EXPECT_EQ(back.representation(), "packed");  // the library cannot read a form of somebody else
  expect_map(back, squares, 10000);
}

/// Every third rank, but from a module that believes what it is told.
struct Thirds : CustomForm {
  Index n;
  explicit Thirds(Index size) : n(size) {}
  Index size() const override { return n; }
  Index select(Index i) const override { return 3 * i; }
  Index bytes() const override { return sizeof *this; }
  std::string_view name() const override { return "thirds"; }
  std::optional<std::vector<std::uint64_t>> words() const override { return std::vector{std::uint64_t(n)}; }
};
struct ThirdsModule : RankModule {
  std::string_view name() const override { return "thirds"; }
  Estimate estimate(const Members& members, const Analysis& a) const override {
    Index second = 0;
    if (members.size() > 1) members.read(1, 1, &second);
    if (second != 3) return Estimate::impossible("the second is not 3");
    return Estimate::of(a, Index(sizeof(Thirds)) + RankForm::counts_bytes, 1, -1, 0);
  }
  RankMap::Form build(const Members& members, const Analysis&) const override {
    return custom(std::make_shared<Thirds>(members.size()));
  }
  std::shared_ptr<const CustomForm> read(std::span<const std::uint64_t> words, Index, Index) const override {
    return words.empty() ? nullptr : std::make_shared<Thirds>(Index(words[0]));
  }
};

TEST(RankMap, what_a_module_wrote_is_read_by_it_and_looked_at) {
  const ThirdsModule module;
  const Modules modules{&module};
  const auto members = iota(0, 100, 3);
  const auto map = RankMap::of(members, 300, {0.25, modules, LookupKind::none});
  EXPECT_EQ(map.representation(), "thirds");
  EXPECT_EQ(map.bytes(), Index(sizeof(Thirds)) + RankForm::counts_bytes);
  expect_map(map, members, 300);
  const auto back = RankMap::from_bytes(map.to_bytes(), 100, modules);
  EXPECT_EQ(back.representation(), "thirds");
  expect_map(back, members, 300);
  const auto child = RankMap::child(map, RankMap::of(Ranks{7, 2, 99}, 100));
  EXPECT_EQ(RankMap::from_bytes(child.to_bytes(), 100, modules).to_vector(), (Ranks{21, 6, 297}));
  expect_error(ErrorKind::argument, {"module \"thirds\"", "not among"}, [&] { RankMap::from_bytes(map.to_bytes()); });

  constexpr StoredKind kind{"LSRM", 2, "rank map"};
  auto stored = [&](Index world, Index size, const char* form, const char* name, std::vector<std::uint64_t> words) {
    WordWriter out(kind);
    out.index(world), out.index(size), out.word(1), out.text(form), out.text(name), out.list(words);
    return std::move(out).finish();
  };
  EXPECT_EQ(stored(300, 100, "module", "thirds", {100}), map.to_bytes());
  auto refused = [&](const std::vector<std::byte>& bytes, const std::vector<std::string>& why) {
    expect_error(ErrorKind::argument, why, [&] { RankMap::from_bytes(bytes, 1000, modules); });
  };
  refused(stored(299, 101, "module", "thirds", {101}), {"rank 300", "position 100"});
  refused(stored(300, 100, "module", "thirds", {99}), {"99 members, not 100"});
  refused(stored(300, 100, "module", "thirds", {}), {"thirds"});
  refused(stored(300, 100, "module", "runs", {100}), {"runs", "reads nothing"});
  refused(stored(300, 100, "gap", "", {}), {"gap", "earlier versions"});
}

}  // namespace
}  // namespace longshore

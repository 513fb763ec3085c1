// Communicators of worlds whose ranks take turns, against plain arrays.
#include "longshore/engines/finegrain_communicator.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>

#include "longshore/ranks/rank_groups.hpp"
#include "longshore/ranks/rank_module.hpp"
#include "support/expect_error.hpp"
#include "support/finegrain.hpp"

namespace longshore::test {
namespace {

using finegrain::Communicator;
using finegrain::Rank;
using FinegrainCommunicator = Finegrain;

bool is_in(const std::vector<Index>& members, Index rank) {
  return std::find(members.begin(), members.end(), rank) != members.end();
}

std::vector<Index> some_of(Index world, Index count, bool sorted, std::mt19937& random) {
  std::vector<Index> ranks(static_cast<std::size_t>(world));
  std::iota(ranks.begin(), ranks.end(), Index{0});
  std::shuffle(ranks.begin(), ranks.end(), random);
  ranks.resize(std::size_t(count));
  if (sorted) std::sort(ranks.begin(), ranks.end());
  return ranks;
}

/// Whatever a communicator does, said with the plain array of its members.
void use(Communicator& group, const Rank& me, const std::vector<Index>& members, Index salt) {
  const Index n = Index(members.size()), i = group.rank(), root = salt % n;
  ASSERT_EQ(group.size(), n);
  ASSERT_EQ(members[std::size_t(i)], me.rank());
  ASSERT_EQ(group.members().world_rank(i), me.rank());
  const Index next = (i + 1) % n, before = (i + n - 1) % n;
  group.send(next, 3, bytes_of(Index{me.rank() * 1000 + salt}));
  ASSERT_EQ(receive(group, before, 3), members[std::size_t(before)] * 1000 + salt);
  std::vector<Index> gathered(i == root ? members.size() : 0, -1), everybody(members.size(), -1);
  group.gather(root, bytes_of(Index{me.rank()}), bytes_of(gathered));
  if (i == root) {
    ASSERT_EQ(gathered, members);
  }
  group.all_gather(bytes_of(Index{me.rank() + salt}), bytes_of(everybody));
  for (Index k = 0; k < n; ++k) ASSERT_EQ(everybody[std::size_t(k)], members[std::size_t(k)] + salt);
  Index told = me.rank() + salt;
  group.broadcast(root, bytes_of(told));
  ASSERT_EQ(told, members[std::size_t(root)] + salt);
  Index sum = me.rank();
  group.all_reduce(bytes_of(sum), Reduction(ElementType::int64, ReduceOp::add));
  ASSERT_EQ(sum, std::accumulate(members.begin(), members.end(), Index{0}));
  group.barrier();
}

TEST_F(FinegrainCommunicator, random_groups_and_orders_in_every_representation) {
  std::mt19937 random(5);
  for (int trial = 0; trial < (quick() ? 6 : 25); ++trial) {
    const Index world = 1 + Index(random() % 60);
    std::vector<std::vector<Index>> groups;
    std::vector<RankMap> maps;
    for (const auto* module : all_modules()) {
      const auto members = some_of(world, 1 + Index(random() % std::uint64_t(world)), random() % 2 == 0, random);
      const auto rows = explain(Members(members), world, {0.25, {module}, LookupKind::none}).rows;
      if (!rows[0].estimate.possible) continue;
      groups.push_back(members);
      maps.push_back(RankMap::of(members, world, Strategy::only(module->name())));
    }
    ASSERT_GT(maps.size(), 4u);
    std::vector<Index> turns(groups.size(), 0);
    finegrain::run(world,
                   [&](Rank& me) {
                     for (std::size_t k = 0; k < groups.size(); ++k) {
                       if (!is_in(groups[k], me.rank())) continue;
                       auto group = Communicator::create(me, maps[k]);
                       use(group, me, groups[k], Index(k));
                       ++turns[k];
                     }
                   },
                   {std::uint64_t(trial)});
    for (std::size_t k = 0; k < groups.size(); ++k) EXPECT_EQ(turns[k], Index(groups[k].size()));
  }
}

TEST_F(FinegrainCommunicator, messages_of_two_and_of_the_world_do_not_mix) {
  for (const std::uint64_t seed : {0, 1, 2})
    finegrain::run(3,
                   [](Rank& me) {
                     const std::vector<Index> turned{2, 0, 1};
                     auto one = Communicator::create(me, RankMap::whole(3)),
                          two = Communicator::create(me, RankMap::whole(3)),
                          three = Communicator::create(me, RankMap::of(turned, 3));
                     EXPECT_EQ(turned[std::size_t(three.rank())], me.rank());
                     // The same pair and tag in all of them, received in another order than sent.
                     if (me.rank() == 0) {
                       me.send(1, 7, bytes_of(Index{1}));
                       one.send(1, 7, bytes_of(Index{2}));
                       two.send(1, 7, bytes_of(Index{3}));
                       three.send(2, 7, bytes_of(Index{4}));
                     } else if (me.rank() == 1) {
                       EXPECT_EQ(receive(three, 1, 7), 4);
                       EXPECT_EQ(receive(two, 0, 7), 3);
                       EXPECT_EQ(receive(one, 0, 7), 2);
                       EXPECT_EQ(receive(me, 0, 7), 1);
                     }
                     if (me.rank() == 0) two.send(2, 0, bytes_of(Index{5})), one.send(2, 0, bytes_of(Index{6}));
                     if (me.rank() == 2) {
                       const auto message = one.receive(0, 0);
                       EXPECT_EQ(message.size(), sizeof(Index));
                       EXPECT_EQ(receive(two, 0, 0), 5);
                     }
                     // Collectives neither: rank 2 has called one of the world while the others are at theirs.
                     if (me.rank() != 2) {
                       auto pair = Communicator::create(me, RankMap::of(std::vector<Index>{1, 0}, 3));
                       for (int round = 0; round < 3; ++round) pair.barrier();
                       EXPECT_EQ(pair.rank(), 1 - me.rank());
                     }
                     me.barrier();
                   },
                   {seed});
}

TEST_F(FinegrainCommunicator, many_at_a_time) {
  // Rows and columns of a process grid.
  constexpr Index rows = 12, columns = 17;
  for (const std::uint64_t seed : {0, 4}) {
    Index made = 0;
    const auto statistics = finegrain::run(
        rows * columns,
        [&](Rank& me) {
          const Index row = me.rank() / columns, column = me.rank() % columns;
          const auto in_row = RankMap::of_nest(AffineNest::stride(row * columns, columns, 1), rows * columns),
                     in_column = RankMap::of_nest(AffineNest::stride(column, rows, columns), rows * columns);
          auto first = Communicator::create(me, in_row), second = Communicator::create(me, in_column);
          EXPECT_EQ(first.rank(), column);
          EXPECT_EQ(second.rank(), row);
          use(second, me, in_column.to_vector(), 1);
          use(first, me, in_row.to_vector(), 2);
          ++made;
        },
        {seed});
    EXPECT_EQ(made, rows * columns);
    EXPECT_EQ(statistics.messages, 2 * rows * columns);
  }
}

TEST_F(FinegrainCommunicator, members_share_the_map_of_the_first) {
  std::mt19937 random(8);
  const auto members = some_of(40, 20, false, random);
  Index different = 0;
  std::vector<const RankMap*> maps;
  finegrain::run(40, [&](Rank& me) {
    if (!is_in(members, me.rank())) return;
    // Equal maps, each in a representation of its own.
    auto group = Communicator::create(me, RankMap::of(members, 40, Strategy::only(me.rank() % 2 ? "packed" : "array")));
    maps.push_back(&group.members());
    group.barrier();
    different += &group.members() != maps.front();
    auto again = group;  // a value
    use(again, me, members, 4);
  });
  EXPECT_EQ(maps.size(), 20u);
  EXPECT_EQ(different, 0);
}

TEST_F(FinegrainCommunicator, a_large_world_gathers_a_permuted_group) {
  const Index world = quick() ? 2000 : 20000, half = world / 2;
  std::mt19937 random(3);
  const auto members = some_of(world, half, false, random);
  std::vector<bool> member(std::size_t(world), false);
  for (const Index r : members) member[std::size_t(r)] = true;
  const RankMap map = RankMap::of(members, world);
  std::vector<Index> gathered(members.size(), -1);
  finegrain::run(world,
                 [&](Rank& me) {
                   if (!member[std::size_t(me.rank())]) return;
                   auto group = Communicator::create(me, map);
                   ASSERT_EQ(members[std::size_t(group.rank())], me.rank());
                   for (Index round = 0; round < 3; ++round) {
                     const Index mine = me.rank() * 3 + round, root = half / (round + 1) - 1;
                     group.gather(root, bytes_of(mine),
                                  group.rank() == root ? bytes_of(gathered) : std::span<std::byte>());
                     if (group.rank() != root) continue;
                     for (Index k = 0; k < half; ++k)
                       ASSERT_EQ(gathered[std::size_t(k)], members[std::size_t(k)] * 3 + round);
                   }
                   const Index opposite = (group.rank() + half / 2) % half;
                   group.send(opposite, 0, bytes_of(Index{me.rank()}));
                   ASSERT_EQ(receive(group, opposite, 0), members[std::size_t(opposite)]);
                 },
                 {9});
}

TEST_F(FinegrainCommunicator, says_what_is_wrong) {
  const RankMap odd = RankMap::of(std::vector<Index>{5, 1, 3}, 6);
  auto members = [&](auto&& call) {
    return [&odd, call] {
      finegrain::run(6, [&](Rank& me) {
        if (!odd.contains(me.rank())) return;
        auto group = Communicator::create(me, odd);
        call(group);
      });
    };
  };
  const std::vector<std::byte> eight(8);
  expect_error(ErrorKind::argument, {"there is no rank 3; communicator 1 has 3"},
               members([](Communicator& group) { group.send(3, 0, {}); }));
  expect_error(ErrorKind::argument, {"there is no rank -1; communicator 1 has 3"},
               members([](Communicator& group) { group.receive(-1, 0, {}); }));
  expect_error(ErrorKind::argument, {"tag -2 is negative"},
               members([](Communicator& group) { group.send(0, -2, {}); }));
  expect_error(ErrorKind::argument, {"there is no rank 4 to gather at; communicator 1 has 3"},
               members([](Communicator& group) { group.gather(4, {}, {}); }));
  expect_error(ErrorKind::disagreement,
               {"rank 2 of communicator 1 (rank 3 of the world) brings 8 bytes to gather(), rank 0 0"},
               members([&](Communicator& group) {
                 group.gather(0, {eight.data(), group.rank() == 2 ? 8u : 0u}, {});
               }));
  expect_error(ErrorKind::disagreement,
               {"rank 1 of communicator 1 (rank 1 of the world) gathers at rank 1, rank 0 at rank 0"},
               members([](Communicator& group) { group.gather(group.rank() == 1, {}, {}); }));
  expect_error(ErrorKind::disagreement,
               {"this rank has called", "of communicator 1 where rank", "barrier()", "all_gather()"},
               members([](Communicator& group) { group.rank() == 1 ? group.all_gather({}, {}) : group.barrier(); }));
  expect_error(ErrorKind::disagreement,
               {"rank 5 has returned without receiving a message of rank 1 (communicator 1, tag 4, 8 bytes)"},
               members([&](Communicator& group) {
                 if (group.rank() == 1) group.send(0, 4, eight);
               }));
  expect_error(ErrorKind::shape, {"rank 5 receives 0 bytes of rank 1 (communicator 1, tag 4), which has sent 8"},
               members([&](Communicator& group) {
                 if (group.rank() == 1) group.send(0, 4, eight);
                 if (group.rank() == 0) group.receive(1, 4, {});
               }));
  expect_error(ErrorKind::argument, {"at least one member"},
               [] { finegrain::run(2, [](Rank& me) { Communicator::create(me, RankMap()); }); });
  expect_error(ErrorKind::argument, {"of a world of 6 ranks; this one has 8"},
               [&] { finegrain::run(8, [&](Rank& me) { Communicator::create(me, odd); }); });
  expect_error(ErrorKind::argument, {"rank 0 makes a communicator of 3 ranks and is none of them"}, [&] {
    finegrain::run(6, [&](Rank& me) {
      if (me.rank() < 2 || me.rank() == 5) Communicator::create(me, odd);
    });
  });

  // An error of a collective is the members' alone; others, and what comes after, are as ever.
  Index caught = 0;
  finegrain::run(6, [&](Rank& me) {
    if (odd.contains(me.rank())) {
      auto group = Communicator::create(me, odd);
      std::vector<std::byte> message(group.rank() == 1 ? 8u : 0u);
      expect_error(ErrorKind::disagreement, {"brings 8 bytes"}, [&] { group.broadcast(0, message); });
      ++caught;
      group.barrier();
    }
    me.barrier();
  });
  EXPECT_EQ(caught, 3);

  std::optional<Communicator> kept;
  finegrain::run(1, [&](Rank& me) { kept = Communicator::create(me, RankMap::whole(1)); });
  expect_error(ErrorKind::argument, {"rank 0's part of a world is used when that world is over"},
               [&] { kept->barrier(); });
}

TEST_F(FinegrainCommunicator, deadlocks_say_which) {
  const RankMap pair = RankMap::of(std::vector<Index>{2, 1}, 3), whole = RankMap::whole(3);
  expect_error(ErrorKind::deadlock,
               {"rank 2 waits in create() of a communicator of 2 ranks for rank 1\n  rank 1 has returned"}, [&] {
                 finegrain::run(3, [&](Rank& me) {
                   if (me.rank() == 2) Communicator::create(me, pair);
                 });
               });
  // Members who disagree wait for one another.
  expect_error(ErrorKind::deadlock,
               {"waits in create() of a communicator of 2 ranks for rank 1\n",
                "rank 1 waits in create() of a communicator of 3 ranks for rank 2"},
               [&] { finegrain::run(3, [&](Rank& me) { Communicator::create(me, me.rank() == 2 ? pair : whole); }); });
  expect_error(ErrorKind::deadlock,
               {"rank 1 waits for a message of rank 2 (communicator 1, tag 5)\n",
                "rank 2 waits in barrier() of communicator 1 for rank 1"},
               [&] {
                 finegrain::run(3, [&](Rank& me) {
                   if (me.rank() == 0) return;
                   auto group = Communicator::create(me, pair);
                   if (me.rank() == 1)
                     group.receive(0, 5, {});
                   else
                     group.barrier();
                 });
               });
}

}  // namespace
}  // namespace longshore::test

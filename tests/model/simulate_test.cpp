#include "longshore/model/simulate.hpp"

#include <map>
#include <random>

#include "longshore/layouts/balance.hpp"
#include "longshore/plans/block_builders.hpp"
#include "support/clock.hpp"
#include "support/expect_error.hpp"
#include "support/quick.hpp"

namespace longshore::test {
namespace {

const LogGP cluster{3, 0.5, 0.7, 1, 0.01};

Network on(const LogGP& loggp, Link link = Link::shared, Index queue = 0) { return {loggp, link, queue, 0}; }

void expect_whole(const Simulation& found) {
  EXPECT_NEAR(found.critical_shares.sum(), found.seconds, 1e-6 * found.seconds);
  Index ranks = 0;
  TimeShares shares;
  for (const auto& of : found.classes) {
    ranks += of.ranks, shares += of.shares;
    EXPECT_LE(of.seconds, found.seconds);
  }
  EXPECT_NEAR(shares.sum(), found.shares.sum(), 1e-9 * shares.sum());
  EXPECT_GT(ranks, 0);
}

TEST(Simulate, one_message_takes_what_loggp_says) {
  RankSteps steps(2);
  steps.send(1, 100);
  steps.of(1);
  steps.receive(1);
  const auto found = simulate(steps, on(cluster));
  EXPECT_DOUBLE_EQ(found.seconds, 0.5 + 3 + 100 * 0.01 + 0.7);
  EXPECT_EQ(found.critical, 1);
  EXPECT_EQ(found.messages, 1);
  EXPECT_EQ(found.bytes, 100);
  EXPECT_NEAR(found.critical_shares.bandwidth, 1, 1e-6);
  EXPECT_NEAR(found.critical_shares.latency, 3, 1e-6);
  EXPECT_NEAR(found.critical_shares.waiting, 0.5, 1e-6);  // until it has been sent
  EXPECT_DOUBLE_EQ(found.critical_shares.issuing, 0.7);
  expect_whole(found);
}

TEST(Simulate, messages_of_a_rank_leave_a_gap_apart_or_one_after_the_other) {
  for (const Index bytes : {Index{0}, Index{1000}}) {
    RankSteps steps(2);
    for (int k = 0; k < 10; ++k) steps.send(1, bytes);
    steps.of(1);
    steps.receive(RankSteps::all);
    const auto found = simulate(steps, on(cluster));
    EXPECT_NEAR(found.seconds, 0.5 + 9 * std::max(1.0, 0.01 * double(bytes)) + 3 + 0.01 * double(bytes) + 0.7, 1e-9);
    expect_whole(found);
  }
}

TEST(Simulate, what_depends_on_a_message_waits_for_it) {
  RankSteps steps(4);  // a chain, the last one of which hears two stages in the other order
  steps.compute(5), steps.send(1, 0, 0);
  steps.of(1), steps.receive(1, 0), steps.send(3, 0, 1);
  steps.of(2), steps.send(3, 0, 2);
  steps.of(3), steps.receive(1, 1), steps.receive(1, 2);
  const auto found = simulate(steps, on(cluster));
  EXPECT_DOUBLE_EQ(found.seconds, 5 + 2 * (0.5 + 3 + 0.7) + 0.7);
  expect_whole(found);
  EXPECT_EQ(found.classes.size(), 4u - 1u);  // ranks 0 and 2 are alike
}

TEST(Simulate, who_waits_for_what_nobody_sends_is_told) {
  RankSteps steps(3);
  steps.send(2, 8, 1);
  steps.of(2), steps.receive(1, 1), steps.receive(2, 4);
  expect_error(ErrorKind::deadlock, {"rank 2", "2 more messages of stage 4"}, [&] { simulate(steps, on(cluster)); });
}

TEST(Simulate, all_to_one_is_bound_by_the_bandwidth_of_that_one) {
  constexpr Index ranks = 100, bytes = 100'000;
  RankSteps steps(ranks);
  steps.receive(ranks - 1);
  for (Index r = 1; r < ranks; ++r) steps.of(r), steps.send(0, bytes);
  const auto found = simulate(steps, on(cluster));
  const double bound = (ranks - 1) * 0.01 * bytes;
  EXPECT_GE(found.seconds, bound);
  EXPECT_LE(found.seconds, 1.01 * bound);
  EXPECT_EQ(found.critical, 0);
  EXPECT_GT(found.critical_shares.bandwidth, 0.9 * bound);
  expect_whole(found);
  // And so is reading from it, of those who read.
  StripLoop loop;
  loop.elements = 10'000;
  const auto read = simulate(strip_steps(StripSchedule::fixed(100, 2), loop, Pattern::all_to_one, ranks), on(cluster));
  EXPECT_GE(read.seconds, (ranks - 1) * 0.01 * 80'000);
  EXPECT_LE(read.seconds, 1.02 * (ranks - 1) * 0.01 * 80'000);
  EXPECT_GT(read.critical_shares.bandwidth, 0.9 * read.seconds);
}

TEST(Simulate, all_to_all_keeps_every_network_interface_at_work) {
  const MotionPlan plan(Layout::parse("(BLOCK, *) on 50", {1000, 1000}),
                        Layout::parse("(*, BLOCK) on 50", {1000, 1000}), 8);
  const auto found = simulate(exchange_steps(plan), on(cluster));
  EXPECT_EQ(found.messages, 50 * 49);
  EXPECT_EQ(found.bytes, 50.0 * 49 * 20 * 20 * 8);
  EXPECT_GE(found.seconds, 49 * 0.01 * 3200);
  EXPECT_LE(found.seconds, 1.05 * 49 * 0.01 * 3200 + 49 * 0.7);
  expect_whole(found);
}

TEST(Simulate, a_queue_holds_so_many_messages_and_no_more) {
  RankSteps steps(2);
  for (int k = 0; k < 8; ++k) steps.send(1, 1000);
  steps.of(1);
  steps.receive(RankSteps::all);
  const auto free = simulate(steps, on(cluster)), one = simulate(steps, on(cluster, Link::shared, 1));
  EXPECT_EQ(free.classes[1].shares.queue, 0);
  EXPECT_NEAR(one.classes[1].shares.queue, 7 * 10, 1e-9);  // until each has left
  EXPECT_NEAR(one.seconds - free.seconds, 7 * 0.5, 1e-9);
  // Gets are under way until they have come: with one at a time there is no overlap.
  StripLoop loop;
  loop.elements = 1000;
  const auto strips = strip_steps(StripSchedule::fixed(10, 4), loop, Pattern::one_to_one, 2);
  EXPECT_NEAR(simulate(strips, on(cluster, Link::shared, 1)).seconds, 100 * (1.2 + 6 + 0.8), 1e-6);
  EXPECT_NEAR(simulate(strips, on(cluster, Link::shared, 5)).seconds,
              simulate(strips, on(cluster, Link::shared)).seconds, 1e-6);
}

TEST(Simulate, strip_mined_loops_take_what_the_equations_say) {
  std::mt19937_64 random(2);
  auto any = [&](double most) { return most * double(random() % 1001) / 1000; };
  int differ = 0;
  for (int i = 0; i < (quick() ? 200 : 1500); ++i) {
    const LogGP p{any(2) * (i % 2), any(0.5), any(0.5), any(2), any(0.02)};
    StripLoop loop;
    loop.elements = Index(random() % 5000), loop.element_bytes = 1 + Index(random() % 16);
    loop.compute = any(0.03), loop.memory = any(0.01), loop.rolling = random() % 2;
    loop.link = random() % 2 ? Link::shared : Link::independent;
    const Index size = 1 + Index(random() % 300), depth = 1 + Index(random() % 6);
    const auto schedule = std::vector{StripSchedule::fixed(size, depth), StripSchedule::variable(size, any(1), depth),
                                      StripSchedule::vectorized(), StripSchedule::small()}[i % 4];
    const auto told = strip_cost(schedule, loop, p);
    const auto found = simulate(strip_steps(schedule, loop, Pattern::one_to_one, 3), on(p, loop.link));
    ASSERT_NEAR(found.seconds, told.seconds(), 1e-9 * told.seconds()) << schedule.to_string();
    ASSERT_NEAR(found.critical_shares.issuing + found.critical_shares.gap + found.critical_shares.bandwidth +
                    found.critical_shares.latency + found.critical_shares.waiting,
                told.communication(), 1e-6 * told.seconds());
    // Where computation hides the transfers, it does not matter whether they share the link.
    loop.link = loop.link == Link::shared ? Link::independent : Link::shared;
    const double other = strip_cost(schedule, loop, p).seconds();
    if (loop.compute > 1.2 * p.G && schedule.kind() == StripSchedule::Kind::fixed &&
        loop.elements > 100 * schedule.size() * (schedule.depth() + 1)) {
      EXPECT_NEAR(found.seconds, other, 0.02 * other) << schedule.to_string();
      ++differ;
    }
  }
  EXPECT_GT(differ, 0);
}

TEST(Simulate, ranks_of_a_halo_are_classes_by_how_many_neighbours_they_have) {
  const auto plan = halo_exchange(even_floor_plan(Region({0, 0, 0}, {40, 40, 40}), 64), Halo(3, 1));
  auto network = on(cluster);
  network.copy = 0.001;
  const auto found = simulate(exchange_steps(plan, 8), network);
  ASSERT_EQ(found.classes.size(), 4u);  // corners, edges, faces and the interior of 4 x 4 x 4 blocks
  std::map<Index, Index> neighbours;
  for (const auto& of : found.classes) {
    neighbours[of.messages_in] = of.ranks;
    EXPECT_EQ(of.messages_in, of.messages_out);
  }
  EXPECT_EQ(neighbours, (std::map<Index, Index>{{7, 8}, {11, 24}, {17, 24}, {26, 8}}));
  EXPECT_GT(found.critical_shares.computing, 0);
  expect_whole(found);
  expect_error(ErrorKind::argument, {"rank 3 only"}, [] {
    exchange_steps(halo_exchange(even_floor_plan(Region({0, 0}, {8, 8}), 4), Halo(2, 1), 3), 8);
  });
}

TEST(Simulate, a_halo_of_a_million_ranks_takes_seconds) {
  const Clock clock(60);
  const Index side = quick() ? 30 : 100;
  RankSteps steps(side * side * side);
  for (Index rank = 0; rank < side * side * side; ++rank) {
    steps.of(rank);
    for (const Index next : {side * side, side, Index{1}}) {
      const Index at = rank / next % side;
      if (at > 0) steps.send(rank - next, 8192);
      if (at < side - 1) steps.send(rank + next, 8192);
    }
    steps.receive(RankSteps::all);
  }
  const auto found = simulate(steps, on({1e-6, 2e-7, 2e-7, 3e-7, 1e-10}));
  EXPECT_EQ(found.messages, 6 * side * side * (side - 1));
  expect_whole(found);
}

TEST(Simulate, what_cannot_be_is_an_error) {
  expect_error(ErrorKind::argument, {"steps of 0 ranks"}, [] { RankSteps(0); });
  RankSteps steps(2);
  expect_error(ErrorKind::argument, {"position 2"}, [&] { steps.of(2); });
  expect_error(ErrorKind::argument, {"rank 0", "rank 2", "[0, 2)"}, [&] { steps.send(2, 1); });
  expect_error(ErrorKind::argument, {"-1 bytes"}, [&] { steps.get(1, -1); });
  expect_error(ErrorKind::argument, {"stage 65536"}, [&] { steps.send(1, 1, 65536); });
  expect_error(ErrorKind::argument, {"no get"}, [&] { steps.sync(); });
  expect_error(ErrorKind::argument, {"computes for nan"}, [&] { steps.compute(NAN); });
  steps.of(1);
  expect_error(ErrorKind::argument, {"rank 0 after those of rank 1"}, [&] { steps.of(0); });
  expect_error(ErrorKind::argument, {"g is -1"}, [&] { simulate(steps, on({0, 0, 0, -1, 0})); });
  expect_error(ErrorKind::argument, {"-2 messages under way"}, [&] { simulate(steps, on(cluster, Link::shared, -2)); });
  EXPECT_EQ(simulate(RankSteps(3), on(cluster)).seconds, 0);
  StripLoop endless;
  endless.elements = INT64_MAX;
  expect_error(ErrorKind::memory_limit, {"more than 268435456 steps"},
               [&] { strip_steps(StripSchedule::small(), endless, Pattern::one_to_one, 2); });
  expect_error(ErrorKind::argument, {"another one to read from"},
               [] { strip_steps(StripSchedule::small(), {}, Pattern::all_to_one, 1); });
}

}  // namespace
}  // namespace longshore::test

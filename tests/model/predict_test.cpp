#include "longshore/model/predict.hpp"

#include "support/expect_error.hpp"
#include "support/profiles.hpp"

namespace longshore::test {
namespace {

// 1000 MB/s are a nanosecond a byte.
const Rates rates{{"1C1", 1000}, {"64C1", 100}, {"1C64", 50}};

MachineProfile machine() {
  return profile_of({copies_at(rates)}, {{"direct", "same node", {{1, 2e-6}, {1001, 9}}, 3e-7},
                                         {"ring", "same node", {{1, 3e-6}, {1001, 7e-6}}, 2e-7},
                                         {"messages", "same node", {{1, 4e-6}, {1001, 6e-6}}, 5e-7},
                                         {"collective", "same node", {{1, 8e-6}, {1001, 9e-6}}, 1e-7},
                                         {"messages", "other node", {{1, 1e-5}, {1001, 1.1e-5}}, 0}});
}

CopyShape strided(Index read, Index write) {
  CopyShape shape;
  shape.read = read, shape.write = write;
  return shape;
}

/// 1001 bytes to peer 1, every 64th word of the source, and as many from there in two transfers to contiguous places.
Traffic one_peer() {
  Traffic made;
  made.outgoing = {{1, strided(64, 1), 1, 1001}};
  made.incoming = {{1, {}, 2, 1001}};
  made.touched_bytes = 1001;
  return made;
}

WayCost way(const Prediction& told, const std::string& name) {
  for (const auto& one : told.ways)
    if (one.way == name) return one;
  ADD_FAILURE() << "no way " << name;
  return {};
}

TEST(Predict, threads_copy_what_stays_in_the_process) {
  Traffic made;
  made.local = {{0, strided(64, 1), 2, 1000}};
  made.touched_bytes = 1000;
  const auto alone = predict(made, machine(), {1});
  ASSERT_EQ(alone.ways.size(), 1u);
  EXPECT_EQ(alone.ways[0].way, "threads");
  EXPECT_DOUBLE_EQ(alone.ways[0].seconds, 1e-6 + 1000 * 1e-8 + 2 * 1e-7);
  EXPECT_EQ(alone.ways[0].expression.to_string(), "64C1");
  EXPECT_DOUBLE_EQ(alone.ways[0].expression_megabytes_per_second, 100);
  EXPECT_EQ(alone.ways[0].bottleneck, "64C1");
  EXPECT_EQ(alone.ways[0].bytes, 0);
  // What is small is the caller's alone.
  EXPECT_DOUBLE_EQ(predict(made, machine(), {4}).ways[0].seconds, alone.ways[0].seconds);
  // Else four threads share it, once they are awake; until then the caller has begun.
  made.local[0].bytes = 1'000'000;
  const double by_caller = 1e6 * 1e-8 + 2 * 1e-7;
  EXPECT_DOUBLE_EQ(predict(made, machine(), {4}).ways[0].seconds, 1e-6 + 5e-6 + (by_caller - 5e-6) / 4);
}

TEST(Predict, short_runs_of_a_halo_share_their_lines) {
  Traffic made;
  made.blocks = true;
  made.local = {{0, strided(64, 64), 1, 1000}};
  made.touched_bytes = 1000;
  made.local[0].shape.run_bytes = 8;
  const auto apart = predict(made, machine(), {1}).ways[0].seconds;
  made.halo = true;
  EXPECT_DOUBLE_EQ(predict(made, machine(), {1}).ways[0].seconds - 1e-6, (apart - 1e-6) / 2);
  made.local[0].shape.run_bytes = 64;
  EXPECT_DOUBLE_EQ(predict(made, machine(), {1}).ways[0].seconds, apart);
}

TEST(Predict, direct_copies_what_comes_in) {
  const auto cost = way(predict(one_peer(), machine()), "direct");
  EXPECT_DOUBLE_EQ(cost.seconds, 2e-6 + 2 * 3e-7 + 1001 * 1e-9);
  EXPECT_EQ(cost.expression.to_string(), "1C1");
  EXPECT_EQ(cost.bytes, 1001);
  EXPECT_EQ(cost.messages, 1);
  EXPECT_EQ(cost.extra_bytes, 0);
}

TEST(Predict, who_exchanges_with_nobody_waits_for_nobody) {
  Traffic alone;
  alone.local = {{0, {}, 1, 1000}};
  alone.touched_bytes = 1000;
  for (const auto& one : predict(alone, machine()).ways)
    EXPECT_DOUBLE_EQ(one.seconds, 1e-6 + 1000 * 1e-9 + 1e-7) << one.way;
}

TEST(Predict, rings_are_packed_into_and_unpacked_from) {
  const auto cost = way(predict(one_peer(), machine()), "ring");
  // An exchange of 1001 bytes, two transfers that come in, and 9 ns a byte that packing takes beyond copying.
  EXPECT_DOUBLE_EQ(cost.seconds, 7e-6 + 2 * 2e-7 + 1001 * 9e-9);
  EXPECT_EQ(cost.expression.to_string(), "64S0 ∘ 0R1");
  EXPECT_EQ(cost.bottleneck, "64S0");
  EXPECT_EQ(cost.extra_bytes, 0);
}

TEST(Predict, messages_are_packed_sent_and_unpacked) {
  const auto cost = way(predict(one_peer(), machine()), "messages");
  // What is sent is packed at 10 ns a byte; what comes in goes to two places, at 1 ns a byte.
  EXPECT_DOUBLE_EQ(cost.seconds, 6e-6 + 2 * 5e-7 + 1001 * 1e-8 + 1001 * 1e-9);
  EXPECT_EQ(cost.expression.to_string(), "64C1 ∘ (1S0 ‖ Nd ‖ 0D1)");
  EXPECT_EQ(cost.extra_bytes, 2 * 1001);
  EXPECT_EQ(way(predict(one_peer(), machine()), "collective").expression, cost.expression);
  auto whole = one_peer();
  whole.outgoing[0].shape = {}, whole.incoming[0].transfers = 1;
  const auto sent = way(predict(whole, machine()), "messages");
  EXPECT_DOUBLE_EQ(sent.seconds, 6e-6 + 5e-7);
  EXPECT_EQ(sent.expression.to_string(), "1S0 ‖ Nd ‖ 0D1");
  EXPECT_EQ(sent.extra_bytes, 0);
}

TEST(Predict, what_leaves_the_node_goes_in_messages) {
  const auto told = predict(one_peer(), machine(), {0, 1});
  for (const auto& one : told.ways) EXPECT_NE(one.way, "collective");
  // The start within the node, the message there and back, packing and unpacking.
  EXPECT_DOUBLE_EQ(way(told, "messages").seconds, 4e-6 + 1.1e-5 + 1001 * 1e-8 + 1001 * 1e-9);
  EXPECT_EQ(way(told, "messages").extra_bytes, 2 * 1001);
  expect_error(ErrorKind::argument, {"other nodes", "calibrate on two nodes"}, [] {
    predict(one_peer(), profile_of({copies_at(rates)}, {{"ring", "same node", {{1, 1e-6}}, 0}}), {0, 1});
  });
}

TEST(Predict, each_way_is_the_fastest_somewhere) {
  for (const std::string fastest : {"direct", "ring", "messages", "collective"}) {
    std::vector<ExchangeTimes> exchanges;
    for (const std::string name : {"direct", "ring", "messages", "collective"})
      exchanges.push_back({name, "same node", {{1, name == fastest ? 1e-6 : 1e-4}, {1 << 20, 2e-4}}, 0});
    const auto told = predict(one_peer(), profile_of({copies_at(rates)}, exchanges));
    ASSERT_EQ(told.ways.size(), 4u);
    EXPECT_EQ(told.ways[0].way, fastest);
    for (std::size_t k = 1; k < 4; ++k) EXPECT_GE(told.ways[k].seconds, told.ways[k - 1].seconds);
  }
}

TEST(Predict, one_machine_has_a_case_for_each_way) {
  // A direct copy starts at once, but its reads miss; rings cost a copy more and messages start slowly, all at once
  // even more so.
  auto from_elsewhere = copies_at({{"1C1", 100}, {"64C1", 100}, {"1C64", 100}}, {CopyRates::beyond_caches, 1, true});
  const auto profile = profile_of({copies_at(rates), from_elsewhere},
                                  {{"direct", "same node", {{1, 1e-6}}, 5e-7},
                                   {"ring", "same node", {{1, 2e-6}, {10'001, 3e-5}}, 1e-8},
                                   {"messages", "same node", {{1, 4e-6}, {10'001, 8e-6}, {20'001, 8e-5}}, 1e-8},
                                   {"collective", "same node", {{1, 2e-5}, {100'001, 3e-5}}, 0}});
  const auto best = [&](Index bytes, Index transfers) {
    Traffic made;
    made.outgoing = {{1, {}, transfers, bytes}}, made.incoming = {{1, {}, transfers, bytes}};
    made.touched_bytes = bytes;
    return predict(made, profile).ways[0].way;
  };
  EXPECT_EQ(best(8, 1), "direct");
  EXPECT_EQ(best(400, 20), "ring");
  EXPECT_EQ(best(10'000, 1), "messages");
  EXPECT_EQ(best(100'000, 1), "collective");
}

/// Loops over what arrives: gets start at 5 us and take 2 ns a byte within a node, 10 us and 10 ns between nodes.
MachineProfile machine_of_loops() {
  auto exchanges = machine().exchanges();
  exchanges.push_back({"gets", "same node", {{1, 5e-6}, {1001, 7e-6}}, 4e-7});
  exchanges.push_back({"gets", "other node", {{1, 1e-5}, {1'000'001, 1.001e-2}}, 6e-7});
  return profile_of({copies_at(rates)}, exchanges);
}

Job loop_of(double work, Index ranks_per_node = 0) {
  Job job;
  job.ranks_per_node = ranks_per_node, job.work = work;
  return job;
}

TEST(Predict, loops_count_their_work_and_may_get_what_they_need) {
  for (const auto& one : predict(one_peer(), machine_of_loops()).ways) {
    EXPECT_NE(one.way, "gets");
    EXPECT_NE(one.way, "strips");
  }
  const auto told = predict(one_peer(), machine_of_loops(), loop_of(3e-9));
  EXPECT_DOUBLE_EQ(way(told, "direct").seconds, way(predict(one_peer(), machine()), "direct").seconds + 1001 * 3e-9);
  // A start, the access, one transfer beyond the first, and the loop over what has come.
  const auto gets = way(told, "gets");
  EXPECT_DOUBLE_EQ(gets.seconds, 1e-6 + 7e-6 + 4e-7 + 1001 * 3e-9);
  EXPECT_EQ(gets.expression.to_string(), "1F0 ‖ Nadp ‖ 0D1");
  EXPECT_EQ(gets.extra_bytes, 0);
  for (const auto& one : told.ways) EXPECT_NE(one.way, "strips") << "nothing comes from another node";
  auto whole = one_peer();
  whole.incoming[0].transfers = 1;
  EXPECT_EQ(way(predict(whole, machine_of_loops(), loop_of(0)), "gets").expression.to_string(), "1F0 ‖ Nd ‖ 0D1");
  // Words that lie apart there are a stretch each, those that are written apart here are none.
  auto apart = whole;
  apart.incoming[0].shape = strided(64, 1), apart.incoming[0].bytes = 8008;
  auto scattered = apart;
  scattered.incoming[0].shape = strided(1, 64);
  const double together = 1e-6 + 8 * 7e-6;
  EXPECT_DOUBLE_EQ(way(predict(apart, machine_of_loops(), loop_of(0)), "gets").seconds,
                   together + 1000 * 4e-7 + 8008 * 9e-9);
  EXPECT_DOUBLE_EQ(way(predict(scattered, machine_of_loops(), loop_of(0)), "gets").seconds, together + 8008 * 19e-9);
  // What is not measured is not there, and what stays here is no access.
  for (const auto& one : predict(one_peer(), machine(), loop_of(0)).ways) EXPECT_NE(one.way, "gets");
  Traffic alone;
  alone.local = {{0, {}, 1, 1000}};
  alone.touched_bytes = 1000;
  EXPECT_DOUBLE_EQ(way(predict(alone, machine_of_loops(), loop_of(1e-9)), "gets").seconds,
                   1e-6 + 1000 * 1e-9 + 1e-7 + 1000 * 1e-9);
  auto job = loop_of(1e-9);
  job.threads = 1;
  EXPECT_DOUBLE_EQ(predict(alone, machine_of_loops(), job).ways[0].seconds, 1e-6 + 1000 * 1e-9 + 1e-7 + 1000 * 1e-9);
  expect_error(ErrorKind::argument, {"work is -1"}, [] { predict(one_peer(), machine(), loop_of(-1)); });
}

TEST(Predict, strips_hide_the_loop_behind_what_comes_from_other_nodes) {
  Traffic made;
  made.incoming = {{1, {}, 1, 1'000'000}}, made.outgoing = made.incoming;
  made.touched_bytes = 1'000'000;
  // As much to compute as to transfer: 10 ms each.
  auto job = loop_of(1e-8, 1);
  for (const auto& one : predict(made, machine_of_loops(), job).ways)
    EXPECT_NE(one.way, "strips") << "LogGP is not known";
  job.loggp = LogGP{.L = 1e-6, .o_s = 1e-6, .o_r = 1e-6, .g = 1e-6, .G = 1e-8};
  const auto told = predict(made, machine_of_loops(), job);
  const auto gets = way(told, "gets"), strips = way(told, "strips");
  EXPECT_EQ(told.ways[0].way, "strips");
  EXPECT_NEAR(gets.seconds, 2e-2, 2e-4);
  EXPECT_LT(strips.seconds, 1.1e-2);
  EXPECT_GT(strips.seconds, 1e-2);
  EXPECT_GT(strips.extra_bytes, 0);
  EXPECT_LT(strips.extra_bytes, 100'000);
  // With nothing to compute there is nothing to hide.
  job.work = 0;
  const auto idle = predict(made, machine_of_loops(), job);
  EXPECT_GE(way(idle, "strips").seconds, 0.99 * way(idle, "gets").seconds);
  // What comes from this node, and its part of the loop, come on top.
  made.incoming.push_back({5, {}, 1, 1001});
  job.work = 1e-8, job.ranks_per_node = 0;
  auto apart = made;
  apart.incoming[0].peer = apart.outgoing[0].peer = 9;
  job.ranks_per_node = 8;
  EXPECT_DOUBLE_EQ(way(predict(apart, machine_of_loops(), job), "strips").seconds, strips.seconds + 7e-6 + 1001 * 1e-8);
}

TEST(Predict, of_several_ranks_the_slowest_counts) {
  auto slow = one_peer();
  slow.rank = 5, slow.incoming[0].bytes = slow.outgoing[0].bytes = 100'000;
  const auto told = predict({one_peer(), slow, one_peer()}, machine());
  EXPECT_EQ(told.rank, 5);
  const auto alone = predict(slow, machine());
  ASSERT_EQ(told.ways.size(), alone.ways.size());
  for (std::size_t k = 0; k < told.ways.size(); ++k) EXPECT_EQ(told.ways[k].seconds, alone.ways[k].seconds);
  expect_error(ErrorKind::argument, {"no rank"}, [] { predict(std::vector<Traffic>(), machine()); });
}

TEST(Predict, says_what_it_rests_on) {
  EXPECT_FALSE(predict(one_peer(), machine()).coarse);
  EXPECT_TRUE(predict(one_peer(), profile_of({copies_at(rates)}, machine().exchanges(), true)).coarse);
  expect_error(ErrorKind::argument, {"by hand", "calibrate on a machine with MPI"},
               [] { predict(one_peer(), profile_of({copies_at(rates)})); });
}

}  // namespace
}  // namespace longshore::test

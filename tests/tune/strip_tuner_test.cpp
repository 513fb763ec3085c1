// The tuner on loops whose times are made up: it finds what is fast, and lets strips alone where they do not pay.
#include "longshore/tune/strip_tuner.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "support/expect_error.hpp"

namespace longshore::test {
namespace {

using Seconds = std::function<StripCost(const StripSchedule&)>;

/// How many loops until it is settled.
int settle(StripTuner& tuner, const TunedLoop& loop, const Seconds& cost) {
  int loops = 0;
  while (!tuner.settled(loop) && loops < 300) {
    const auto schedule = tuner.schedule(loop);
    const auto told = cost(schedule);
    tuner.record(loop, schedule, told.seconds(), told.communication());
    tuner.schedule(loop);
    ++loops;
  }
  return loops;
}

Seconds by_model(const LogGP& link, const TunedLoop& loop, double compute, double noise, std::mt19937& random) {
  return [=, &random](const StripSchedule& schedule) {
    auto cost = strip_cost(schedule, {loop.rows, loop.row_bytes, compute, 0, Link::shared, true}, link);
    const double factor = 1 + noise * std::uniform_real_distribution<>(0, 1)(random);
    cost.issuing *= factor, cost.waiting *= factor, cost.computing *= factor;
    return cost;
  };
}

TEST(StripTuner, comes_near_the_best_of_all_schedules) {
  std::mt19937 random(3);
  int near = 0, all = 0;
  for (const double latency : {2e-6, 50e-6})
    for (const double G : {1e-9, 8e-9})
      for (const double share : {0.2, 1.0, 3.0})
        for (const Index rows : {Index{1} << 13, Index{1} << 17, Index{3} << 18}) {
          const LogGP link{.L = latency, .o_s = 2e-6, .o_r = 1e-6, .g = 2e-6, .G = G};
          const TunedLoop loop{"loop", rows, 8};
          const auto cost = by_model(link, loop, share * G, 0.02, random);
          StripTuner tuner;
          EXPECT_LE(settle(tuner, loop, cost), cost(StripSchedule::vectorized()).seconds() > 5e-3 ? 100 : 220);
          std::mt19937 none(0);
          const auto exact = by_model(link, loop, share * G, 0, none);
          double best = exact(StripSchedule::vectorized()).seconds();
          const double whole = best;
          for (Index size = 16; size <= rows; size *= 2)
            for (const Index depth : {1, 2, 4, 8}) {
              best = std::min(best, exact(StripSchedule::fixed(size, depth)).seconds());
              for (double f = 0.1; f < 0.65; f += 0.1)
                best = std::min(best, exact(StripSchedule::variable(size, f, depth)).seconds());
            }
          const double found = exact(tuner.schedule(loop)).seconds();
          EXPECT_LE(found, 1.01 * whole);
          ++all, near += found <= 1.1 * best;
        }
  EXPECT_GE(near, all * 9 / 10) << "of " << all;
}

TEST(StripTuner, single_loops_that_are_lucky_do_not_mislead) {
  // A link that was idle lets a burst through at once.
  std::mt19937 random(11);
  const TunedLoop loop{"loop", 1 << 17, 8};
  const LogGP link{.L = 5e-5, .o_s = 2e-6, .o_r = 1e-6, .g = 2e-6, .G = 8e-9};
  for (int k = 0; k < 20; ++k) {
    const auto exact = by_model(link, loop, link.G, 0, random);
    const auto lucky = [&](const StripSchedule& schedule) {
      auto cost = exact(schedule);
      if (random() % 8 == 0) cost.issuing *= 0.5, cost.waiting *= 0.5, cost.computing *= 0.5;
      return cost;
    };
    StripTuner tuner;
    settle(tuner, loop, lucky);
    EXPECT_LE(exact(tuner.schedule(loop)).seconds(), 0.65 * exact(StripSchedule::vectorized()).seconds());
  }
}

TEST(StripTuner, loops_that_swing_do_not_mislead) {
  std::mt19937 random(17);
  const TunedLoop loop{"loop", 1 << 14, 8};
  const LogGP link{.L = 5e-6, .o_s = 2e-6, .o_r = 1e-6, .g = 2e-6, .G = 1e-9};
  const auto exact = by_model(link, loop, 0.1 * link.G, 0, random);  // strips cannot gain much
  const auto swinging = by_model(link, loop, 0.1 * link.G, 1.0, random);
  const double whole = exact(StripSchedule::vectorized()).seconds();
  int behind = 0;
  for (int k = 0; k < 40; ++k) {
    StripTuner tuner;
    settle(tuner, loop, swinging);
    behind += exact(tuner.schedule(loop)).seconds() > 1.05 * whole;
  }
  EXPECT_LE(behind, 2);
}

TEST(StripTuner, takes_one_transfer_where_strips_do_not_pay) {
  const TunedLoop loop{"loop", 1 << 16, 8};
  StripTuner tuner;
  settle(tuner, loop, [](const StripSchedule& schedule) {
    StripCost cost;
    cost.waiting = schedule == StripSchedule::vectorized() ? 1e-3 : 0.99e-3;  // within the noise
    return cost;
  });
  EXPECT_EQ(tuner.schedule(loop), StripSchedule::vectorized());
  const TunedLoop few{"loop", 1, 8};
  EXPECT_EQ(tuner.schedule(few), StripSchedule::vectorized());
}

TEST(StripTuner, what_is_settled_can_be_kept) {
  const TunedLoop loop{"loop", 100'000, 8}, alike{"loop", 70'000, 8}, larger{"loop", 140'000, 8};
  std::mt19937 random(5);
  const LogGP link{.L = 1e-5, .o_s = 1e-6, .o_r = 1e-6, .g = 1e-6, .G = 1e-9};
  StripTuner tuner;
  settle(tuner, loop, by_model(link, loop, 1e-9, 0, random));
  ASSERT_EQ(tuner.choices().size(), 1u);
  EXPECT_TRUE(tuner.settled(alike));
  EXPECT_FALSE(tuner.settled(larger));
  StripTuner other;
  for (const auto& choice : tuner.choices()) other.remember(choice);
  EXPECT_TRUE(other.settled(loop));
  EXPECT_EQ(other.schedule(loop), tuner.schedule(loop));
  EXPECT_FALSE(other.schedule(loop) == StripSchedule::vectorized());
  expect_error(ErrorKind::argument, {"rows"}, [&] { tuner.schedule({"loop", 5, 0}); });
}

TEST(StripTuner, tunes_a_loop_that_is_run) {
  std::vector<double> values(5000, 1.0);
  const auto window =
      open_window({{reinterpret_cast<std::byte*>(values.data()), {5000}, {8}, false, nullptr}}, sizeof(double));
  const Section section(window, 0);
  StripTuner tuner;
  for (int k = 0; k < 300; ++k) {
    double sum = 0;
    for_each_strip<double>(section, tuner, "sum", [&](std::span<const double> strip, Index) {
      for (const double value : strip) sum += value;
    });
    ASSERT_EQ(sum, 5000);
  }
  EXPECT_TRUE(tuner.settled({"sum, seen", 5000, 8}));
}

}  // namespace
}  // namespace longshore::test

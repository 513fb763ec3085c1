#include "longshore/model/strips.hpp"

#include <numeric>
#include <random>

#include "support/expect_error.hpp"

namespace longshore::test {
namespace {

constexpr double usec = 1e-6;
/// About a Myrinet of the paper: 6.1 µs a KiB.
const LogGP myrinet{0, 4 * usec, 2 * usec, 5 * usec, 6 * usec / 1024};

StripLoop doubles(Index elements, double compute) {
  StripLoop loop;
  loop.elements = elements, loop.compute = compute;
  return loop;
}

/// The equations as they are printed, of one unroll depth after the other, all strips listed.
StripCost by_equations(const StripSchedule& schedule, const StripLoop& loop, const LogGP& p,
                       std::vector<double>& waits) {
  std::vector<double> size{0}, end, issued{0};
  for (const auto strip : schedule.strips(loop.elements)) size.push_back(double(strip.size() * loop.element_bytes));
  const Index m = Index(size.size()) - 1, depth = schedule.depth();
  StripCost cost;
  cost.strips = m;
  double now = 0, last = -p.g;
  auto issue = [&](Index i) {
    if (i > m) return;
    const double done = std::max(now + p.o(), last + p.g);
    cost.issuing += done - now;
    issued.push_back(now = last = done);
  };
  issue(1);
  for (Index a = 1; a <= m; a += depth) {
    for (Index i = a + 1; i <= a + depth; ++i) issue(i);
    for (Index i = a; i < a + depth && i <= m; ++i) {
      const double wait = std::max(0.0, 2 * p.L + p.G * size[std::size_t(i)] - (now - issued[std::size_t(i)]));
      waits.push_back(wait);
      cost.waiting += wait, cost.computing += loop.compute * size[std::size_t(i)];
      now += wait + loop.compute * size[std::size_t(i)];
    }
  }
  return cost;
}

void expect_near(const StripCost& a, const StripCost& b, double relative) {
  const double close = relative * b.seconds();
  EXPECT_EQ(a.strips, b.strips);
  EXPECT_NEAR(a.issuing, b.issuing, close);
  EXPECT_NEAR(a.waiting, b.waiting, close);
  EXPECT_NEAR(a.computing, b.computing, close);
}

TEST(StripCost, one_transfer_and_one_by_one_are_as_the_paper_has_them) {
  const double G = myrinet.G, o = myrinet.o(), K = 1e-9;
  const auto all = strip_cost(StripSchedule::vectorized(), doubles(1000, K), myrinet);
  EXPECT_DOUBLE_EQ(all.communication(), o + G * 8000);
  EXPECT_DOUBLE_EQ(all.computing, K * 8000);
  EXPECT_EQ(all.strips, 1);
  LogGP far = myrinet;
  far.L = 7 * usec;
  const double eel = o + 2 * far.L + 8 * G;
  const auto each = strip_cost(StripSchedule::small(), doubles(1000, K), far);
  EXPECT_NEAR(each.communication(), 1000 * eel, 1e-9 * eel);
  EXPECT_EQ(each.strips, 1000);
  StripLoop loaded = doubles(1000, K);
  loaded.memory = 3 * K;  // counts as computation
  EXPECT_DOUBLE_EQ(strip_cost(StripSchedule::vectorized(), loaded, far).computing, 4 * K * 8000);
}

TEST(StripCost, waits_are_those_of_the_equations) {
  std::mt19937_64 random(3);
  auto any = [&](double most) { return most * double(random() % 1001) / 1000; };
  for (int i = 0; i < 3000; ++i) {
    const LogGP p{any(1) * (i % 2), any(0.5), any(0.5), any(2), any(0.2)};
    const Index size = 1 + Index(random() % 30), depth = 1 + Index(random() % 5);
    const auto schedule =
        random() % 2 ? StripSchedule::fixed(size, depth) : StripSchedule::variable(size, any(1), depth);
    const auto loop = doubles(Index(random() % 2000), any(0.3));
    SCOPED_TRACE(schedule.to_string() + " of " + std::to_string(loop.elements));
    std::vector<double> waits;
    const auto told = by_equations(schedule, loop, p, waits);
    expect_near(strip_cost(schedule, loop, p), told, 1e-9);
    const auto found = strip_waits(schedule, loop, p, Index(waits.size()));
    ASSERT_EQ(found.size(), waits.size());
    for (std::size_t k = 0; k < waits.size(); ++k) {
      ASSERT_GE(found[k], 0);
      ASSERT_NEAR(found[k], waits[k], 1e-9 * told.seconds()) << k;
    }
  }
}

TEST(StripCost, waits_for_fixed_strips_swing_where_there_is_little_to_compute) {
  const auto loop = doubles(1 << 16, myrinet.G / 2);
  const auto waits = strip_waits(StripSchedule::fixed(1024), loop, myrinet, 100);
  ASSERT_EQ(waits.size(), 64u);
  const double transfer = myrinet.G * 8192;
  EXPECT_DOUBLE_EQ(waits[0], transfer - myrinet.o());
  for (std::size_t i = 1; i + 1 < waits.size(); ++i)
    EXPECT_NEAR(waits[i], i % 2 ? 0 : transfer / 2 - myrinet.o(), 1e-9 * transfer) << i;
  // One link for all of them: the same for each.
  auto shared = loop;
  shared.link = Link::shared;
  const auto even = strip_waits(StripSchedule::fixed(1024), shared, myrinet, 100);
  for (std::size_t i = 1; i + 1 < even.size(); ++i) EXPECT_NEAR(even[i], transfer / 2 - myrinet.o(), 1e-9 * transfer);
}

TEST(StripCost, growing_strips_from_the_smallest_one_on_beat_fixed_ones_of_it) {
  const Index smallest = Index(smallest_strip(myrinet) / 8);
  EXPECT_DOUBLE_EQ(smallest_strip(myrinet), 1024);  // o = 6 µs
  for (const double compute : {0.0, 0.3, 0.6, 0.9})
    for (const Index elements : {Index{1} << 12, Index{1} << 16, Index{1} << 20})
      for (const auto link : {Link::independent, Link::shared}) {
        auto loop = doubles(elements, compute * myrinet.G);
        loop.link = link;
        const double fixed = strip_cost(StripSchedule::fixed(smallest), loop, myrinet).seconds();
        const double grown = strip_cost(StripSchedule::variable(smallest, 0.45), loop, myrinet).seconds();
        const double all = strip_cost(StripSchedule::vectorized(), loop, myrinet).seconds();
        EXPECT_LE(grown, fixed * (1 + 1e-12)) << compute << " of " << elements;
        if (compute > 0) {
          EXPECT_LT(grown, fixed) << compute << " of " << elements;
          EXPECT_LT(grown, all) << compute << " of " << elements;
        }
      }
}

TEST(StripCost, strips_never_beat_what_cannot_be_hidden) {
  std::mt19937_64 random(8);
  for (int i = 0; i < 500; ++i) {
    auto loop = doubles(1 + Index(random() % 100000), double(random() % 100) / 50 * myrinet.G);
    loop.link = Link::shared, loop.rolling = random() % 2;
    const auto schedule = StripSchedule::fixed(1 + Index(random() % 4096), 1 + Index(random() % 8));
    const auto cost = strip_cost(schedule, loop, myrinet);
    EXPECT_GE(cost.seconds(), myrinet.G * 8 * double(loop.elements));
    EXPECT_GE(cost.issuing, myrinet.o() * double(cost.strips) * (1 - 1e-9));
    EXPECT_GE(cost.waiting, 0);
  }
}

TEST(StripCost, of_as_many_strips_as_there_can_be_is_found_from_those_that_repeat) {
  std::mt19937_64 random(4);
  auto any = [&](double most) { return most * double(random() % 1001) / 1000; };
  for (int i = 0; i < 200; ++i) {
    const LogGP p{any(1) * (i % 2), any(0.5), any(0.5), any(2), any(0.2)};
    auto loop = doubles(INT64_MAX, any(0.4));
    loop.link = i % 3 ? Link::shared : Link::independent, loop.rolling = random() % 2;
    const auto schedule =
        i % 10 ? StripSchedule::fixed(1 + Index(random() % 30), 1 + Index(random() % 9)) : StripSchedule::small();
    SCOPED_TRACE(schedule.to_string());
    const auto whole = strip_cost(schedule, loop, p);
    EXPECT_EQ(whole.strips, schedule.count(loop.elements));
    EXPECT_NEAR(whole.computing, loop.compute * 8 * 0x1p63, 1e-9 * whole.computing);
    // Many strips, each of which is gone through, where the rest is as they are.
    loop.elements = schedule.size() << 14;
    const auto waits = strip_waits(schedule, loop, p, INT64_MAX), half = strip_waits(schedule, loop, p, 1 << 13);
    const double sum = std::accumulate(waits.begin(), waits.end(), 0.0);
    const double first = std::accumulate(half.begin(), half.end(), 0.0);
    const auto part = strip_cost(schedule, loop, p);
    EXPECT_NEAR(part.waiting, sum, 1e-9 * part.seconds());
    EXPECT_NEAR(whole.waiting / double(whole.strips), (sum - first) / (1 << 13),
                2e-3 * whole.seconds() / double(whole.strips));
  }
  // Depths and computation that make the search as long as it gets.
  auto slow = doubles(INT64_MAX, myrinet.G * (1 - 1e-9));
  slow.link = Link::shared;
  for (const Index depth : {Index{1}, Index{7}, StripSchedule::most_depth})
    EXPECT_GT(strip_cost(StripSchedule::fixed(100, depth), slow, myrinet).seconds(), 8 * 0x1p63 * myrinet.G);
}

TEST(StripCost, of_nothing_and_of_one_element) {
  for (const char* text : {"small", "vectorized", "fixed(7, 3)", "variable(7, 0.5, 3)"}) {
    const auto schedule = StripSchedule::parse(text);
    EXPECT_EQ(strip_cost(schedule, doubles(0, 1), myrinet).seconds(), 0) << text;
    EXPECT_TRUE(strip_waits(schedule, doubles(0, 1), myrinet, 9).empty()) << text;
    const auto one = strip_cost(schedule, doubles(1, 1), myrinet);
    EXPECT_EQ(one.strips, 1) << text;
    EXPECT_DOUBLE_EQ(one.communication(), myrinet.o() + 8 * myrinet.G) << text;
  }
}

TEST(StripCost, of_what_is_no_time_is_an_error) {
  const auto vectorized = StripSchedule::vectorized();
  expect_error(ErrorKind::argument, {"o_r is -1", "not negative"}, [&] {
    strip_cost(vectorized, doubles(1, 1), {0, 0, -1, 0, 0});
  });
  expect_error(ErrorKind::argument, {"G is nan"}, [&] { smallest_strip({0, 0, 0, 0, NAN}); });
  expect_error(ErrorKind::argument, {"time to compute a byte is inf"},
               [&] { strip_waits(vectorized, doubles(1, INFINITY), myrinet, 1); });
  expect_error(ErrorKind::argument, {"strips of -1 elements"},
               [&] { strip_cost(vectorized, doubles(-1, 1), myrinet); });
  auto none = doubles(1, 1);
  none.element_bytes = 0;
  expect_error(ErrorKind::argument, {"elements of 0 bytes"}, [&] { strip_cost(vectorized, none, myrinet); });
}

}  // namespace
}  // namespace longshore::test

// Sections of windows against the arrays they are of, and strips against getting all at once.
#include "longshore/movers/window.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>

#include "longshore/movers/strips.hpp"
#include "support/expect_error.hpp"

namespace longshore::test {
namespace {

LocalArray over(std::vector<double>& values, std::vector<Index> shape, std::vector<Index> strides, Index first = 0) {
  for (auto& stride : strides) stride *= Index(sizeof(double));
  return {reinterpret_cast<std::byte*>(values.data() + first), std::move(shape), std::move(strides), false, nullptr};
}

std::vector<double> counted(std::size_t n, double first) {
  std::vector<double> values(n);
  std::iota(values.begin(), values.end(), first);
  return values;
}

std::byte* bytes(std::vector<double>& values) { return reinterpret_cast<std::byte*>(values.data()); }

/// Two arrays, the second of which lies transposed and backwards.
struct TwoArrays {
  std::vector<double> a = counted(12, 0), b = counted(12, 100);
  std::shared_ptr<Window> window = open_window({over(a, {12}, {1}), over(b, {4, 3}, {-1, 4}, 3)}, sizeof(double));
};

TEST(Window, a_whole_array_comes_in_the_order_of_its_indices) {
  TwoArrays two;
  const Section section(two.window, 1);
  ASSERT_EQ(section.elements(), 12);
  std::vector<double> got(12);
  section.get(0, 12, bytes(got));
  EXPECT_EQ(got, (std::vector<double>{103, 107, 111, 102, 106, 110, 101, 105, 109, 100, 104, 108}));
  std::vector<double> some(3);
  section.get(4, 7, bytes(some));
  EXPECT_EQ(some, (std::vector<double>{106, 110, 101}));
}

TEST(Window, parts_of_several_arrays_meet_in_any_order) {
  TwoArrays two;
  constexpr Index size = sizeof(double);
  const std::vector<OffsetPair> odd{{3 * size, 1 * size}, {size, 3 * size}, {5 * size, 5 * size}};
  const Section section(two.window, 6,
                        {{0, AddressRelation::from_pairs(size, odd)},
                         {1, AddressRelation::strided(size, std::vector<Index>{3}, std::vector<Index>{-size},
                                                      std::vector<Index>{2 * size})}});
  std::vector<double> got(6, -1);
  section.get(0, 6, bytes(got));
  EXPECT_EQ(got, (std::vector<double>{103, 3, 102, 1, 101, 5}));
  for (Index first = 0; first <= 6; ++first)
    for (Index last = first; last <= 6; ++last) {
      std::vector<double> part(std::size_t(last - first), -1);
      section.get(first, last, bytes(part));
      EXPECT_EQ(part, std::vector<double>(got.begin() + first, got.begin() + last));
    }
  auto values = counted(6, 50);
  section.put(1, 5, bytes(values));
  EXPECT_EQ(two.a[3], 50);
  EXPECT_EQ(two.a[1], 52);
  EXPECT_EQ(two.a[5], 5);
  EXPECT_EQ(two.b[2], 51);
  EXPECT_EQ(two.b[3], 103);
}

TEST(Window, what_is_got_is_copied_when_it_is_waited_for) {
  TwoArrays two;
  const Section section(two.window, 0);
  std::vector<double> got(12, -1);
  const auto access = section.nbget(0, 12, bytes(got));
  EXPECT_EQ(got[0], -1);
  EXPECT_TRUE(access->test());
  EXPECT_EQ(got, two.a);
  access->wait();
}

TEST(Window, refuses_what_is_outside_and_what_is_closed) {
  TwoArrays two;
  constexpr Index size = sizeof(double);
  const auto line = [](Index n, Index first) {
    return AddressRelation::strided(size, std::vector<Index>{n}, std::vector<Index>{size}, std::vector<Index>{size},
                                    first * size);
  };
  expect_error(ErrorKind::argument, {"no array 2"}, [&] { Section(two.window, Index(2)); });
  expect_error(ErrorKind::argument, {"[8, 104) of array 0, which has [0, 96)"}, [&] {
    Section(two.window, 12, {{0, line(12, 1)}});
  });
  expect_error(ErrorKind::argument, {"parts of 4 together"}, [&] { Section(two.window, 5, {{0, line(4, 0)}}); });
  expect_error(ErrorKind::type, {"4 bytes"}, [&] {
    Section(two.window, 1, {{0, AddressRelation::from_pairs(4, std::vector<OffsetPair>{{0, 0}})}});
  });
  const Section section(two.window, 0);
  std::vector<double> got(12);
  expect_error(ErrorKind::argument, {"13"}, [&] { section.get(0, 13, bytes(got)); });
  // The same element twice can be got, not put.
  const Section twice(two.window, 2,
                      {{0, AddressRelation::from_pairs(size, std::vector<OffsetPair>{{0, 0}, {0, size}})}});
  twice.get(0, 2, bytes(got));
  EXPECT_EQ(got[1], 0);
  EXPECT_THROW(twice.put(0, 2, bytes(got)), Error);
  two.window->close();
  expect_error(ErrorKind::argument, {"closed"}, [&] { section.get(0, 12, bytes(got)); });

  auto array = over(two.a, {12}, {1});
  array.read_only = true;
  const Section fixed(open_window({array}, size), 0);
  fixed.get(0, 12, bytes(got));
  expect_error(ErrorKind::buffer, {"read-only"}, [&] { fixed.put(0, 12, bytes(got)); });
  expect_error(ErrorKind::buffer, {"no memory"}, [] { open_window({{nullptr, {3}, {8}, false, nullptr}}, size); });
}

TEST(Strips, bring_every_element_once_in_a_buffer_of_no_more_than_they_need) {
  std::mt19937 random(7);
  auto values = counted(1000, 0);
  for (const Index n : {0, 1, 2, 7, 64, 997}) {
    const auto window = open_window({over(values, {n}, {1})}, sizeof(double));
    for (const char* text : {"small", "vectorized", "fixed(1)", "fixed(10, 3)", "fixed(2000, 2)", "variable(3, 0.4)",
                             "variable(1, 0.1, 4)", "variable(500, 2, 2)"}) {
      const auto schedule = StripSchedule::parse(text);
      Index next = 0;
      for_each_strip<double>(Section(window, 0), schedule, [&](std::span<const double> strip, Index first) {
        ASSERT_EQ(first, next) << text;
        for (const double value : strip) ASSERT_EQ(value, double(next++)) << text;
      });
      EXPECT_EQ(next, n) << text;
      const StripReader reader(Section(window, 0), schedule);
      const Index room = schedule.buffer(n, schedule.depth() + 1) * Index(sizeof(double));
      // That of a loop before, of twice the size at most, is used again.
      EXPECT_LE(reader.buffer_bytes(), 2 * (room + 64 * (schedule.depth() + 2)) + 1) << text << " of " << n;
    }
  }
}

TEST(Strips, of_rows_are_whole_rows) {
  auto values = counted(35, 0);
  const auto window = open_window({over(values, {7, 5}, {5, 1})}, sizeof(double));
  StripReader reader(Section(window, 0), StripSchedule::fixed(2, 1), 5);
  for (Index row = 0; row < 7; row += 2) {
    const auto strip = reader.next();
    ASSERT_TRUE(strip);
    EXPECT_EQ(strip->elements, (Interval{5 * row, std::min<Index>(5 * (row + 2), 35)}));
    EXPECT_EQ(*reinterpret_cast<const double*>(strip->data), 5.0 * double(row));
  }
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.next());
  expect_error(ErrorKind::argument, {"rows of 4"}, [&] { StripReader(Section(window, 0), StripSchedule::small(), 4); });
  expect_error(ErrorKind::type, {"4 bytes"}, [&] {
    for_each_strip<float>(Section(window, 0), StripSchedule::small(), [](std::span<const float>, Index) {});
  });
}

TEST(Strips, a_loop_that_ends_early_leaves_nothing_under_way) {
  auto values = counted(100, 0);
  const auto window = open_window({over(values, {100}, {1})}, sizeof(double));
  struct Stop {};
  Index seen = 0;
  EXPECT_THROW(for_each_strip<double>(Section(window, 0), StripSchedule::fixed(10, 4),
                                      [&](std::span<const double> strip, Index) {
                                        seen += Index(strip.size());
                                        throw Stop();
                                      }),
               Stop);
  EXPECT_EQ(seen, 10);
}

TEST(Window, what_a_plan_between_blocks_brings_comes_motion_by_motion) {
  const std::vector<Region> regions{Region({0, 0}, {3, 4}), Region({3, 0}, {5, 4})};
  const FloorPlan blocks(regions, std::vector<Index>{0, 1});
  for (const Order order : {Order::C, Order::F}) {
    const GridFormat format{sizeof(double), {1, 1}, order};
    XArray x(blocks, std::nullopt, format);
    std::vector<LocalArray> arrays;
    for (Index k = 0; k < 2; ++k) {
      const Grid& grid = x.grid(k);
      View<double, 2> u(grid);
      for (Index i = u.lower(0); i < u.upper(0); ++i)
        for (Index j = u.lower(1); j < u.upper(1); ++j) u(i, j) = double(1000 * k + 10 * i + j);
      arrays.push_back({grid.data, grid.region.shape().to_vector(), grid.strides, false, nullptr});
    }
    BlockPlan plan(blocks, blocks);
    plan.copy(Region({3, 0}, {5, 2}), 1, Region({1, 2}, {3, 4}), 0);
    plan.copy(Region({2, 0}, {3, 2}), 0, Region({3, 1}, {5, 2}), 1);  // of another shape
    plan.copy_points(PointList(2, std::vector<Index>{3, 1, 4, 3}), 1, PointList(2, std::vector<Index>{5, 4, 2, 0}),
                     1);  // a ghost cell
    const auto window = open_window(arrays, sizeof(double));
    const auto got = [&](Index rank) {
      const auto section = incoming(window, plan, rank, format.ghost, order);
      std::vector<double> values;
      for_each_strip<double>(section, StripSchedule::fixed(3), [&](std::span<const double> strip, Index) {
        values.insert(values.end(), strip.begin(), strip.end());
      });
      return values;
    };
    const auto box = order == Order::C ? std::vector<double>{12, 13, 22, 23} : std::vector<double>{12, 22, 13, 23};
    std::vector<double> second = box;
    second.insert(second.end(), {1054, 1020});
    EXPECT_EQ(got(0), (std::vector<double>{1031, 1041}));
    EXPECT_EQ(got(1), second);
    expect_error(ErrorKind::shape, {"array 1 of the window", "block 1"}, [&] {
      incoming(window, plan, 0, GhostWidths{2, 2}, order);
    });
    expect_error(ErrorKind::argument, {"block 1"}, [&] {
      plan.copy(Region({0, 0}, {1, 1}), 0, Region({7, 0}, {8, 1}), 1);
      incoming(window, plan, 0, format.ghost, order);
    });
  }
}

TEST(Window, what_a_plan_between_layouts_brings_is_a_section) {
  const auto from = Layout::parse("(CYCLIC) on 2", {5}), to = Layout::parse("(BLOCK) on 2", {5});
  std::vector<double> even{0, 2, 4}, odd{1, 3};
  const auto window = open_window({{reinterpret_cast<std::byte*>(even.data()), {3}, {8}, false, nullptr},
                                   {reinterpret_cast<std::byte*>(odd.data()), {2}, {8}, false, nullptr}},
                                  sizeof(double));
  const auto section = incoming(window, MotionPlan(from, to, sizeof(double)), 0);
  std::vector<double> got(static_cast<std::size_t>(section.elements()));
  section.get(0, section.elements(), reinterpret_cast<std::byte*>(got.data()));
  EXPECT_EQ(got, (std::vector<double>{0, 1, 2}));
}

}  // namespace
}  // namespace longshore::test

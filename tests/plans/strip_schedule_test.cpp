#include "longshore/plans/strip_schedule.hpp"

#include <random>

#include "support/expect_error.hpp"

namespace longshore::test {
namespace {

constexpr Index huge = INT64_MAX;

std::vector<Index> strip_sizes(const StripSchedule& schedule, Index elements) {
  std::vector<Index> sizes;
  Index next = 0;
  for (const auto strip : schedule.strips(elements)) {
    EXPECT_EQ(strip.first, next);
    next = strip.last, sizes.push_back(strip.size());
  }
  EXPECT_EQ(next, elements);
  return sizes;
}

using Sizes = std::vector<Index>;

TEST(StripSchedule, strips_follow_each_other_and_the_last_one_is_what_is_left) {
  EXPECT_EQ(strip_sizes(StripSchedule::small(), 3), (Sizes{1, 1, 1}));
  EXPECT_EQ(strip_sizes(StripSchedule::vectorized(), 10), (Sizes{10}));
  EXPECT_EQ(strip_sizes(StripSchedule::fixed(4), 10), (Sizes{4, 4, 2}));
  EXPECT_EQ(strip_sizes(StripSchedule::fixed(5), 10), (Sizes{5, 5}));
  EXPECT_EQ(strip_sizes(StripSchedule::variable(4, 0.5), 100), (Sizes{4, 6, 9, 13, 20, 30, 18}));
  EXPECT_EQ(strip_sizes(StripSchedule::variable(1, 0.5), 10), (Sizes{1, 1, 2, 3, 3}));
  EXPECT_EQ(strip_sizes(StripSchedule::variable(4, 0), 10), (Sizes{4, 4, 2}));
  for (const char* text : {"small", "vectorized", "fixed(7, 3)", "variable(7, 1, 3)"}) {
    EXPECT_EQ(strip_sizes(StripSchedule::parse(text), 0), Sizes{});
    EXPECT_EQ(strip_sizes(StripSchedule::parse(text), 1), Sizes{1});
  }
}

TEST(StripSchedule, of_as_many_elements_as_there_can_be_takes_no_longer_than_its_strips) {
  EXPECT_EQ(StripSchedule::small().count(huge), huge);
  EXPECT_EQ(StripSchedule::fixed(2).count(huge), huge / 2 + 1);
  EXPECT_EQ(StripSchedule::fixed(huge).count(huge), 1);
  EXPECT_EQ(StripSchedule::vectorized().count(huge), 1);
  EXPECT_EQ(StripSchedule::vectorized().buffer(huge, 3), huge);
  EXPECT_EQ(StripSchedule::fixed(huge / 2).buffer(huge, 2), huge - 1);
  EXPECT_EQ(StripSchedule::fixed(2).buffer(huge, huge), huge);
  for (const Index elements : {Index{1} << 31, huge})
    for (const double growth : {0.1, 0.45, 1.0, StripSchedule::most_growth}) {
      const auto schedule = StripSchedule::variable(1024, growth, 2);
      const auto sizes = strip_sizes(schedule, elements);
      EXPECT_LE(sizes.size(), 400u);
      EXPECT_EQ(schedule.count(elements), Index(sizes.size()));
      EXPECT_EQ(schedule.buffer(elements, elements), elements);
    }
  EXPECT_LT(StripSchedule::variable(1, StripSchedule::least_growth).count(huge), 40'000'000);
}

TEST(StripSchedule, a_buffer_holds_the_largest_strips_that_follow_each_other) {
  std::mt19937_64 random(15);
  for (int i = 0; i < 2000; ++i) {
    const Index size = 1 + Index(random() % 20), depth = 1 + Index(random() % 4), elements = Index(random() % 300);
    const double growth = double(random() % 9) / 8;
    const auto schedule =
        random() % 2 ? StripSchedule::fixed(size, depth) : StripSchedule::variable(size, growth, depth);
    const auto sizes = strip_sizes(schedule, elements);
    ASSERT_EQ(schedule.count(elements), Index(sizes.size()));
    for (const Index strips : {Index{1}, depth, depth + 1, Index{1000}}) {
      Index most = 0;
      for (std::size_t first = 0; first < sizes.size(); ++first) {
        Index sum = 0;
        for (std::size_t k = first; k < sizes.size() && k < first + std::size_t(strips); ++k) sum += sizes[k];
        most = std::max(most, sum);
      }
      ASSERT_EQ(schedule.buffer(elements, strips), most) << schedule.to_string() << " of " << elements;
    }
    for (std::size_t k = 2; k < sizes.size(); ++k) ASSERT_LE(sizes[k - 2], sizes[k - 1]) << schedule.to_string();
  }
}

TEST(StripSchedule, what_is_printed_parses_back) {
  for (const char* text : {"small", "vectorized", "fixed(4096, 2)", "variable(1024, 0.3, 2)", "variable(1, 1e-06, 1)",
                           "fixed(9223372036854775807, 65536)"}) {
    EXPECT_EQ(StripSchedule::parse(text).to_string(), text);
  }
  EXPECT_EQ(StripSchedule::parse(" fixed ( 4096 ) "), StripSchedule::fixed(4096));
  EXPECT_EQ(StripSchedule::parse("variable(8,.5)"), StripSchedule::variable(8, 0.5));
  EXPECT_NE(StripSchedule::fixed(1), StripSchedule::small());
}

TEST(StripSchedule, errors_say_where_and_what_is_expected) {
  struct Case {
    const char* text;
    std::vector<std::string> words;
  };
  const Case cases[] = {
      {"", {"character 1\n", "expected small, vectorized, fixed(S, U) or variable(S0, f, U)", "\n  ^"}},
      {"auto", {"character 1\n", "expected small"}},
      {"small(1)", {"character 6\n", "expected the end", "\n       ^"}},
      {"fixed", {"character 6\n", "expected '('"}},
      {"fixed()", {"character 7\n", "expected the elements of a strip"}},
      {"fixed(4096 2)", {"character 12\n", "expected ')'"}},
      {"fixed(4096, )", {"character 13\n", "expected the unroll depth"}},
      {"fixed(99999999999999999999)", {"character 7\n", "elements of a strip"}},
      {"variable(4)", {"character 11\n", "expected ',' and f"}},
      {"variable(4, x)", {"character 13\n", "expected f"}},
      {" fixed(0)", {"character 2\n", "strips of 0 elements"}},
      {"fixed(1, 0)", {"character 1\n", "unroll depth of 0", "[1, 65536]"}},
      {"variable(4, nan)", {"f = nan"}},
      {"variable(4, -1)", {"f = -1"}},
      {"variable(4, 1e-9)", {"f = 1e-09", "0 or in [1e-06, 1e+06]"}},
      {"fixed\x1b[1m", {"fixed?[1m"}},
  };
  for (const auto& [text, words] : cases) {
    SCOPED_TRACE(text);
    expect_error(ErrorKind::argument, words, [text = text] { StripSchedule::parse(text); });
  }
  expect_error(ErrorKind::argument, {"strips of 0"}, [] { StripSchedule::fixed(0); });
  expect_error(ErrorKind::argument, {"depth of -1"}, [] { StripSchedule::variable(1, 0.5, -1); });
  expect_error(ErrorKind::argument, {"strips of -1 elements"}, [] { StripSchedule::small().strips(-1); });
  expect_error(ErrorKind::argument, {"a buffer for 0 strips"}, [] { StripSchedule::small().buffer(1, 0); });
}

}  // namespace
}  // namespace longshore::test

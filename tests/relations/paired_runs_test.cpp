#include "longshore/relations/paired_runs.hpp"

#include "support/expect_error.hpp"
#include "support/pairs.hpp"

namespace longshore {
namespace {

using test::expect_error;
using test::pairs_of;

/// Three periods of {2 runs of 3, 1 run of 2}: eight pairs a period.
PairedRuns sample() {
  return PairedRuns(
      {PairedPeriod{{PairedRun{0, 0, 100, 3, 2, 10, 3, 5}, PairedRun{30, 6, 110, 2, 1, 0, 0, 0}}, 3, 100, 8, 40}});
}

TEST(PairedRuns, counts_what_it_holds) {
  EXPECT_EQ(sample().elements(), 24);
  EXPECT_EQ(sample().run_count(), 9);
  EXPECT_FALSE(sample().single_run());
  EXPECT_TRUE(PairedRuns().empty());
  EXPECT_TRUE(PairedRuns::run(0).empty());
  EXPECT_TRUE(PairedRuns::run(5).single_run());
}

TEST(PairedRuns, at_finds_period_run_repetition_and_element) {
  EXPECT_EQ(sample().at(0), (PairedRuns::Pair{0, 0, 100}));
  EXPECT_EQ(sample().at(5), (PairedRuns::Pair{12, 5, 107}));
  EXPECT_EQ(sample().at(7), (PairedRuns::Pair{31, 7, 111}));
  EXPECT_EQ(sample().at(23), (PairedRuns::Pair{231, 23, 191}));
}

TEST(PairedRuns, every_slice_of_a_sample) {
  const auto all = pairs_of(sample());
  for (Index first = 0; first <= 24; ++first)
    for (Index last = first; last <= 24; ++last)
      EXPECT_EQ(pairs_of(sample().restrict(first, last)), std::vector(all.begin() + first, all.begin() + last))
          << first << ":" << last;
}

TEST(PairedRuns, one_run_repeated_is_a_run_with_a_count) {
  const PairedRuns periodic({PairedPeriod{{PairedRun{1, 0, 0, 2, 1, 0, 0, 0}}, 5, 10, 2, 4}});
  EXPECT_EQ(periodic, PairedRuns({PairedPeriod{{PairedRun{1, 0, 0, 2, 5, 10, 2, 4}}}}));
}

TEST(PairedRuns, steps_and_periods_of_one_repetition_do_not_matter) {
  EXPECT_EQ(PairedRuns({PairedPeriod{{PairedRun{1, 2, 3, 4, 1, 5, 6, 7}}, 1, 8, 9, 10}}), PairedRuns::run(4, 2, 3, 1));
}

TEST(PairedRuns, compress_joins_and_folds) {
  EXPECT_EQ(compress({{0, 0, 0, 2}, {2, 2, 2, 3}}), (std::vector<PairedRun>{{0, 0, 0, 5}}));
  EXPECT_EQ(compress({{0, 0, 0, 2}, {8, 2, 4, 2}, {16, 4, 8, 2}}), (std::vector<PairedRun>{{0, 0, 0, 2, 3, 8, 2, 4}}));
  EXPECT_EQ(compress({{0, 0, 0, 2}, {8, 2, 4, 2}, {17, 4, 8, 2}}).size(), 2u);
}

TEST(PairedRuns, arguments_are_checked) {
  expect_error(ErrorKind::argument, {"position 24", "[0, 24)"}, [] { sample().at(24); });
  expect_error(ErrorKind::argument, {"[3, 25)", "[0, 24)"}, [] { sample().restrict(3, 25); });
  expect_error(ErrorKind::argument, {"[3, 2)"}, [] { sample().restrict(3, 2); });
  expect_error(ErrorKind::argument, {"[-1, 2)"}, [] { sample().restrict(-1, 2); });
  expect_error(ErrorKind::overflow, {"product"}, [] { PairedRuns::run(Index{1} << 62).scaled(2); });
  expect_error(ErrorKind::overflow, {"sum"}, [] {
    PairedRuns({PairedPeriod{{PairedRun{0, 0, 0, INT64_MAX}}}, PairedPeriod{{PairedRun{0, 0, 0, INT64_MAX}}}});
  });
}

}  // namespace
}  // namespace longshore

#include "longshore/model/machine_profile.hpp"

#include <limits>

#include "support/expect_error.hpp"
#include "support/profiles.hpp"

namespace longshore::test {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
const CopyRates plain = copies_at({{"1C1", 1000}, {"64C1", 100}});

CopyShape shape(const char* transfer, Index word_bytes = 8, CopyLoops loops = CopyLoops::rows) {
  const auto basic = TransferExpression::parse(transfer).transfer();
  CopyShape made;
  made.read = basic.read, made.write = basic.write, made.word_bytes = word_bytes, made.loops = loops;
  return made;
}

double rate(const MachineProfile& profile, const CopyShape& copy, CopySituation situation = {1000, 1, false}) {
  return profile.copy_rate(copy, situation) / 1e6;
}

TEST(MachineProfile, refuses_what_no_measurement_gives) {
  const auto refused = [](const std::vector<std::string>& words, std::vector<CopyRates> copies,
                          std::vector<ExchangeTimes> exchanges = {}) {
    expect_error(ErrorKind::argument, words, [&] { profile_of(copies, exchanges); });
  };
  refused({"by hand", "no table of copies"}, {});
  refused({"no table of copies"}, {copies_at({{"1C1", 1}}, {100, 1, false}, 8, CopyLoops::tiles)});
  refused({"0 bytes a word"}, {copies_at({{"1C1", 1}}, {100, 1, false}, 0)});
  refused({"-5 bytes touched"}, {copies_at({{"1C1", 1}}, {-5, 1, false})});
  refused({"0 threads at once"}, {copies_at({{"1C1", 1}}, {100, 0, false})});
  for (const double seconds : {-1e-9, nan, infinity}) {
    refused({"an exchange"}, {plain}, {{"ring", "same node", {{1, seconds}}, 0}});
    refused({"a transfer of an exchange"}, {plain}, {{"ring", "same node", {{1, 1}}, seconds}});
  }
  refused({"no samples of ring"}, {plain}, {{"ring", "same node", {}, 0}});
  refused({"exchanges of 0", "then of 0"}, {plain}, {{"ring", "same node", {{0, 1}}, 0}});
  refused({"of 64 and then of 64"}, {plain}, {{"ring", "same node", {{1, 1}, {64, 1}, {64, 2}}, 0}});
}

TEST(MachineProfile, time_per_byte_is_interpolated_by_the_logarithm_of_what_is_touched) {
  const auto profile =
      profile_of({copies_at({{"1C1", 100}}, {CopyRates::beyond_caches, 1, false}),
                  copies_at({{"1C1", 1000}}, {1000, 1, false}), copies_at({{"1C1", 200}}, {100'000, 1, false})});
  const auto at = [&](Index bytes) { return rate(profile, shape("1C1"), {bytes, 1, false}); };
  EXPECT_DOUBLE_EQ(at(1), 1000);
  EXPECT_DOUBLE_EQ(at(1000), 1000);
  EXPECT_DOUBLE_EQ(at(10'000), 1 / (0.5 / 1000 + 0.5 / 200));
  EXPECT_DOUBLE_EQ(at(100'000), 200);
  EXPECT_LT(at(200'000), 200);  // on the way to memory
  EXPECT_GT(at(200'000), 100);
  EXPECT_DOUBLE_EQ(at(Index{1} << 40), 100);
}

TEST(MachineProfile, patterns_that_were_not_measured_together_take_what_each_takes) {
  const auto profile = profile_of({copies_at({{"1C1", 1000}, {"64C1", 100}, {"1C64", 50}, {"1C16", 200}})});
  EXPECT_DOUBLE_EQ(rate(profile, shape("64C64")), 1 / (1 / 100. + 1 / 50. - 1 / 1000.));
  EXPECT_DOUBLE_EQ(rate(profile, shape("64C1")), 100);
  EXPECT_NEAR(rate(profile, shape("1C32")), 1 / (0.5 / 200 + 0.5 / 50), 1e-9);  // half-way from 16 to 64
  EXPECT_DOUBLE_EQ(rate(profile, shape("1C4096")), 50);
}

TEST(MachineProfile, the_table_that_comes_nearest_counts) {
  const auto alone = copies_at({{"1C1", 1000}}, {1000, 1, false}), all = copies_at({{"1C1", 500}}, {1000, 4, false});
  const auto another = copies_at({{"1C1", 300}}, {1000, 1, true});
  const auto profile = profile_of({all, another, alone});
  EXPECT_DOUBLE_EQ(rate(profile, shape("1C1"), {1000, 1, false}), 1000);
  EXPECT_DOUBLE_EQ(rate(profile, shape("1C1"), {1000, 3, false}), 1000);  // the next fewer at once
  EXPECT_DOUBLE_EQ(rate(profile, shape("1C1"), {1000, 4, false}), 500);
  EXPECT_DOUBLE_EQ(rate(profile, shape("1C1"), {1000, 99, false}), 500);
  EXPECT_DOUBLE_EQ(rate(profile, shape("1C1"), {1000, 4, true}), 300);  // where data come from goes first
  const auto crowded = profile_of({all});
  EXPECT_DOUBLE_EQ(rate(crowded, shape("1C1"), {1000, 1, true}), 500);  // there is nothing else
}

TEST(MachineProfile, words_without_a_table_take_as_long_as_larger_ones) {
  const auto profile = profile_of({copies_at({{"1C1", 1000}, {"64C1", 100}}, {1000, 1, false}, 8),
                                   copies_at({{"1C1", 900}, {"64C1", 60}}, {1000, 1, false}, 4)});
  EXPECT_DOUBLE_EQ(rate(profile, shape("64C1", 8)), 100);
  EXPECT_DOUBLE_EQ(rate(profile, shape("64C1", 4)), 60);
  EXPECT_DOUBLE_EQ(rate(profile, shape("64C1", 2)), 30);    // half of the bytes in as much time
  EXPECT_DOUBLE_EQ(rate(profile, shape("64C1", 16)), 100);  // several words of 8
  EXPECT_DOUBLE_EQ(rate(profile, shape("1C1", 2)), 900);    // nobody looks at words where all is contiguous
}

TEST(MachineProfile, transposes_that_were_not_measured_are_words_with_strides) {
  const auto tiles = copies_at({{"1C1", 800}, {"64C1", 400}}, {1000, 1, false}, 8, CopyLoops::tiles);
  const auto transposed = shape("64C1", 8, CopyLoops::tiles);
  EXPECT_DOUBLE_EQ(rate(profile_of({plain, tiles}), transposed), 400);
  EXPECT_DOUBLE_EQ(rate(profile_of({plain}), transposed), 100);
}

TEST(MachineProfile, lines_that_are_visited_together_and_were_not_measured_are_visited_by_each) {
  const auto joint = copies_at({{"4C1", 700}, {"1C4", 600}}, {1000, 1, false}, 8, CopyLoops::joint);
  const auto profile = profile_of({copies_at({{"1C1", 1000}, {"4C1", 300}, {"1C4", 200}, {"64C1", 100}}), joint});
  EXPECT_DOUBLE_EQ(rate(profile, shape("4C1", 8, CopyLoops::joint)), 700);
  EXPECT_DOUBLE_EQ(rate(profile, shape("1C4", 8, CopyLoops::joint)), 600);
  EXPECT_DOUBLE_EQ(rate(profile_of({plain}), shape("64C1", 8, CopyLoops::joint)), 100);
  EXPECT_EQ(shape("4C1", 8, CopyLoops::joint).packing(), shape("4C1"));  // who packs is alone
}

TEST(MachineProfile, lists_with_a_cache_line_for_each_word_have_rates_of_their_own) {
  const auto sparse = copies_at({{"wC1", 50}, {"1Cw", 25}}, {1000, 1, false}, 8, CopyLoops::sparse);
  const auto profile = profile_of({copies_at({{"1C1", 1000}, {"wC1", 200}, {"1Cw", 100}, {"wCw", 80}}), sparse});
  auto read = shape("wC1"), both = shape("wCw");
  EXPECT_DOUBLE_EQ(rate(profile, read), 200);
  EXPECT_DOUBLE_EQ(rate(profile, both), 80);
  read.gap = both.gap = 8;
  EXPECT_DOUBLE_EQ(rate(profile, read), 50);
  EXPECT_DOUBLE_EQ(rate(profile, both), 1 / (1 / 50. + 1 / 100. - 1 / 1000.));
  const auto noisy = profile_of({copies_at({{"1C1", 10}, {"wC1", 200}, {"1Cw", 100}, {"wCw", 80}}), sparse});
  EXPECT_DOUBLE_EQ(rate(noisy, both), 50);  // no time is taken back
  both.write_gap = 8;
  EXPECT_DOUBLE_EQ(rate(profile, both), 1 / (1 / 50. + 1 / 25. - 1 / 1000.));
}

TEST(MachineProfile, kernels_calls_and_their_loops_are_counted) {
  const auto profile = profile_of({plain});
  auto copy = shape("64C1");
  const CopySituation here{1000, 1, false};
  EXPECT_DOUBLE_EQ(profile.copy_seconds(copy, 6400, here), 6400 * 1e-8);
  copy.row_bytes = 64, copy.leaf_bytes = 640;  // a hundred loops in ten calls
  EXPECT_DOUBLE_EQ(profile.copy_seconds(copy, 6400, here), 6400 * 1e-8 + 100 * 3e-9 + 10 * 4e-8);
}

TEST(MachineProfile, what_there_is_nothing_to_find_from_is_named) {
  expect_error(ErrorKind::argument, {"ωC1"}, [] { rate(profile_of({plain}), shape("wC1")); });
}

TEST(MachineProfile, exchanges_are_found_by_way_and_pair) {
  const auto profile = profile_of({plain}, {{"ring", "same node", {{1, 1}}, 0}, {"ring", "other node", {{1, 2}}, 0}});
  EXPECT_EQ(profile.exchange("ring", "other node")->samples[0].seconds, 2);
  EXPECT_EQ(profile.exchange("ring", "same node")->samples[0].seconds, 1);
  EXPECT_EQ(profile.exchange("direct", "same node"), nullptr);
}

TEST(ExchangeTimes, are_linear_between_samples_and_in_proportion_beyond_the_last) {
  const ExchangeTimes times{"messages", "same node", {{1, 1e-6}, {101, 2e-6}, {1001, 4e-6}}, 0};
  EXPECT_DOUBLE_EQ(times.seconds(1), 1e-6);
  EXPECT_DOUBLE_EQ(times.seconds(0), 1e-6);
  EXPECT_DOUBLE_EQ(times.seconds(51), 1.5e-6);
  EXPECT_DOUBLE_EQ(times.seconds(101), 2e-6);
  EXPECT_DOUBLE_EQ(times.seconds(551), 3e-6);
  EXPECT_DOUBLE_EQ(times.seconds(2002), 8e-6);
}

}  // namespace
}  // namespace longshore::test

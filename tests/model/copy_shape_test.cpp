#include "longshore/model/copy_shape.hpp"

#include <gtest/gtest.h>

#include "longshore/model/predict.hpp"
#include "support/profiles.hpp"

namespace longshore {

namespace {

CopyShape shape_of(const char* source, const char* destination, std::vector<Index> shape, Index element_bytes,
                   std::vector<std::size_t> axes = {}) {
  auto permuted = shape;
  for (std::size_t d = 0; d < axes.size(); ++d) permuted[d] = shape[axes[d]];
  const MotionPlan plan(Layout::parse(source, shape), Layout::parse(destination, permuted), element_bytes, axes);
  return copy_shape(plan.relation(plan.sends(0)[1]));
}

TEST(CopyShape, of_rows_cut_into_columns_is_blocks_with_a_stride) {
  const auto shape = shape_of("(BLOCK, *) on 2", "(*, BLOCK) on 2", {64, 128}, 8);
  EXPECT_EQ(shape.copy().to_string(), "128[64]C1");
  EXPECT_EQ(shape.loops, CopyLoops::rows);
  EXPECT_EQ(shape.packing().copy().to_string(), "128[64]C1");
  EXPECT_TRUE(shape.unpacking().contiguous());
}

TEST(CopyShape, of_contiguous_parts_is_contiguous) {
  EXPECT_TRUE(shape_of("(BLOCK) on 2", "(BLOCK) on 3", {1000}, 4).contiguous());
}

TEST(CopyShape, of_a_transpose_is_tiles_of_words_of_its_elements) {
  for (const Index bytes : {2, 4, 8, 16}) {
    const auto shape = shape_of("(BLOCK, *) on 2", "(BLOCK, *) on 2", {64, 100}, bytes, {1, 0});
    EXPECT_EQ(shape.loops, CopyLoops::tiles);
    EXPECT_EQ(shape.word_bytes, bytes);
    EXPECT_EQ(shape.copy().to_string(), "100C1");
    EXPECT_EQ(shape.gap, 1);
    EXPECT_EQ(shape.unpacking(), CopyShape());
  }
}

TEST(CopyShape, of_single_elements_counts_words_of_their_size) {
  const auto shape = shape_of("(CYCLIC) on 4", "(BLOCK) on 4", {4096}, 4);
  EXPECT_EQ(shape.word_bytes, 4);
  EXPECT_EQ(shape.copy().to_string(), "1C4");
}

TEST(CopyShape, of_short_runs_counts_words_that_hold_them) {
  EXPECT_EQ(shape_of("(CYCLIC(2)) on 4", "(BLOCK) on 4", {4096}, 2).word_bytes, 4);
  EXPECT_EQ(shape_of("(CYCLIC(2)) on 4", "(BLOCK) on 4", {4096}, 2).copy().to_string(), "1C4");
  const auto six = shape_of("(CYCLIC(3)) on 4", "(BLOCK) on 4", {4104}, 2);
  EXPECT_EQ(six.copy().to_string(), "1C3");
  EXPECT_EQ(std::pair(six.word_bytes, six.run_bytes), std::pair(Index{8}, Index{6}));
}

TEST(CopyShape, of_lists_is_indexed_on_both_sides) {
  const std::vector<std::int64_t> from{5, 900, 17, 3}, to{0, 1, 2, 3};
  std::vector<AddressRelation::Pair> pairs;
  for (std::size_t k = 0; k < from.size(); ++k) pairs.push_back({8 * from[k], 8 * to[k]});
  const auto shape = copy_shape(AddressRelation::from_parts(8, {AddressRelation::PairList(pairs)}));
  EXPECT_EQ(shape.copy().to_string(), "ωCω");
  EXPECT_GT(shape.gap, 100);
  EXPECT_EQ(shape.write_gap, 1);
}

TEST(CopyShape, of_words_that_take_turns_in_large_arrays_is_joint) {
  const MotionPlan small(Layout::parse("(*, CYCLIC) on 2", {1, 4096}), Layout::parse("(*, BLOCK) on 2", {1, 4096}), 8);
  const MotionPlan large(Layout::parse("(*, CYCLIC) on 2", {512, 4096}), Layout::parse("(*, BLOCK) on 2", {512, 4096}),
                         8);
  EXPECT_EQ(traffic(small, 0).local[0].shape.loops, CopyLoops::rows);
  EXPECT_EQ(traffic(large, 0).local[0].shape.loops, CopyLoops::joint);
  EXPECT_EQ(traffic(large, 0).local[0].shape.copy().to_string(), "1C2");
}

TEST(CopyShape, strides_that_find_few_sets_have_figures_of_their_own) {
  const CopySituation here{1 << 20, 1, false};
  const auto profile = test::profile_of(
      {test::copies_at({{"1C1", 1000}, {"72C1", 100}, {"264C1", 50}}, {CopyRates::beyond_caches, 1}),
       test::copies_at({{"64C1", 10}, {"256C1", 5}}, {CopyRates::beyond_caches, 1}, 8, CopyLoops::aliased)});
  EXPECT_DOUBLE_EQ(profile.copy_rate({64, 1}, here), 10e6);
  EXPECT_DOUBLE_EQ(profile.copy_rate({72, 1}, here), 100e6);
  // Blocks of four bytes with a stride of 36 of them are words of eight with one of 18: between 1C1 and 72C1.
  EXPECT_DOUBLE_EQ(profile.copy_rate({{144, 2}, 1, 4}, here), 100e6);
}

TEST(CopyShape, of_runs_that_differ_counts_the_one_that_most_is_in) {
  // Rank 1 has half a block of eight columns, then fifty whole ones.
  const MotionPlan plan(Layout::parse("(*, BLOCK) on 2", {57, 1624}), Layout::parse("(*, CYCLIC(8)) on 2", {57, 1624}),
                        4);
  const auto shape = copy_shape(plan.relation(plan.sends(1)[1]));
  EXPECT_EQ(shape.run_bytes, 32);
  EXPECT_EQ(shape.copy().to_string(), "8[4]C404[202]");
}

TEST(CopyShape, what_loops_further_out_find_in_a_line_is_used_of_it) {
  // Runs of 12 bytes 6116 bytes apart, and then those 22 bytes further on: 35 bytes of each line.
  const auto shape = shape_of("(BLOCK, *, *) on 2", "(*, *, BLOCK) on 2", {183, 278, 11}, 2, {1, 0, 2});
  EXPECT_EQ(shape.read, ReferencePattern(765, 4));
  EXPECT_EQ(shape.run_bytes, 10);
}

TEST(CopyShape, blocks_between_two_that_were_measured_take_a_time_between_theirs) {
  const CopySituation here{1 << 20, 1, false};
  const auto profile = test::profile_of({test::copies_at({{"1C1", 1000}, {"64[2]C1", 100}, {"64[8]C1", 400}})});
  EXPECT_DOUBLE_EQ(profile.copy_rate({{64, 2}, 1}, here), 100e6);
  // 2 words in 160 ns, 8 in 160 ns: 5 words, too.
  EXPECT_NEAR(profile.copy_rate({{64, 5}, 1}, here), 250e6, 1);
  EXPECT_DOUBLE_EQ(profile.copy_rate({{64, 10}, 1}, here), 400e6);
  // Of 20 bytes three words are moved.
  CopyShape part{{64, 3}, 1};
  part.run_bytes = 20;
  EXPECT_NEAR(profile.copy_rate(part, here), 150e6 * 20 / 24, 1);
}

TEST(CopyShape, columns_that_lie_apart_are_what_dense_rows_become) {
  const CopySituation here{1 << 20, 1, false};
  const auto profile = test::profile_of({test::copies_at({{"1C1", 1000}, {"4C1", 250}, {"1C4", 200}}),
                                         test::copies_at({{"1C1", 1000}, {"64C1", 500}, {"64C2", 300}, {"2C64", 250}},
                                                         {CopyRates::beyond_caches, 1}, 8, CopyLoops::tiles)});
  EXPECT_DOUBLE_EQ(profile.copy_rate({64, 2, 8, CopyLoops::tiles, 1, 0}, here), 300e6);
  EXPECT_DOUBLE_EQ(profile.copy_rate({64, 1, 8, CopyLoops::tiles, 2, 0}, here), 250e6);
}

TEST(CopyShape, what_runs_across_costs_more_where_lines_are_used_in_part) {
  const CopySituation here{1 << 20, 1, false};
  const auto profile = test::profile_of(
      {test::copies_at({{"1C1", 1000}, {"4C1", 250}, {"1C4", 200}}, {CopyRates::beyond_caches, 1}),
       test::copies_at({{"1C1", 1000}, {"64C1", 500}}, {CopyRates::beyond_caches, 1}, 8, CopyLoops::tiles)});
  CopyShape across{64, 1, 8, CopyLoops::tiles, 1, 0};
  EXPECT_DOUBLE_EQ(profile.copy_rate(across, here), 500e6);
  across.gap = 4;  // 1/500 + 1/250 - 1/1000
  EXPECT_NEAR(profile.copy_rate(across, here), 200e6, 1);
  across.gap = 1, across.write = 4;  // 1/500 + 1/200 - 1/1000
  EXPECT_NEAR(profile.copy_rate(across, here), 1e9 / 6, 1);
}

}  // namespace

}  // namespace longshore

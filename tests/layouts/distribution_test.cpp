#include "longshore/layouts/distribution.hpp"

#include "support/expect_error.hpp"

namespace longshore {
namespace {

using test::expect_error;

std::vector<Index> counts(const Distribution& d) {
  std::vector<Index> result;
  for (Index c = 0; c < d.coordinates(); ++c) result.push_back(d.count(c));
  return result;
}

using Counts = std::vector<Index>;

TEST(Distribution, block_is_hpfs_ceiling) {
  EXPECT_EQ(counts(Distribution::block(10, 4)), (Counts{3, 3, 3, 1}));
  EXPECT_EQ(counts(Distribution::block(9, 4)), (Counts{3, 3, 3, 0}));  // not 3, 2, 2, 2
  EXPECT_EQ(counts(Distribution::block(2, 5)), (Counts{1, 1, 0, 0, 0}));
  EXPECT_EQ(counts(Distribution::block(0, 3)), (Counts{0, 0, 0}));
  EXPECT_EQ(counts(Distribution::block(10, 4, 5)), (Counts{5, 5, 0, 0}));
}

TEST(Distribution, cyclic_deals_in_turns) {
  EXPECT_EQ(counts(Distribution::cyclic(10, 4)), (Counts{3, 3, 2, 2}));
  EXPECT_EQ(counts(Distribution::cyclic(10, 3, 2)), (Counts{4, 4, 2}));
  EXPECT_EQ(counts(Distribution::cyclic(10, 3, 2, 1)), (Counts{2, 4, 4}));     // the first block to coordinate 1
  EXPECT_EQ(counts(Distribution::cyclic(10, 3, 2, 0, 1)), (Counts{3, 4, 3}));  // and beginning inside it
}

TEST(Distribution, general_block_takes_its_sizes) {
  const auto d = Distribution::general_block(137, {100, 0, 37});
  EXPECT_EQ(counts(d), (Counts{100, 0, 37}));
  EXPECT_EQ(d.owner(99), 0);
  EXPECT_EQ(d.owner(100), 2);
  EXPECT_EQ(d.local(100), 0);
  EXPECT_EQ(d.global(2, 36), 136);
  EXPECT_EQ(d.largest_count(), 100);
}

TEST(Distribution, collapsed_belongs_to_one) {
  const auto d = Distribution::collapsed(7);
  EXPECT_EQ(d.coordinates(), 1);
  EXPECT_EQ(d.owner(6), 0);
  EXPECT_EQ(d.local(6), 6);
  EXPECT_EQ(d.count(0), 7);
}

TEST(Distribution, prints_as_hpf) {
  EXPECT_EQ(Distribution::collapsed(7).to_string(), "*");
  EXPECT_EQ(Distribution::block(10, 4).to_string(), "BLOCK");
  EXPECT_EQ(Distribution::block(10, 4, 5).to_string(), "BLOCK(5)");
  EXPECT_EQ(Distribution::cyclic(10, 4).to_string(), "CYCLIC");
  EXPECT_EQ(Distribution::cyclic(10, 4, 64).to_string(), "CYCLIC(64)");
  EXPECT_EQ(Distribution::general_block(3, {1, 0, 2}).to_string(), "GEN_BLOCK(1, 0, 2)");
}

TEST(Distribution, the_same_dealing_compares_equal) {
  EXPECT_EQ(Distribution::block(100, 4), Distribution::block(100, 4, 25));
  EXPECT_EQ(Distribution::cyclic(100, 4, 3).window(24, 50), Distribution::cyclic(26, 4, 3));
  EXPECT_EQ(Distribution::block(100, 4).window(0, 100), Distribution::block(100, 4));
  EXPECT_NE(Distribution::cyclic(100, 4, 3), Distribution::cyclic(100, 4, 3, 1));
}

TEST(Distribution, refuses_what_does_not_hold_together) {
  const auto layout = ErrorKind::layout;
  expect_error(layout, {"extent -1", "negative"}, [] { Distribution::collapsed(-1); });
  expect_error(layout, {"grid dimension of 0", "at least 1"}, [] { Distribution::block(4, 0); });
  expect_error(layout, {"block size 0", "at least 1"}, [] { Distribution::cyclic(4, 2, 0); });
  expect_error(layout, {"source offset 2", "[0, 2)"}, [] { Distribution::cyclic(4, 2, 1, 2); });
  expect_error(layout, {"source offset -1"}, [] { Distribution::block(4, 2, -1, -1); });
  expect_error(layout, {"origin -3", "negative"}, [] { Distribution::cyclic(4, 2, 1, 0, -3); });
  expect_error(layout, {"BLOCK(2) on 4", "8 of 10", "at least 3", "CYCLIC(2)"}, [] { Distribution::block(10, 4, 2); });
  expect_error(layout, {"add up to 3", "has 4"}, [] { Distribution::general_block(4, {1, 2}); });
  expect_error(layout, {"size -1 of coordinate 1"}, [] { Distribution::general_block(4, {5, -1}); });
  expect_error(layout, {"GEN_BLOCK needs one size"}, [] { Distribution::general_block(0, {}); });
}

TEST(Distribution, what_does_not_fit_in_64_bits_is_an_error) {
  expect_error(ErrorKind::overflow, {"sum"}, [] { Distribution::cyclic(INT64_MAX, 2, 1, 0, 1); });
  expect_error(ErrorKind::overflow, {"sum"}, [] { Distribution::block(INT64_MAX, 2, -1, 0, 1); });
  expect_error(ErrorKind::overflow, {"sum"}, [] { Distribution::general_block(5, {INT64_MAX, 1}); });
}

TEST(Distribution, a_window_must_lie_within) {
  const auto d = Distribution::cyclic(10, 4);
  expect_error(ErrorKind::argument, {"window [3, 11)", "[0, 10)"}, [&] { d.window(3, 11); });
  expect_error(ErrorKind::argument, {"window [3, 2)"}, [&] { d.window(3, 2); });
  expect_error(ErrorKind::argument, {"window [-1, 2)"}, [&] { d.window(-1, 2); });
}

}  // namespace
}  // namespace longshore

#include "longshore/plans/motion_plan.hpp"
#include "support/clock.hpp"
#include "support/expect_error.hpp"
#include "support/pairs.hpp"

namespace longshore {
namespace {

std::size_t runs_kept(const PairedRuns& runs) {
  std::size_t n = 0;
  for (const auto& period : runs.periods()) n += period.runs.size();
  return n;
}

TEST(Intersect, two_blocks_meet_in_one_run) {
  const auto pairs = intersect(Distribution::block(100, 4), 1, Distribution::block(100, 3), 1);
  EXPECT_TRUE(pairs.single_run());
  EXPECT_EQ(pairs, PairedRuns::run(16, 9, 0, 34));
}

TEST(Intersect, a_block_meets_a_cyclic_family_in_one_strided_run) {
  const auto pairs = intersect(Distribution::block(4096, 4), 1, Distribution::cyclic(4096, 4, 64), 2);
  EXPECT_EQ(pairs, PairedRuns({PairedPeriod{{PairedRun{1152, 128, 256, 64, 4, 256, 256, 64}}}}));
}

TEST(Intersect, the_same_dealing_is_the_whole_local_array) {
  const auto d = Distribution::cyclic(10000, 7, 3);
  EXPECT_EQ(intersect(d, 4, d, 4).elements(), d.count(4));
  EXPECT_TRUE(intersect(d, 4, d, 5).empty());
}

TEST(Intersect, the_runs_kept_do_not_grow_with_the_extent) {
  for (const Index extent : {Index{1} << 20, Index{1} << 40, Index{1} << 60}) {
    EXPECT_LE(runs_kept(intersect(Distribution::cyclic(extent, 7), 0, Distribution::cyclic(extent, 5, 3), 0)), 8u);
    EXPECT_LE(runs_kept(intersect(Distribution::cyclic(extent, 2, 32), 1, Distribution::cyclic(extent, 2, 100), 1)),
              60u);
    EXPECT_LE(runs_kept(intersect(Distribution::cyclic(extent, 2), 1, Distribution::cyclic(extent, 3, 1 << 16), 1)),
              4u);
    EXPECT_LE(runs_kept(intersect(Distribution::block(extent, 3), 2, Distribution::cyclic(extent, 1024, 64), 1)), 3u);
  }
}

TEST(Intersect, finding_partners_does_not_walk_the_elements) {
  const Index extent = Index{1} << 60;
  // Fine blocks against coarse ones: one coarse block holds 2^49 fine ones.
  const auto fine = Distribution::cyclic(extent, 2), coarse = Distribution::cyclic(extent, 1000, Index{1} << 50);
  EXPECT_EQ(partners(fine, 1, coarse).size(), 1000u);
  EXPECT_EQ(partners(coarse, 999, fine), (std::vector<Index>{0, 1}));
  EXPECT_EQ(partners(fine, 1, Distribution::block(extent, 1024)).size(), 1024u);
  EXPECT_EQ(partners(fine, 0, Distribution::general_block(extent, {0, extent, 0})), (std::vector<Index>{1}));
}

TEST(Intersect, few_partners_among_many_are_those_that_share_an_index) {
  const auto dealt = Distribution::cyclic(20000, 2000, 3, 2, 5), blocks = Distribution::block(20000, 2000);
  for (const auto& [a, b] : {std::pair{dealt, blocks}, {blocks, dealt}, {dealt, Distribution::cyclic(20000, 1500, 7)}})
    for (Index ca = 0; ca < a.coordinates(); ca += 97) {
      std::vector<Index> expected;
      for (Index cb = 0; cb < b.coordinates(); ++cb)
        if (!intersect(a, ca, b, cb).empty()) expected.push_back(cb);
      EXPECT_EQ(partners(a, ca, b), expected) << ca;
    }
}

TEST(Intersect, few_partners_among_a_million_are_found_without_a_look_at_the_others) {
  const test::Clock clock(20);  // it would be minutes
  const auto dealt = Distribution::cyclic(10'000'000, 1'000'000, 3),
             blocks = Distribution::block(10'000'000, 1'000'000);
  std::size_t found = 0;
  for (Index c = 0; c < 200'000; ++c) found += partners(dealt, c, blocks).size();
  EXPECT_GT(found, 200'000u);
}

TEST(Intersect, partners_of_blocks_whose_template_passes_64_bits) {
  const auto fine = Distribution::cyclic(INT64_MAX, 2);
  const auto coarse = Distribution::cyclic(INT64_MAX, 5, Index{1} << 62, 4);
  EXPECT_EQ(partners(fine, 1, coarse), (std::vector<Index>{0, 4}));
  EXPECT_EQ(partners(coarse, 4, fine), (std::vector<Index>{0, 1}));
  EXPECT_EQ(intersect(fine, 1, coarse, 4).elements(), Index{1} << 61);
}

TEST(Intersect, extents_must_agree) {
  test::expect_error(ErrorKind::shape, {"extents 3 and 4"},
                     [] { intersect(Distribution::collapsed(3), 0, Distribution::collapsed(4), 0); });
}

}  // namespace
}  // namespace longshore

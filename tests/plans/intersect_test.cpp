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

TEST(Intersect, what_coprime_blocks_have_in_common_is_counted_without_a_look_at_them) {
  const test::Clock clock(5);  // it would be minutes
  for (const Index extent : {1'000'000'000'000, INT64_MAX}) {
    const auto a = Distribution::cyclic(extent, 64, 1000003, 5), b = Distribution::cyclic(extent, 63, 999983, 0, 0);
    for (const Index ca : {0, 5, 63}) {
      Index all = 0;
      for (Index cb = 0; cb < 63; ++cb) all += common_indices(a, ca, b, cb);
      EXPECT_EQ(all, a.count(ca));
    }
    for (const Index cb : {0, 31, 62}) {
      Index all = 0;
      for (Index ca = 0; ca < 64; ++ca) all += common_indices(a, ca, b, cb);
      EXPECT_EQ(all, b.count(cb));
    }
  }
}

TEST(Intersect, counts_are_those_of_the_list_where_blocks_are_many) {
  for (const auto& [extent, block, other] : {std::tuple<Index, Index, Index>{Index{1} << 31, 1009, 997},
                                             {(Index{1} << 40) + 1, 65537, 65521},
                                             {INT64_MAX, (Index{1} << 45) + 1, Index{1} << 45},
                                             {INT64_MAX, (Index{1} << 46) - 1, 3 * (Index{1} << 43)}}) {
    const Index beyond = extent == INT64_MAX ? 0 : 12345;
    const auto a = Distribution::cyclic(extent, 5, block, 2, beyond * block),
               b = Distribution::cyclic(extent, 7, other, 0);
    for (const Index ca : {0, 3})
      for (const Index cb : {1, 6}) EXPECT_EQ(common_indices(a, ca, b, cb), intersect(a, ca, b, cb).elements());
  }
}

TEST(Intersect, partners_that_are_met_late_are_found_without_a_look_at_all_before) {
  const test::Clock clock(5);  // it would be three times that
  // Each time one index further on: after 10^9 blocks a coordinate meets the next one.
  const auto near = Distribution::cyclic(INT64_MAX, 4, 1'000'000'001),
             far = Distribution::cyclic(INT64_MAX, 4, 1'000'000'000);
  EXPECT_EQ(partners(near, 0, far), (std::vector<Index>{0, 1, 2, 3}));
}

TEST(Intersect, more_blocks_than_can_be_listed_are_refused) {
  const auto a = Distribution::cyclic(INT64_MAX, 3, 1'000'000'007),
             b = Distribution::cyclic(INT64_MAX, 2, 1'000'000'009);
  test::expect_error(ErrorKind::memory_limit, {"CYCLIC(1000000007) on 3", "CYCLIC(1000000009) on 2", "33554432"},
                     [&] { intersect(a, 0, b, 0); });
  EXPECT_GT(common_indices(a, 0, b, 0), INT64_MAX / 7);
}

TEST(Intersect, extents_must_agree) {
  test::expect_error(ErrorKind::shape, {"extents 3 and 4"},
                     [] { intersect(Distribution::collapsed(3), 0, Distribution::collapsed(4), 0); });
}

}  // namespace
}  // namespace longshore

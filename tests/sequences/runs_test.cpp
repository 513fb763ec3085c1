#include "longshore/sequences/runs.hpp"

#include <algorithm>

#include "support/expect_error.hpp"

namespace longshore {
namespace {

using test::expect_error;

TEST(Runs, an_empty_one_holds_nothing) {
  const Runs none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.size(), 0);
  EXPECT_EQ(Runs::interval(5, 5), none);
  EXPECT_EQ(Runs({longshore::Run{3, 0, 7, 2}, longshore::Run{3, 2, 0, 2}}), none);
}

TEST(Runs, says_what_it_holds) {
  const Runs runs({longshore::Run{0, 64, 1, 0}, longshore::Run{256, 64, 3, 256}});
  EXPECT_EQ(runs.size(), 256);
  EXPECT_EQ(runs.runs(), (std::vector{longshore::Run{0, 64, 1, 0}, longshore::Run{256, 64, 3, 256}}));
}

TEST(Runs, the_step_of_a_single_run_does_not_matter) {
  EXPECT_EQ(Runs({longshore::Run{1, 2, 1, 9}}), Runs::interval(1, 3));
}

TEST(Runs, are_one_evenly_spaced_run_where_their_integers_are) {
  using longshore::Run;
  const std::vector<Run> choices{{},           {0, 1, 1, 0}, {1, 1, 1, 0}, {2, 1, 4, 3},
                                 {2, 3, 1, 0}, {2, 2, 3, 2}, {2, 2, 2, 5}};
  for (const Run& front : choices)
    for (const Index gap : {1, 2, 3, 7})
      for (const Run& back : choices) {
        Run behind = back;
        behind.first = front.first + front.step * std::max<Index>(front.count - 1, 0) + front.length - 1 + gap;
        const Runs runs({front, behind});
        const auto all = runs.to_vector();
        ASSERT_EQ(Index(all.size()), runs.size());
        ASSERT_TRUE(std::is_sorted(all.begin(), all.end()));
        bool even = true;
        for (std::size_t i = 2; i < all.size(); ++i) even = even && all[i] - all[i - 1] == all[1] - all[0];
        const auto affine = runs.affine();
        ASSERT_EQ(affine.has_value(), even);
        if (!affine) continue;
        EXPECT_EQ(affine->count, runs.size());
        for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(affine->first + affine->step * Index(i), all[i]);
      }
}

TEST(Runs, sizes_are_checked) {
  expect_error(ErrorKind::overflow, {"product"}, [] { Runs({longshore::Run{0, Index{1} << 62, 4, Index{1} << 62}}); });
  expect_error(ErrorKind::overflow, {"sum"}, [] {
    Runs({longshore::Run{0, INT64_MAX, 1, 0}, longshore::Run{0, INT64_MAX, 1, 0}});
  });
}

}  // namespace
}  // namespace longshore

#include "longshore/sequences/runs.hpp"

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

TEST(Runs, sizes_are_checked) {
  expect_error(ErrorKind::overflow, {"product"}, [] { Runs({longshore::Run{0, Index{1} << 62, 4, Index{1} << 62}}); });
  expect_error(ErrorKind::overflow, {"sum"}, [] {
    Runs({longshore::Run{0, INT64_MAX, 1, 0}, longshore::Run{0, INT64_MAX, 1, 0}});
  });
}

}  // namespace
}  // namespace longshore

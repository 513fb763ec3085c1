#include "longshore/regions/section.hpp"

#include "support/expect_error.hpp"

namespace longshore {
namespace {

TEST(Section, is_a_product) {
  const Section section({Runs::interval(2, 5), Runs({longshore::Run{0, 1, 4, 3}})});
  EXPECT_EQ(section.size(), 12);
  EXPECT_FALSE(section.empty());
  EXPECT_TRUE(section.contains({4, 9}));
  EXPECT_FALSE(section.contains({5, 9}));
  EXPECT_FALSE(section.contains({4, 8}));
  EXPECT_FALSE(section.contains({4}));
  EXPECT_EQ(section.to_string(), "[2:5] x [0:1 by 3 x 4]");
}

TEST(Section, with_an_empty_dimension_is_empty_however_large_the_others_are) {
  const Runs all = Runs::interval(0, INT64_MAX);
  EXPECT_TRUE(Section({Runs(), all, all}).empty());
  EXPECT_EQ(Section({all, Runs()}).size(), 0);
  EXPECT_TRUE(Section({all, all, Runs()}).empty());
}

TEST(Section, size_is_checked) {
  const Runs half = Runs::interval(0, Index{1} << 32);
  test::expect_error(ErrorKind::overflow, {"product"}, [&] { Section({half, half}).size(); });
}

}  // namespace
}  // namespace longshore

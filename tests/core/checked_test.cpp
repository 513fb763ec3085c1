#include "longshore/core/checked.hpp"

#include "support/expect_error.hpp"

namespace longshore {
namespace {

using test::expect_error;
constexpr Index most = INT64_MAX, least = INT64_MIN;

TEST(Checked, computes_what_fits) {
  EXPECT_EQ(checked_add(most - 1, 1), most);
  EXPECT_EQ(checked_sub(least + 1, 1), least);
  EXPECT_EQ(checked_mul(Index{1} << 31, Index{1} << 31), Index{1} << 62);
  EXPECT_EQ(checked_mul(least, 1), least);
}

TEST(Checked, throws_what_does_not_and_names_both_operands) {
  expect_error(ErrorKind::overflow, {"sum", "9223372036854775807", " 1 "}, [] { checked_add(most, 1); });
  expect_error(ErrorKind::overflow, {"difference", "-9223372036854775808", " 2 "}, [] { checked_sub(least, 2); });
  expect_error(ErrorKind::overflow, {"product", "4294967296", "2147483648"},
               [] { checked_mul(Index{1} << 32, Index{1} << 31); });
  expect_error(ErrorKind::overflow, {"product"}, [] { checked_mul(least, -1); });
}

TEST(Checked, ceil_div_does_not_wrap) {
  EXPECT_EQ(ceil_div(0, 5), 0);
  EXPECT_EQ(ceil_div(10, 5), 2);
  EXPECT_EQ(ceil_div(11, 5), 3);
  EXPECT_EQ(ceil_div(most, 2), Index{1} << 62);
  EXPECT_EQ(ceil_div(most, most), 1);
}

TEST(Checked, floors_towards_minus_infinity) {
  for (int a = -12; a <= 12; ++a) {
    EXPECT_EQ(Index(floor_div(a, 5)) * 5 + Index(floor_mod(a, 5)), a);
    EXPECT_GE(Index(floor_mod(a, 5)), 0);
    EXPECT_LT(Index(floor_mod(a, 5)), 5);
  }
}

}  // namespace
}  // namespace longshore

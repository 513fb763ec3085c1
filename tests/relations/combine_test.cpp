#include "longshore/relations/combine.hpp"

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "support/expect_error.hpp"

namespace longshore {
namespace {

template <class T>
ScalarBytes scalar(T value) {
  ScalarBytes bytes{};
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

template <class T>
T applied(ElementType type, T alpha, T source, T beta, T destination, bool conjugate = false) {
  const Combine combine(type, scalar(alpha), scalar(beta), conjugate);
  if (combine.is_copy()) return source;
  combine.apply(reinterpret_cast<std::byte*>(&destination), reinterpret_cast<const std::byte*>(&source), {sizeof(T)});
  return destination;
}

TEST(Combine, knows_its_types) {
  EXPECT_EQ(element_size(ElementType::bytes), 0);
  EXPECT_EQ(element_size(ElementType::uint16), 2);
  EXPECT_EQ(element_size(ElementType::complex128), 16);
  EXPECT_EQ(element_name(ElementType::bytes), "bytes");
  EXPECT_EQ(element_name(ElementType::int8), "int8");
  EXPECT_EQ(element_name(ElementType::complex128), "complex128");
}

TEST(Combine, is_a_copy_only_where_it_changes_nothing) {
  EXPECT_TRUE(Combine().is_copy());
  EXPECT_TRUE(Combine(ElementType::float64, scalar(1.0), scalar(0.0), false).is_copy());
  EXPECT_TRUE(
      Combine(ElementType::float64, scalar(1.0), scalar(0.0), true).is_copy());  // a real number is its conjugate
  EXPECT_TRUE(Combine(ElementType::float64, scalar(1.0), scalar(-0.0), false).is_copy());
  EXPECT_FALSE(Combine(ElementType::float64, scalar(1.0), scalar(1.0), false).is_copy());
  EXPECT_FALSE(Combine(ElementType::float64, scalar(2.0), scalar(0.0), false).is_copy());
  const std::complex<double> one = 1, zero = 0;
  EXPECT_FALSE(Combine(ElementType::complex128, scalar(one), scalar(zero), true).is_copy());
}

TEST(Combine, beta_zero_does_not_read_the_destination) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(applied(ElementType::float64, 2.0, 3.0, 0.0, nan), 6.0);
  EXPECT_TRUE(std::isnan(applied(ElementType::float64, 2.0, 3.0, 1.0, nan)));
}

TEST(Combine, alpha_zero_still_multiplies) {
  EXPECT_EQ(applied(ElementType::float64, 0.0, 3.0, 2.0, 5.0), 10.0);
  EXPECT_EQ(applied(ElementType::int32, 0, 3, 0, 5), 0);
}

TEST(Combine, integers_wrap_as_numpys_do) {
  EXPECT_EQ(applied<std::int8_t>(ElementType::int8, 2, 100, 1, 100), 44);
  EXPECT_EQ(applied<std::uint16_t>(ElementType::uint16, 65535, 65535, 0, 0), 1);
  EXPECT_EQ(applied<std::int64_t>(ElementType::int64, 2, INT64_MAX, 1, 1), -1);
  EXPECT_EQ(applied<std::int32_t>(ElementType::int32, -1, INT32_MIN, 0, 0), INT32_MIN);
}

TEST(Combine, conjugates) {
  using C = std::complex<float>;
  EXPECT_EQ(applied<C>(ElementType::complex64, {0, 1}, {2, 3}, {1, 0}, {10, 20}, true), C(13, 22));
  EXPECT_EQ(applied<C>(ElementType::complex64, {1, 0}, {2, 3}, {0, 0}, {10, 20}, true), C(2, -3));
}

TEST(Combine, follows_the_loops) {
  const Combine add(ElementType::int32, scalar(1), scalar(1), false);
  const int source[] = {1, 2, 3, 4, 5, 6, 7, 8};
  int destination[8] = {};
  // Two rows of two blocks of two.
  add.apply(reinterpret_cast<std::byte*>(destination), reinterpret_cast<const std::byte*>(source),
            {8, 2, 16, 8, 2, 8, 16});
  EXPECT_EQ(std::vector<int>(destination, destination + 8), (std::vector<int>{1, 2, 5, 6, 3, 4, 7, 8}));
}

TEST(Combine, bytes_cannot_be_computed_with) {
  test::expect_error(ErrorKind::type, {"numeric element type"},
                     [] { Combine(ElementType::bytes, ScalarBytes{}, ScalarBytes{}, false); });
}

}  // namespace
}  // namespace longshore

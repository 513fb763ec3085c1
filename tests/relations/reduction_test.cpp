#include "longshore/relations/reduction.hpp"

#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "support/expect_error.hpp"

namespace longshore {
namespace {

using test::expect_error;

template <class T>
T reduced(ElementType type, ReduceOp op, T destination, T source) {
  Reduction(type, op).apply(reinterpret_cast<std::byte*>(&destination), reinterpret_cast<const std::byte*>(&source), 1,
                            0, 0);
  return destination;
}

constexpr ReduceOp operations[] = {
    ReduceOp::add,        ReduceOp::multiply,    ReduceOp::minimum,     ReduceOp::maximum,    ReduceOp::logical_and,
    ReduceOp::logical_or, ReduceOp::logical_xor, ReduceOp::bitwise_and, ReduceOp::bitwise_or, ReduceOp::bitwise_xor};

TEST(Reduction, names) {
  for (const auto op : operations) EXPECT_EQ(int(reduce_op(reduce_name(op))), int(op));
  EXPECT_EQ(int(reduce_op("replace")), int(ReduceOp::replace));
  EXPECT_EQ(int(reduce_op("min")), int(ReduceOp::minimum));
  EXPECT_EQ(int(reduce_op("max")), int(ReduceOp::maximum));
  expect_error(ErrorKind::argument, {"'plus'", "add", "bitwise_xor"}, [] { reduce_op("plus"); });
  expect_error(ErrorKind::argument, {"''"}, [] { reduce_op(""); });
}

TEST(Reduction, every_operation_of_integers) {
  const auto apply = [](ReduceOp op, std::int16_t a, std::int16_t b) {
    return reduced<std::int16_t>(ElementType::int16, op, a, b);
  };
  EXPECT_EQ(apply(ReduceOp::add, 6, -10), -4);
  EXPECT_EQ(apply(ReduceOp::multiply, 6, -10), -60);
  EXPECT_EQ(apply(ReduceOp::minimum, 6, -10), -10);
  EXPECT_EQ(apply(ReduceOp::maximum, 6, -10), 6);
  EXPECT_EQ(apply(ReduceOp::logical_and, 6, 8), 1);
  EXPECT_EQ(apply(ReduceOp::logical_and, 6, 0), 0);
  EXPECT_EQ(apply(ReduceOp::logical_or, 0, 8), 1);
  EXPECT_EQ(apply(ReduceOp::logical_or, 0, 0), 0);
  EXPECT_EQ(apply(ReduceOp::logical_xor, 6, 8), 0);
  EXPECT_EQ(apply(ReduceOp::logical_xor, 6, 0), 1);
  EXPECT_EQ(apply(ReduceOp::bitwise_and, 6, 10), 2);
  EXPECT_EQ(apply(ReduceOp::bitwise_or, 6, 10), 14);
  EXPECT_EQ(apply(ReduceOp::bitwise_xor, 6, 10), 12);
}

TEST(Reduction, integers_wrap_and_unsigned_ones_are_large) {
  EXPECT_EQ(reduced<std::int64_t>(ElementType::int64, ReduceOp::add, INT64_MAX, 1), INT64_MIN);
  EXPECT_EQ(reduced<std::int64_t>(ElementType::int64, ReduceOp::multiply, INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(reduced<std::int8_t>(ElementType::int8, ReduceOp::add, 100, 100), -56);
  EXPECT_EQ(reduced<std::uint16_t>(ElementType::uint16, ReduceOp::multiply, 65535, 65535), 1);
  EXPECT_EQ(reduced<std::uint64_t>(ElementType::uint64, ReduceOp::maximum, 1, UINT64_MAX), UINT64_MAX);
  EXPECT_EQ(reduced<std::int64_t>(ElementType::int64, ReduceOp::maximum, 1, -1), 1);
}

TEST(Reduction, minimum_and_maximum_carry_a_nan_on) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto op : {ReduceOp::minimum, ReduceOp::maximum}) {
    EXPECT_TRUE(std::isnan(reduced(ElementType::float32, op, nan, 1.0f)));
    EXPECT_TRUE(std::isnan(reduced(ElementType::float32, op, 1.0f, nan)));
    EXPECT_TRUE(std::isnan(reduced(ElementType::float32, op, nan, nan)));
  }
  EXPECT_EQ(reduced(ElementType::float32, ReduceOp::logical_and, nan, 1.0f), 1.0f);  // anything but zero is true
}

TEST(Reduction, complex_numbers) {
  using C = std::complex<double>;
  EXPECT_EQ(reduced<C>(ElementType::complex128, ReduceOp::add, {1, 2}, {3, 4}), C(4, 6));
  EXPECT_EQ(reduced<C>(ElementType::complex128, ReduceOp::multiply, {1, 2}, {3, 4}), C(-5, 10));
  EXPECT_EQ(reduced<C>(ElementType::complex128, ReduceOp::logical_xor, {0, 2}, {0, 0}), C(1, 0));
}

TEST(Reduction, is_defined_where_numpys_is) {
  for (const auto op : operations) {
    const bool orders = op == ReduceOp::minimum || op == ReduceOp::maximum;
    const bool bits = op == ReduceOp::bitwise_and || op == ReduceOp::bitwise_or || op == ReduceOp::bitwise_xor;
    expect_error(ErrorKind::type, {"numeric"}, [&] { Reduction(ElementType::bytes, op); });
    for (const auto type : {ElementType::float32, ElementType::float64}) {
      if (bits)
        expect_error(ErrorKind::type, {std::string(reduce_name(op)), std::string(element_name(type))},
                     [&] { Reduction(type, op); });
      else
        EXPECT_FALSE(Reduction(type, op).is_replace());
    }
    for (const auto type : {ElementType::complex64, ElementType::complex128}) {
      if (bits || orders)
        expect_error(ErrorKind::type, {std::string(reduce_name(op)), std::string(element_name(type))},
                     [&] { Reduction(type, op); });
      else
        EXPECT_EQ(int(Reduction(type, op).op()), int(op));
    }
  }
}

TEST(Reduction, follows_its_steps_in_order) {
  const std::vector<int> source{1, 2, 3, 4};
  int total = 0;
  const Reduction add(ElementType::int32, ReduceOp::add);
  auto* to = reinterpret_cast<std::byte*>(&total);
  const auto* from = reinterpret_cast<const std::byte*>(source.data());
  add.apply(to, from, 4, 0, 4);
  EXPECT_EQ(total, 10);
  add.apply(to, from + 12, 2, 0, -8);
  EXPECT_EQ(total, 16);
  add.apply(to, from, 0, 4, 4);
  EXPECT_EQ(total, 16);
  // Elements that lie across each other, at odd addresses: each sees what the one before left.
  std::vector<std::byte> bytes(9);
  add.apply(bytes.data() + 1, from, 4, 1, 4);
  EXPECT_EQ((std::vector<std::byte>(bytes.begin() + 1, bytes.begin() + 5)),
            (std::vector<std::byte>{std::byte(1), std::byte(2), std::byte(3), std::byte(4)}));
}

TEST(Reduction, a_value) {
  const Reduction none, replace(ElementType::float64, ReduceOp::replace), add(ElementType::float64, ReduceOp::add);
  EXPECT_TRUE(none.is_replace());
  EXPECT_EQ(none, replace);
  EXPECT_FALSE(none == add);
  EXPECT_FALSE(Reduction(ElementType::float32, ReduceOp::add) == add);
  EXPECT_EQ(int(add.type()), int(ElementType::float64));
}

}  // namespace
}  // namespace longshore

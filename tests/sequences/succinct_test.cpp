// FixedIntegers, Bitmap and EliasFano against plain lists.
#include <algorithm>
#include <random>

#include "longshore/sequences/elias_fano.hpp"
#include "sequences/bit_ops.hpp"
#include "support/expect_error.hpp"

namespace longshore {
namespace {

using test::expect_error;
using Indices = std::vector<Index>;

constexpr std::uint64_t seed = 20261121;

TEST(BitOps, special_instructions_agree_with_plain_ones) {
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    std::uint64_t words[8];
    for (auto& word : words)
      word = round % 3 == 0 ? random() : round % 3 == 1 ? random() & random() & random() : ~(random() & random());
    int ones = 0;
    for (int bit = 0; bit <= 512; ++bit) {
      for (const auto* ops : all_bit_ops()) ASSERT_EQ(ops->count(words, bit), ones);
      if (bit == 512) break;
      const bool one = words[bit / 64] >> (bit % 64) & 1;
      for (const auto* ops : all_bit_ops()) {
        const std::uint32_t before[2] = {0, 512};
        if (one) {
          ASSERT_EQ(ops->select(words, ones), bit);
          ASSERT_EQ(ops->find_one({words, before}, ones, 0, 0), bit);
        } else {
          ASSERT_EQ(ops->find_zero({words, before}, bit - ones, 0, 0), bit);
        }
      }
      ones += one;
    }
    for (int k = 0, bit = 0; bit < 64; ++bit)
      if (words[0] >> bit & 1) {
        for (const auto* ops : all_bit_ops()) ASSERT_EQ(ops->in_word(words[0], k), bit);
        ++k;
      }
  }
}

TEST(BitOps, find_across_blocks) {
  std::mt19937_64 random(seed);
  for (const int blocks : {1, 2, 5, 16, 17, 18, 40, 100}) {
    std::vector<std::uint64_t> words(std::size_t(8 * blocks));
    for (auto& word : words) word = blocks % 2 == 0 ? random() & random() & random() & random() : random() | random();
    std::vector<std::uint32_t> before{0};
    for (int b = 0; b < blocks; ++b)
      before.push_back(before.back() + std::uint32_t(bit_ops().count(words.data() + 8 * b, 512)));
    Index ones = 0;
    for (Index bit = 0; bit < 512 * blocks; ++bit) {
      const bool one = words[std::size_t(bit / 64)] >> (bit % 64) & 1;
      // The block, and as many around it as there are or fewer.
      const Index b = bit / 512, low = b - Index(random() % std::uint64_t(b + 1)),
                  high = b + Index(random() % std::uint64_t(blocks - b));
      for (const auto* ops : all_bit_ops()) {
        const auto found = one ? ops->find_one({words.data(), before.data()}, ones, low, high)
                               : ops->find_zero({words.data(), before.data()}, bit - ones, low, high);
        ASSERT_EQ(found, bit) << blocks << " blocks, in [" << low << ", " << high << "]";
      }
      ones += one;
    }
  }
}

TEST(FixedIntegers, hold_every_width) {
  std::mt19937_64 random(seed);
  for (int width = 0; width <= FixedIntegers::most_bits; ++width) {
    FixedIntegers list(77, width);
    Indices values;
    for (Index i = 0; i < 77; ++i) {
      values.push_back(width == 0 ? 0 : Index(random() >> (64 - width)));
      list.set(i, values.back());
    }
    for (Index i = 0; i < 77; ++i) ASSERT_EQ(list[i], values[std::size_t(i)]);
    EXPECT_EQ(list.memory_bytes(), FixedIntegers::bytes_of(77, width));
    EXPECT_EQ(FixedIntegers::from_words(77, width, list.words()), list);
    EXPECT_EQ(FixedIntegers::of(values).width(),
              width == 0 ? 0 : FixedIntegers::bits_of(*std::max_element(values.begin(), values.end())));
  }
}

TEST(FixedIntegers, refuse_what_is_none) {
  expect_error(ErrorKind::argument, {"58 bits"}, [] { FixedIntegers(1, 58); });
  expect_error(ErrorKind::argument, {"64 bits"}, [] { FixedIntegers::of(Indices{-1}); });
  const std::vector<std::uint64_t> words{8, 0};
  expect_error(ErrorKind::argument, {"behind the last"}, [&] { FixedIntegers::from_words(1, 3, words); });
  expect_error(ErrorKind::argument, {"not what is stored"}, [&] { FixedIntegers::from_words(30, 3, words); });
}

void check_bitmap(const std::vector<bool>& bits) {
  const auto n = Index(bits.size());
  std::vector<std::uint64_t> words(std::size_t(ceil_div(n, 64)));
  for (Index i = 0; i < n; ++i) words[std::size_t(i / 64)] |= std::uint64_t(bits[std::size_t(i)]) << (i % 64);
  const Bitmap bitmap(words, n, Bitmap::Find::both);
  Index ones = 0, zeros = 0;
  for (Index i = 0; i < n; ++i) {
    ASSERT_EQ(bitmap.rank(i), ones);
    ASSERT_EQ(bitmap.test(i), bits[std::size_t(i)]);
    if (bits[std::size_t(i)])
      ASSERT_EQ(bitmap.select(ones++), i);
    else
      ASSERT_EQ(bitmap.select_zero(zeros++), i);
  }
  EXPECT_EQ(bitmap.rank(n), ones);
  EXPECT_EQ(bitmap.ones(), ones);
  EXPECT_EQ(bitmap.zeros(), zeros);
  EXPECT_LE(bitmap.memory_bytes(), Bitmap::bytes_of(n, ones, Bitmap::Find::both));
  EXPECT_GE(bitmap.memory_bytes() + 8, Bitmap::bytes_of(n, ones, Bitmap::Find::both));
}

TEST(Bitmap, counts_and_finds) {
  std::mt19937_64 random(seed);
  for (const Index n : {0, 1, 63, 64, 65, 511, 512, 513, 1024, 5000, 40000})
    for (const double density : {0.0, 0.001, 0.03, 0.5, 0.97, 1.0}) {
      std::vector<bool> bits(std::size_t(n), false);
      std::bernoulli_distribution one(density);
      for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = one(random);
      check_bitmap(bits);
    }
}

TEST(Bitmap, finds_across_long_gaps) {
  std::vector<bool> bits(300000, false);
  for (const std::size_t i : {0, 1, 150000, 299999}) bits[i] = true;
  check_bitmap(bits);
  bits.flip();
  check_bitmap(bits);
}

TEST(Bitmap, refuses_bits_behind_the_last) {
  expect_error(ErrorKind::argument, {"behind its last"}, [] { Bitmap({2}, 1, Bitmap::Find::ones); });
  std::vector<std::uint64_t> far(16);
  far[13] = 1;  // beyond the block that the bits are in
  expect_error(ErrorKind::argument, {"behind its last"}, [&] { Bitmap(far, 256, Bitmap::Find::ones); });
  expect_error(ErrorKind::argument, {"65 bits", "1 words"}, [] { Bitmap({0}, 65, Bitmap::Find::ones); });
}

void check_sequence(const Indices& values, Index universe) {
  const EliasFano sequence(values, universe);
  Indices all(values.size());
  sequence.read(0, sequence.size(), all.data());
  ASSERT_EQ(all, values);
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(sequence[Index(i)], values[i]);
  std::mt19937_64 random(seed);
  for (int k = 0; k < 200; ++k) {
    const Index value = k < 2 ? k * universe : Index(random() % std::uint64_t(universe + 1));
    const auto at = std::lower_bound(values.begin(), values.end(), value);
    ASSERT_EQ(sequence.below(value), at - values.begin()) << value;
    if (value < universe) {
      ASSERT_EQ(sequence.find(value), at != values.end() && *at == value ? at - values.begin() : -1);
    }
    if (values.empty()) continue;
    if (value < universe && value >= values[0]) {
      const auto last = std::upper_bound(values.begin(), values.end(), value) - 1;
      const auto found = sequence.last_up_to(value);
      ASSERT_EQ(found.position, last - values.begin()) << value;
      ASSERT_EQ(found.value, *last) << value;
    }
    const Index here = values[random() % values.size()];
    ASSERT_EQ(sequence.find(here), std::lower_bound(values.begin(), values.end(), here) - values.begin());
  }
  EXPECT_LE(sequence.memory_bytes(), EliasFano::bytes_of(sequence.size(), universe) + 8);
  EXPECT_EQ(EliasFano::from_words(sequence.size(), universe, sequence.low().words(), sequence.high().words()),
            sequence);
}

TEST(EliasFano, holds_what_ascends) {
  check_sequence({}, 0);
  check_sequence({}, 100);
  check_sequence({0}, 1);
  check_sequence({Index{1} << 40}, (Index{1} << 40) + 1);
  check_sequence({3, 3, 3, 4, 4, 99}, 100);
  std::mt19937_64 random(seed);
  for (const Index n : {10, 1000, 20000})
    for (const Index universe : {Index{50}, Index{3000}, Index{1} << 20, Index{1} << 40}) {
      Indices values(std::size_t(n), 0);
      for (auto& value : values) value = Index(random() % std::uint64_t(universe));
      std::sort(values.begin(), values.end());
      check_sequence(values, universe);
    }
}

TEST(EliasFano, finds_in_crowded_places) {
  // Thousands of values that share their high bits.
  Indices values;
  for (Index i = 0; i < 5000; ++i) values.push_back((Index{1} << 39) + 3 * i);
  check_sequence(values, Index{1} << 40);
}

TEST(EliasFano, finds_across_wide_gaps) {
  Indices values;
  for (Index i = 0; i < 5000; ++i) values.push_back(3 * i);
  for (Index i = 0; i < 3; ++i) values.push_back((Index{1} << 30) + i);
  check_sequence(values, (Index{1} << 30) + 100);
}

TEST(EliasFano, refuses_what_is_none) {
  expect_error(ErrorKind::argument, {"value 2", "[3, 10)"}, [] { EliasFano(Indices{3, 2}, 10); });
  expect_error(ErrorKind::argument, {"value 10"}, [] { EliasFano(Indices{3, 10}, 10); });
  const EliasFano good(Indices{1, 5, 9}, 64);
  auto high = good.high().words();
  high[0] ^= 1;
  expect_error(ErrorKind::argument, {"high parts"}, [&] { EliasFano::from_words(3, 64, good.low().words(), high); });
}

}  // namespace
}  // namespace longshore

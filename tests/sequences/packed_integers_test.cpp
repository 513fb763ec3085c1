#include "longshore/sequences/packed_integers.hpp"

#include <algorithm>
#include <array>
#include <random>

#include "support/expect_error.hpp"
#include "support/quick.hpp"

namespace longshore {
namespace {

using test::expect_error;
using test::quick;
using Scheme = PackedIntegers::Scheme;
using Integers = std::vector<Index>;
using Bytes = std::vector<std::byte>;

constexpr std::array schemes{Scheme::offsets, Scheme::deltas};
constexpr std::array<Index, 16> sizes{0, 1, 2, 3, 4, 5, 7, 63, 64, 127, 128, 129, 131, 257, 1000, 1009};

Index wrapped(std::uint64_t value) { return static_cast<Index>(value); }

/// n values whose differences, or else themselves, have exactly
/// `width` bits in every block of 128 from some least one on.
Integers of_width(Index n, int width, Scheme scheme, std::mt19937_64& random) {
  const std::uint64_t mask = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  // Frames of the full 64 bits begin at the least integer.
  const Index room = wrapped(random() % 1000);
  const std::uint64_t least =
      width == 64 ? std::uint64_t{1} << 63 : static_cast<std::uint64_t>(width == 63 ? -room : 5 * room);
  Integers values(std::size_t(n), 0);
  std::uint64_t last = random();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto place = i % 128;
    const std::uint64_t bits = place == 1 ? 0 : place == 2 ? mask : random() & mask;
    last = least + bits + (scheme == Scheme::deltas ? last : 0);
    values[i] = wrapped(last);
  }
  return values;
}

Bytes stored(const PackedIntegers& list) {
  Bytes bytes;
  list.append_to(bytes);
  EXPECT_EQ(Index(bytes.size()), list.stored_bytes());
  return bytes;
}

PackedIntegers from(const Bytes& bytes) {
  std::span<const std::byte> in(bytes);
  auto list = PackedIntegers::from_bytes(in);
  EXPECT_TRUE(in.empty());
  return list;
}

/// Everything that a list says, against the values themselves.
void expect_holds(const PackedIntegers& list, const Integers& values) {
  ASSERT_EQ(list.size(), Index(values.size()));
  Integers all(values.size(), 77);
  list.read(0, list.size(), all.data());
  EXPECT_EQ(all, values);
  for (Index i = 0; i < list.size(); ++i) ASSERT_EQ(list[i], values[std::size_t(i)]) << "at " << i;
  if (values.empty()) return;
  EXPECT_EQ(list.minimum(), *std::min_element(values.begin(), values.end()));
  EXPECT_EQ(list.maximum(), *std::max_element(values.begin(), values.end()));
}

/// A stretch in both forms; what lies around it in the memory stays.
void expect_stretch(const PackedIntegers& list, const Integers& values, Index first, Index n, Index base) {
  Integers whole(std::size_t(n) + 2, 77);
  list.read(first, n, whole.data() + 1);
  std::vector<std::uint32_t> low(std::size_t(n) + 2, 77);
  list.read(first, n, low.data() + 1, base);
  for (Index i = 0; i < n; ++i) {
    const Index value = values[std::size_t(first + i)];
    ASSERT_EQ(whole[std::size_t(i) + 1], value) << first << " + " << i;
    ASSERT_EQ(low[std::size_t(i) + 1], std::uint32_t(std::uint64_t(value) - std::uint64_t(base)))
        << first << " + " << i;
  }
  EXPECT_TRUE(whole.front() == 77 && whole.back() == 77 && low.front() == 77 && low.back() == 77)
      << first << " + " << n;
}

TEST(PackedIntegers, an_empty_one_holds_nothing) {
  const PackedIntegers none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none, PackedIntegers(Integers{}, Scheme::offsets));
  EXPECT_EQ(none, PackedIntegers::smallest({}));
  EXPECT_EQ(none.memory_bytes(), 0);
  none.read(0, 0, static_cast<Index*>(nullptr));
  none.read(0, 0, nullptr, 0);
  EXPECT_EQ(stored(none).size(), 2u);
  EXPECT_EQ(from(stored(none)), none);
  expect_error(ErrorKind::argument, {"no minimum"}, [&] { none.minimum(); });
  expect_error(ErrorKind::argument, {"no maximum"}, [&] { none.maximum(); });
}

TEST(PackedIntegers, holds_every_width_and_size) {
  std::mt19937_64 random(1);
  for (const auto scheme : schemes)
    for (int width = 0; width <= 64; ++width)
      for (const Index n : sizes) {
        SCOPED_TRACE(testing::Message() << "scheme " << int(scheme) << ", width " << width << ", size " << n);
        const auto values = of_width(n, width, scheme, random);
        const PackedIntegers list(values, scheme);
        EXPECT_EQ(list.scheme(), scheme);
        expect_holds(list, values);
        // Packed as it should be, not only right: exactly the bits, in units of 16 bytes, and a little for each block.
        const Index blocks = (n + 127) / 128;
        if (n % 128 == 0) {
          EXPECT_LE(list.stored_bytes(), n * width / 8 + 3 + 21 * blocks);
        }
        expect_holds(from(stored(list)), values);
        EXPECT_EQ(from(stored(list)), list);
        for (const auto& [first, count] : {std::pair<Index, Index>{0, n},
                                           {0, 1},
                                           {n / 2, n - n / 2},
                                           {n - 1, 1},
                                           {1, 127},
                                           {126, 4},
                                           {127, 130},
                                           {128, 128},
                                           {129, n - 130},
                                           {n, 0}})
          if (first >= 0 && count >= 0 && first + count <= n)
            expect_stretch(list, values, first, count, n == 0 ? 0 : list.minimum());
      }
}

TEST(PackedIntegers, reads_any_stretch) {
  std::mt19937_64 random(2);
  for (const auto scheme : schemes) {
    const auto values = of_width(400, 13, scheme, random);
    const PackedIntegers list(values, scheme);
    for (Index first = 0; first <= 400; first += quick() ? 7 : 1)
      for (Index n = 0; n <= 400 - first; n += quick() ? 5 : 1) expect_stretch(list, values, first, n, list.minimum());
  }
}

TEST(PackedIntegers, holds_the_extremes) {
  for (const auto scheme : schemes)
    for (const Integers& values : {Integers{INT64_MIN, INT64_MAX}, Integers{INT64_MAX, INT64_MIN}, Integers{INT64_MIN},
                                   Integers{INT64_MAX, INT64_MAX, INT64_MAX}, Integers{INT64_MIN, 0, INT64_MAX, -1, 1},
                                   Integers{0, INT64_MIN, 0, INT64_MAX, INT64_MIN + 1, INT64_MAX - 1},
                                   Integers{Index{1} << 31, (Index{1} << 31) - 1, Index{1} << 32, -(Index{1} << 31)}}) {
      const PackedIntegers list(values, scheme);
      expect_holds(list, values);
      EXPECT_EQ(from(stored(list)), list);
      expect_stretch(list, values, 0, list.size(), INT64_MIN);
    }
}

TEST(PackedIntegers, the_short_form_holds_all_32_bits) {
  for (const auto scheme : schemes)
    for (const Index base : {Index{0}, Index{INT64_MIN}, INT64_MAX - (Index{1} << 32), -(Index{1} << 31)}) {
      const Integers values{base, base + (Index{1} << 32) - 1, base + 5, base + (Index{1} << 31)};
      std::array<std::uint32_t, 4> low;
      PackedIntegers(values, scheme).read(0, 4, low.data(), base);
      EXPECT_EQ(low, (std::array<std::uint32_t, 4>{0, UINT32_MAX, 5, 1u << 31}));
    }
}

TEST(PackedIntegers, one_stride_takes_no_bits) {
  Integers values(100000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 5000000000 - 24 * Index(i);
  const auto list = PackedIntegers::smallest(values);
  EXPECT_EQ(list.scheme(), Scheme::deltas);
  expect_holds(list, values);
  EXPECT_LT(list.stored_bytes(), 100000 / 24);  // 4 bytes a block, of 1024
  EXPECT_LT(list.memory_bytes(), 100000 / 5);
}

TEST(PackedIntegers, the_smallest_is_the_smaller) {
  std::mt19937_64 random(3);
  Integers ascending(1000), scattered(1000);
  Index last = 1 << 30;
  for (auto& value : ascending) value = last += 1 + wrapped(random() % 8);
  for (auto& value : scattered) value = last + wrapped(random() % 1000);
  EXPECT_EQ(PackedIntegers::smallest(ascending), PackedIntegers(ascending, Scheme::deltas));
  EXPECT_EQ(PackedIntegers::smallest(scattered), PackedIntegers(scattered, Scheme::offsets));
  EXPECT_EQ(PackedIntegers::smallest(Integers(300, 7)).scheme(), Scheme::offsets);
  EXPECT_LT(PackedIntegers::smallest(ascending).stored_bytes(), 1000 * 3 / 8 + 100);
}

TEST(PackedIntegers, equal_means_the_same_values_and_scheme) {
  const Integers values{3, 1, 4, 1, 5}, others{3, 1, 4, 1, 6};
  EXPECT_EQ(PackedIntegers(values, Scheme::deltas), PackedIntegers(values, Scheme::deltas));
  EXPECT_FALSE(PackedIntegers(values, Scheme::deltas) == PackedIntegers(values, Scheme::offsets));
  EXPECT_FALSE(PackedIntegers(values, Scheme::deltas) == PackedIntegers(others, Scheme::deltas));
}

TEST(PackedIntegers, positions_are_checked) {
  const PackedIntegers list(Integers{1, 2, 3}, Scheme::deltas);
  std::array<Index, 8> out;
  std::array<std::uint32_t, 8> low;
  expect_error(ErrorKind::argument, {"position 3", "[0, 3)"}, [&] { list[3]; });
  expect_error(ErrorKind::argument, {"position -1", "[0, 3)"}, [&] { list[-1]; });
  struct Stretch {
    Index first, n;
  };
  for (const Stretch wrong : {Stretch{0, 4},
                              {3, 1},
                              {4, 0},
                              {-1, 1},
                              {0, -1},
                              {1, INT64_MAX},
                              {INT64_MAX, 1},
                              {INT64_MIN, 1},
                              {2, INT64_MIN}}) {
    const auto first = wrong.first, n = wrong.n;
    const std::vector<std::string> words{std::to_string(n) + " positions from " + std::to_string(first), "[0, 3)"};
    expect_error(ErrorKind::argument, words, [&] { list.read(first, n, out.data()); });
    expect_error(ErrorKind::argument, words, [&] { list.read(first, n, low.data(), 0); });
  }
}

// The stored form.

TEST(PackedIntegers, the_stored_form_is_what_it_is) {
  const auto bytes = [](std::initializer_list<int> values) {
    Bytes result;
    for (const int value : values) result.push_back(std::byte(value));
    return result;
  };
  // offsets, 3 values, 2 bits each, base 100 (zigzag 200), then 0, 3, 1 in the first three lanes.
  EXPECT_EQ(stored(PackedIntegers(Integers{100, 103, 101}, Scheme::offsets)),
            bytes({0, 3, 2, 0xc8, 1, 0, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}));
  // deltas, 4 values, no bits, base -1, step -7 (zigzag 1 and 13).
  EXPECT_EQ(stored(PackedIntegers(Integers{-1, -8, -15, -22}, Scheme::deltas)), bytes({1, 4, 0, 1, 13}));
}

TEST(PackedIntegers, stored_forms_follow_each_other) {
  const PackedIntegers a(Integers{1, 5, 2}, Scheme::offsets), b(Integers(500, -3), Scheme::deltas), none;
  Bytes bytes;
  for (const auto* list : {&a, &none, &b}) list->append_to(bytes);
  bytes.push_back(std::byte{42});
  std::span<const std::byte> in(bytes);
  EXPECT_EQ(PackedIntegers::from_bytes(in), a);
  EXPECT_EQ(PackedIntegers::from_bytes(in), none);
  EXPECT_EQ(PackedIntegers::from_bytes(in), b);
  ASSERT_EQ(in.size(), 1u);
  expect_error(ErrorKind::argument, {"byte 0", "scheme 42"}, [&] { PackedIntegers::from_bytes(in); });
  EXPECT_EQ(in.size(), 1u);
}

std::vector<PackedIntegers> stored_examples() {
  std::mt19937_64 random(4);
  std::vector<PackedIntegers> examples{PackedIntegers()};
  for (const auto scheme : schemes)
    for (const int width : {0, 1, 3, 8, 31, 32, 33, 57, 64})
      for (const Index n : {1, 2, 6, 128, 150}) examples.emplace_back(of_width(n, width, scheme, random), scheme);
  return examples;
}

/// Bytes that nobody vouches for: an error in printable words, or a list that
/// writes the same bytes and can be read everywhere. True where it is a list.
bool check_bytes(const Bytes& bytes) {
  // Just as long as the bytes are, so that a sanitizer sees what is read behind them.
  const Bytes exactly(bytes);
  std::span<const std::byte> in(exactly);
  try {
    const auto list = PackedIntegers::from_bytes(in);
    const Bytes used(exactly.begin(), exactly.end() - std::ptrdiff_t(in.size()));
    EXPECT_EQ(stored(list), used);
    EXPECT_LE(list.size(), 64 * Index(exactly.size()));
    EXPECT_LE(list.memory_bytes(), 12 * Index(exactly.size()));
    Integers values(std::size_t(list.size()), 0);
    list.read(0, list.size(), values.data());
    EXPECT_EQ(PackedIntegers(values, list.scheme()), list);
    for (Index i = 0; i < list.size(); i += 61) EXPECT_EQ(list[i], values[std::size_t(i)]);
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(int(error.kind()), int(ErrorKind::argument)) << error.what();
    EXPECT_NE(std::string(error.what()).find("packed integers: byte "), std::string::npos) << error.what();
    EXPECT_EQ(in.size(), exactly.size());
    return false;
  }
}

TEST(PackedIntegers, every_truncation_is_refused) {
  for (const auto& list : stored_examples()) {
    const auto bytes = stored(list);
    for (auto end = bytes.begin(); end != bytes.end(); ++end) EXPECT_FALSE(check_bytes(Bytes(bytes.begin(), end)));
    EXPECT_TRUE(check_bytes(bytes));
  }
}

TEST(PackedIntegers, a_flipped_bit_is_refused_or_another_list) {
  for (const auto& list : stored_examples()) {
    const auto bytes = stored(list);
    for (std::size_t bit = 0; bit < 8 * bytes.size(); bit += quick() && bit > 400 ? 13 : 1) {
      auto flipped = bytes;
      flipped[bit / 8] ^= std::byte(1 << bit % 8);
      check_bytes(flipped);
    }
  }
}

TEST(PackedIntegers, survives_mutations) {
  std::mt19937_64 random(5);
  const auto examples = stored_examples();
  auto below = [&](std::size_t n) { return std::size_t(random() % n); };
  int lists = 0;
  const int rounds = quick() ? 5000 : 50000;
  for (int round = 0; round < rounds; ++round) {
    auto bytes = stored(examples[below(examples.size())]);
    for (std::size_t edits = 1 + below(3); edits > 0; --edits) {
      const auto at = std::ptrdiff_t(below(std::min<std::size_t>(bytes.size(), 30)));
      switch (below(4)) {
        case 0: bytes[std::size_t(at)] = std::byte(below(3) ? below(70) : below(256)); break;
        case 1: bytes.insert(bytes.begin() + at, below(3), std::byte(below(256))); break;
        case 2: bytes.erase(bytes.begin() + at); break;
        case 3: bytes.resize(bytes.size() + below(40), std::byte{0}); break;
      }
      if (bytes.empty()) bytes.push_back(std::byte{0});
    }
    lists += check_bytes(bytes);
  }
  EXPECT_GT(lists, rounds / 100);  // most are refused, but the accepted ones are seen too
}

TEST(PackedIntegers, refusals_say_what_and_where) {
  const auto refused = [](std::vector<int> values, const std::vector<std::string>& words, std::size_t zeros = 0) {
    Bytes bytes;
    for (const int value : values) bytes.push_back(std::byte(value));
    bytes.resize(bytes.size() + zeros, std::byte{0});
    expect_error(ErrorKind::argument, words, [&] {
      std::span<const std::byte> in(bytes);
      PackedIntegers::from_bytes(in);
    });
  };
  refused({}, {"byte 0", "0 of 1", "the scheme"});
  refused({2}, {"byte 0", "scheme 2", "offsets", "deltas"});
  refused({0}, {"byte 1", "the size"});
  refused({0, 0x80}, {"byte 2", "the size"});
  refused({0, 0x81, 0}, {"byte 1", "the size has more bytes than it needs"});
  refused({0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2}, {"byte 1", "the size has more than 64 bits"});
  refused({0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}, {"byte 1", "size 18446744073709551615"});
  // So many values that their blocks alone would fill the memory.
  refused({0, 255, 255, 255, 255, 255, 255, 255, 255, 127}, {"byte 10", "72057594037927936 blocks", "100 bytes follow"},
          100);
  // Two bytes a block are the least: memory for more is not even asked for.
  refused({0, 0x80, 51}, {"byte 3", "51 blocks", "101 bytes follow"}, 101);
  refused({0, 1, 65, 0}, {"byte 2", "width 65 of block 0"});
  refused({0, 2, 3, 0, 0}, {"byte 4", "1 of 16", "packed bits"});
  refused({0, 2, 1, 0, 1, 0, 0, 0, 1}, {"byte 4", "block 0", "nothing that is 0"}, 11);
  refused({0, 2, 2, 0, 0, 0, 0, 0, 1}, {"byte 4", "block 0", "more bits"}, 11);
  refused({0, 2, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1}, {"byte 4", "block 0", "behind its last value"}, 7);
  refused({1, 2, 1, 0, 0, 1}, {"byte 5", "block 0", "before its first value"}, 15);
  refused({1, 1, 0, 0, 2}, {"byte 5", "block 0", "one value, but a step"});
  // INT64_MAX (zigzag) and one more.
  refused({0, 2, 1, 254, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0, 0, 0, 0, 1},
          {"byte 13", "block 0", "beyond 64 bits"}, 11);
}

}  // namespace
}  // namespace longshore

// Typemaps against a plain twin: the list of all their bytes' offsets.
#include "relations/typemap.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "support/expect_error.hpp"
#include "support/quick.hpp"

namespace longshore {
namespace {

using Offsets = std::vector<Index>;

struct Both {
  Typemap map;
  Offsets plain;  ///< of every byte, in order
};

Offsets bytes_of(const AddressRelation& relation, bool source) {
  Offsets offsets;
  for (const auto& pair : relation.pairs())
    for (Index b = 0; b < relation.element_bytes(); ++b)
      offsets.push_back((source ? pair.source : pair.destination) + b);
  return offsets;
}

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  Index between(Index low, Index high) { return std::uniform_int_distribution<Index>(low, high)(random_); }

  Both basic() {
    const Index sizes[] = {1, 2, 4, 8, 8, 16, 3};
    const Index n = sizes[between(0, 6)];
    Both both{Typemap::basic(n), {}};
    for (Index b = 0; b < n; ++b) both.plain.push_back(b);
    return both;
  }

  Both typemap(int depth) {
    if (depth == 0) return basic();
    if (between(0, 2) == 0) {  // several, one after the other
      Both both;
      Both same = typemap(int(between(0, depth - 1)));
      for (Index k = between(0, 5), other = between(0, 1); k > 0; --k) {
        if (other) same = typemap(int(between(0, depth - 1)));
        const Index shift = between(-60, 60);
        both.map.append(same.map.shifted(shift));
        for (const Index offset : same.plain) both.plain.push_back(offset + shift);
      }
      return both;
    }
    const Both inner = typemap(depth - 1);
    Typemap::Level level;
    for (Index k = between(0, 5) == 0 ? between(0, 3) : 1; k > 0; --k)
      level.push_back({between(-20, 20), between(0, 5), between(-20, 40), between(1, 3), between(-30, 90)});
    if (between(0, 2) == 0) level = {{0, between(0, 4), Index(inner.plain.size())}};
    Both both{inner.map.repeated(level), {}};
    for (const auto& run : level)
      for (Index c = 0; c < run.count; ++c)
        for (Index e = 0; e < run.length; ++e)
          for (const Index offset : inner.plain)
            both.plain.push_back(offset + run.offset + c * run.step + e * run.stride);
    return both;
  }

 private:
  std::mt19937 random_;
};

TEST(Typemap, AssemblesItsBytesInOrder) {
  Draw draw(1);
  int some = 0;
  for (int k = 0; k < 4000; ++k) {
    const auto both = draw.typemap(int(draw.between(0, 5)));
    if (both.plain.size() > 20000) continue;
    ASSERT_EQ(both.map.bytes(), Index(both.plain.size()));
    const auto relation = both.map.assembly();
    ASSERT_EQ(bytes_of(relation, true), both.plain) << "typemap " << k;
    for (Index b = 0; const Index at : bytes_of(relation, false)) ASSERT_EQ(at, b++);
    some += !both.plain.empty();
  }
  EXPECT_GT(some, 2000);
}

TEST(Typemap, PairsBytesInOrder) {
  Draw draw(2);
  int some = 0;
  const int rounds = test::quick() ? 3000 : 20000;
  for (int k = 0; k < rounds; ++k) {
    auto a = draw.typemap(int(draw.between(0, 4))), b = draw.typemap(int(draw.between(0, 4)));
    if (a.plain.empty() || b.plain.empty() || a.plain.size() > 3000 || b.plain.size() > 3000) continue;
    // Copies until both are as long; far apart, so that overlaps are the typemap's own.
    const Index common = std::lcm(a.map.bytes(), b.map.bytes());
    if (common > 20000) continue;
    auto copies = [&](Both& both) {
      const Index n = common / both.map.bytes();
      Offsets all;
      for (Index c = 0; c < n; ++c)
        for (const Index offset : both.plain) all.push_back(offset + c * 100000);
      both = {both.map.repeated(n, 100000), all};
    };
    copies(a), copies(b);
    const bool overlaps = std::set<Index>(b.plain.begin(), b.plain.end()).size() < b.plain.size();
    if (overlaps) {
      test::expect_error(ErrorKind::argument, {"write the same bytes"}, [&] { a.map.to(b.map); });
      continue;
    }
    const auto relation = a.map.to(b.map);
    ASSERT_EQ(bytes_of(relation, true), a.plain) << "pair " << k;
    ASSERT_EQ(bytes_of(relation, false), b.plain) << "pair " << k;
    ++some;
  }
  EXPECT_GT(some, rounds / 10);
}

TEST(Typemap, LoopsOfAnyLengthAreNotEnumerated) {
  const auto element = Typemap::basic(8);
  const Index many = Index{1} << 40;
  const auto twos = element.repeated(2, 8).repeated(3 * many, 24),
             threes = element.repeated(3, 8).repeated(2 * many, 40);
  EXPECT_EQ(twos.assembly().parts().size(), 1u);
  const auto both = twos.to(threes);
  EXPECT_EQ(both.elements(), 6 * many);
  EXPECT_EQ(both.parts().size(), 1u);
  EXPECT_EQ(both.at(6 * many - 1), (OffsetPair{24 * (3 * many - 1) + 8, 40 * (2 * many - 1) + 16}));
  EXPECT_EQ(both.at(3 * many + 2), (OffsetPair{24 * (3 * many / 2 + 1), 40 * many + 16}));

  auto gaps = Typemap::basic(1);
  gaps.append(Typemap::basic(4).shifted(4));
  const auto records = gaps.repeated(many, 16);
  EXPECT_EQ(records.pieces().size(), 1u);
  EXPECT_EQ(records.assembly().at(5 * (many - 1) + 3), (OffsetPair{16 * (many - 1) + 6, 5 * (many - 1) + 3}));
}

TEST(Typemap, RefusesWhatCannotBe) {
  const auto element = Typemap::basic(8);
  test::expect_error(ErrorKind::argument, {"cannot be repeated -1 times"}, [&] { element.repeated(-1, 8); });
  test::expect_error(ErrorKind::overflow, {}, [&] { element.repeated(Index{1} << 61, 0); });
  test::expect_error(ErrorKind::overflow, {"2^61"}, [&] { element.repeated(3, Index{1} << 60); });
  test::expect_error(ErrorKind::overflow, {"2^61"}, [&] { element.shifted(Index{1} << 62); });
  test::expect_error(ErrorKind::overflow, {"2^60"}, [&] { element.shifted(Index{1} << 60).assembly(); });
  test::expect_error(ErrorKind::shape, {"8 bytes of data, the destination datatype 16"},
                     [&] { element.to(element.repeated(2, 8)); });
  test::expect_error(ErrorKind::argument, {"write the same bytes"},
                     [&] { element.repeated(2, 8).to(element.repeated(2, 4)); });
  // Before the array's first byte, too.
  test::expect_error(ErrorKind::argument, {"write the same bytes"},
                     [&] { element.repeated(2, 8).to(element.shifted(-100).repeated(2, 4)); });
  auto wide = element;
  wide.append(element.shifted(100));
  wide = wide.repeated(1 << 20, 1000);
  wide.append(element.repeated(1 << 14, 24).shifted(-1));
  EXPECT_NO_THROW(wide.repeated(5, 1 << 31).assembly());
  const auto nothing = Typemap();
  EXPECT_TRUE(nothing.to(nothing).empty());
  EXPECT_TRUE(nothing.repeated(5, 8).assembly().empty());
}

}  // namespace
}  // namespace longshore

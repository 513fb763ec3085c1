// What each combiner's numbers mean, with small and with large counts.
#include "relations/datatype_contents.hpp"

#include <gtest/gtest.h>

#include "support/expect_error.hpp"

namespace longshore {
namespace {

using Numbers = std::vector<Index>;

constexpr ArrayConstants constants{56, 57, 123, 121, 122, -49767};

/// A basic element of 4 bytes, 4 bytes from the next.
InnerType word() { return {Typemap::basic(4), 4}; }

/// Offsets of the elements, of 4 bytes each, in order.
Numbers places(const DatatypeContents& contents) {
  Numbers offsets;
  const auto relation = typemap_of(contents, constants).assembly();
  for (const auto& pair : relation.pairs()) offsets.push_back(pair.source);
  return offsets;
}

/// The same datatype with small counts, and with large ones: both must say `expected`.
void expect(Combiner combiner, Numbers integers, Numbers addresses, Numbers large_integers, Numbers counts,
            const Numbers& expected) {
  EXPECT_EQ(places({combiner, std::move(integers), std::move(addresses), {}, {word(), word(), word()}}), expected);
  EXPECT_EQ(places({combiner, std::move(large_integers), {}, std::move(counts), {word(), word(), word()}}), expected);
}

TEST(DatatypeContents, EveryCombinerSaysWhereItsElementsLie) {
  expect(Combiner::dup, {}, {}, {}, {}, {0});
  expect(Combiner::resized, {}, {-4, 100}, {}, {-4, 100}, {0});
  expect(Combiner::contiguous, {3}, {}, {}, {3}, {0, 4, 8});
  expect(Combiner::vector, {2, 2, -3}, {}, {}, {2, 2, -3}, {0, 4, -12, -8});
  expect(Combiner::hvector, {2, 2}, {17}, {}, {2, 2, 17}, {0, 4, 17, 21});
  expect(Combiner::indexed, {3, 1, 0, 2, 5, 9, -1}, {}, {}, {3, 1, 0, 2, 5, 9, -1}, {20, -4, 0});
  expect(Combiner::hindexed, {2, 1, 2}, {5, -9}, {}, {2, 1, 2, 5, -9}, {5, -9, -5});
  expect(Combiner::indexed_block, {2, 2, 3, 0}, {}, {}, {2, 2, 3, 0}, {12, 16, 0, 4});
  expect(Combiner::hindexed_block, {2, 2}, {3, -20}, {}, {2, 2, 3, -20}, {3, 7, -20, -16});
  expect(Combiner::structure, {3, 1, 0, 2}, {6, 7, 20}, {}, {3, 1, 0, 2, 6, 7, 20}, {6, 20, 24});
}

TEST(DatatypeContents, FortransIntegersAreTheSame) {
  // The old procedures' distances may stand among the integers.
  EXPECT_EQ(places({Combiner::hvector, {2, 1, 17}, {}, {}, {word()}}), (Numbers{0, 17}));
  EXPECT_EQ(places({Combiner::hindexed, {2, 1, 1, 5, -9}, {}, {}, {word()}}), (Numbers{5, -9}));
  EXPECT_EQ(places({Combiner::structure, {2, 1, 1, 6, 20}, {}, {}, {word(), word()}}), (Numbers{6, 20}));
}

TEST(DatatypeContents, SubarraysInBothOrders) {
  expect(Combiner::subarray, {2, 3, 4, 2, 2, 1, 1, 56}, {}, {2, 56}, {3, 4, 2, 2, 1, 1}, {20, 24, 36, 40});
  expect(Combiner::subarray, {2, 3, 4, 2, 2, 1, 1, 57}, {}, {2, 57}, {3, 4, 2, 2, 1, 1}, {16, 20, 28, 32});
}

TEST(DatatypeContents, DarraysOnGridsInCOrder) {
  // Rank 1 of a 2 x 2 grid is at (0, 1). 3 x 5: rows in blocks of 2, columns cyclic by 2.
  expect(Combiner::darray, {4, 1, 2, 3, 5, 121, 122, -49767, 2, 2, 2, 56}, {}, {4, 1, 2, 121, 122, -49767, 2, 2, 2, 56},
         {3, 5}, {8, 12, 28, 32});
  expect(Combiner::darray, {4, 1, 2, 3, 5, 121, 122, -49767, 2, 2, 2, 57}, {}, {4, 1, 2, 121, 122, -49767, 2, 2, 2, 57},
         {3, 5}, {24, 28, 36, 40});
  // Not distributed, cyclic by default, a last part of a block, and nothing at all.
  expect(Combiner::darray, {2, 1, 2, 2, 3, 123, 122, -49767, -49767, 1, 2, 56}, {},
         {2, 1, 2, 123, 122, -49767, -49767, 1, 2, 56}, {2, 3}, {4, 16});
  expect(Combiner::darray, {2, 0, 1, 7, 122, 3, 2, 56}, {}, {2, 0, 1, 122, 3, 2, 56}, {7}, {0, 4, 8, 24});
  expect(Combiner::darray, {3, 2, 1, 4, 121, 2, 3, 56}, {}, {3, 2, 1, 121, 2, 3, 56}, {4}, {});
  expect(Combiner::darray, {3, 2, 1, 4, 122, 2, 3, 56}, {}, {3, 2, 1, 122, 2, 3, 56}, {4}, {});
}

TEST(DatatypeContents, ValueAndIndexAreAStruct) {
  const InnerType value{Typemap::basic(2), 2}, index{Typemap::basic(4), 4};
  const auto map = typemap_of({Combiner::value_index, {}, {}, {}, {value, index}}, constants);
  EXPECT_EQ(map.bytes(), 6);
  EXPECT_EQ(map.assembly().source_segments(), (std::vector<Segment>{{0, 2}, {4, 4}}));
}

TEST(DatatypeContents, InnerTypesKeepTheirPlacesAndExtents) {
  // An element at -2 whose copies are 10 bytes apart.
  const InnerType inner{Typemap::basic(4).shifted(-2), 10};
  EXPECT_EQ(places({Combiner::vector, {2, 2, 3}, {}, {}, {inner}}), (Numbers{-2, 8, 28, 38}));
  EXPECT_EQ(places({Combiner::subarray, {1, 4, 2, 1, 56}, {}, {}, {inner}}), (Numbers{8, 18}));
}

TEST(DatatypeContents, NonsenseIsRefused) {
  auto refused = [](const DatatypeContents& contents, const char* words) {
    test::expect_error(ErrorKind::argument, {words}, [&] { typemap_of(contents, constants); });
  };
  refused({Combiner::named, {}, {}, {}, {}}, "predefined");
  refused({Combiner::f90_real, {6, 30}, {}, {}, {}}, "predefined");
  refused({Combiner::dup, {}, {}, {}, {}}, "only 0 datatypes");
  refused({Combiner::vector, {2, 2}, {}, {}, {word()}}, "only 2 numbers");
  refused({Combiner::contiguous, {-1}, {}, {}, {word()}}, "-1 times");
  refused({Combiner::indexed, {-2, 1}, {}, {}, {word()}}, "-2 numbers wanted");
  refused({Combiner::structure, {2, 1, 1}, {0, 8}, {}, {word()}}, "only 1 datatypes");
  refused({Combiner::subarray, {1, 4, 2, 1, 99}, {}, {}, {word()}}, "array order 99");
  refused({Combiner::darray, {3, 0, 1, 7, 122, 3, 2, 56}, {}, {}, {word()}}, "grid of 2");
  refused({Combiner::darray, {2, 2, 1, 7, 122, 3, 2, 56}, {}, {}, {word()}}, "rank 2 of 2");
  refused({Combiner::darray, {2, 0, 1, 7, 121, 3, 2, 56}, {}, {}, {word()}}, "do not hold 7");
  refused({Combiner::darray, {2, 0, 1, 7, 5, 3, 2, 56}, {}, {}, {word()}}, "distribution 5");
  refused({Combiner::darray, {2, 0, 1, 7, 122, 0, 2, 56}, {}, {}, {word()}}, "distribution argument 0");
}

}  // namespace
}  // namespace longshore

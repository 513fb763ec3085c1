// Whether destinations overlap and whether a side ascends: what
// a relation says of itself without enumerating is never wrong.
#include <random>

#include "support/expect_error.hpp"
#include "support/quick.hpp"
#include "support/relations.hpp"

namespace longshore::test {
namespace {

/// A generator as `draw`; fixed, so that a failure repeats.
struct Dice {
  std::mt19937_64 random{20261122};
  Index operator()(Index low, Index high) { return low + Index(random() % std::uint64_t(high - low + 1)); }
};

const int rounds = quick() ? 20000 : 300000;

std::string words(const LoopNest& nest) {
  std::string text = "element " + std::to_string(nest.element_bytes());
  for (const auto& axis : nest.axes()) {
    text += "\n axis of strides " + std::to_string(axis.source_stride) + ", " +
            std::to_string(axis.destination_stride) + ":";
    axis.runs.for_each_run([&](Index, Index s, Index d, Index length) {
      text += " (" + std::to_string(s) + ", " + std::to_string(d) + ") x " + std::to_string(length);
    });
  }
  return text;
}

std::string words(const AddressRelation::Part& part) {
  if (const auto* nest = std::get_if<LoopNest>(&part)) return words(*nest);
  std::string text = part.index() == 1 ? "\n runs" : "\n pairs";
  for (const auto& pair : pairs_of(part)) text += " " + std::to_string(pair.destination);
  return text;
}

std::string words(const Sample& sample) {
  std::string text = "element " + std::to_string(sample.element);
  for (const auto& part : sample.parts) text += words(part);
  return text;
}

bool ascends(const Pairs& pairs, Index OffsetPair::*side, Index element) {
  for (std::size_t k = 1; k < pairs.size(); ++k)
    if (pairs[k].*side < pairs[k - 1].*side + element) return false;
  return true;
}

TEST(Destinations, a_nest_never_claims_what_is_not_so) {
  Dice draw;
  int distinct = 0, ascending = 0, missed = 0;
  for (int i = 0; i < rounds; ++i) {
    const Index element = draw(1, 3) == 3 ? draw(1, 5) : 8;
    const auto nest = draw(0, 3) ? any_nest(draw, element, 60) : any_box(draw, element);
    const auto pairs = pairs_of(nest);
    const bool overlap = destinations_overlap(pairs, element);
    if (nest.distinct_destinations()) {
      ASSERT_FALSE(overlap) << words(nest);
      ++distinct;
    } else if (!overlap) {
      ++missed;
    }
    if (nest.ascending_source()) {
      ASSERT_TRUE(ascends(pairs, &OffsetPair::source, element)) << words(nest);
      ++ascending;
    }
    if (nest.ascending_destination()) {
      ASSERT_TRUE(ascends(pairs, &OffsetPair::destination, element)) << words(nest);
    }
    Index low = pairs[0].destination, high = low;
    for (const auto& pair : pairs) low = std::min(low, pair.destination), high = std::max(high, pair.destination);
    ASSERT_EQ(nest.destination_extent(), (Interval{low, high + element})) << words(nest);
  }
  EXPECT_GT(distinct, rounds / 10);
  EXPECT_GT(ascending, rounds / 10);
  EXPECT_LT(missed, rounds / 5);  // these cost time, no more
}

TEST(Destinations, overlaps_are_refused_exactly_where_there_are_some) {
  Dice draw;
  int overlaps = 0;
  for (int i = 0; i < rounds / 5; ++i) {
    auto sample = any_sample(draw);
    overlaps += sample.overlap;
    bool refused = false;
    try {
      EXPECT_EQ(sample.relation().elements(), Index(sample.pairs.size()));
    } catch (const Error& error) {
      refused = true;
      ASSERT_EQ(int(error.kind()), int(ErrorKind::argument)) << error.what();
    }
    ASSERT_EQ(refused, sample.overlap) << words(sample);
  }
  EXPECT_GT(overlaps, rounds / 100);
}

/// Offsets so far apart that no list of places would hold them: runs are merged.
TEST(Destinations, overlaps_far_apart_are_refused_too) {
  Dice draw;
  constexpr Index far = Index{1} << 40;
  int overlaps = 0;
  for (int i = 0; i < rounds / 20; ++i) {
    const Index element = draw(1, 9);
    AddressRelation::RunList runs(std::size_t(draw(2, 12)));
    for (auto& run : runs)
      run = {0, far * draw(-9, 9) + draw(0, 9), draw(1, 6), element, draw(0, 1) ? far * draw(-3, 3) : draw(-12, 12)};
    const auto pairs = pairs_of(AddressRelation::Part(runs));
    const bool overlap = destinations_overlap(pairs, element);
    overlaps += overlap;
    bool refused = false;
    try {
      EXPECT_EQ(AddressRelation::from_runs(element, runs).elements(), Index(pairs.size()));
    } catch (const Error& error) {
      refused = true;
      ASSERT_EQ(int(error.kind()), int(ErrorKind::argument)) << error.what();
    }
    ASSERT_EQ(refused, overlap) << "round " << i << words(AddressRelation::Part(runs));
  }
  EXPECT_GT(overlaps, rounds / 100);
  EXPECT_LT(overlaps, rounds / 20 - rounds / 200);
}

TEST(Destinations, two_pairs_that_clash_are_named) {
  auto refused = [](const std::vector<std::string>& words, AddressRelation::RunList runs) {
    expect_error(ErrorKind::argument, words, [&] { AddressRelation::from_runs(8, std::move(runs)); });
  };
  refused({"pair 1 (8 -> -8)", "pair 3 (80 -> -4)", "same bytes", "combining operation"},
          {{0, -24, 3, 8, 16}, {80, -4, 1, 0, 0}});
  refused({"pair 0 (0 -> 16)", "pair 1 (8 -> 16)"}, {{0, 16, 5, 8, 0}});
  refused({"pair 2 (16 -> 9)", "pair 3 (24 -> 16)"}, {{0, -100, 2, 8, 50}, {16, 9, 3, 8, 7}});
  constexpr Index far = Index{1} << 50;
  refused({"pair 2 (16 -> " + std::to_string(3 * far) + ")", "pair 8 (10 -> " + std::to_string(3 * far + 3) + ")"},
          {{0, far, 4, 8, far}, {0, -far, 1, 0, 0}, {1, 9 * far, 4, 3, -2 * far + 1}});
}

/// Runs that do not interleave are passed at once, whatever their number of elements.
TEST(Destinations, large_runs_out_of_order) {
  constexpr Index large = Index{1} << 40;
  AddressRelation::RunList runs;
  for (Index k = 0; k < 1000; ++k) runs.push_back({0, (k * 7 % 1000) * 16 * large, large, 0, 16});
  EXPECT_EQ(AddressRelation::from_runs(16, runs).elements(), 1000 * large);
  EXPECT_EQ(AddressRelation::from_runs(8, {{0, 8, large, 0, 16}, {0, 16 * large, large, 0, 16}}).elements(), 2 * large);
  expect_error(ErrorKind::memory_limit, {"cannot be told", "combining operation"}, [&] {
    AddressRelation::from_runs(8, {{0, 8, large, 0, 16}, {0, 0, large, 0, 16}});
  });
}

TEST(Destinations, every_box_is_told_without_enumerating) {
  Dice draw;
  for (int i = 0; i < rounds / 10; ++i) {
    const auto box = any_box(draw, 8);
    EXPECT_TRUE(destinations_overlap(pairs_of(box), 8) || box.distinct_destinations()) << words(box);
  }
}

}  // namespace
}  // namespace longshore::test

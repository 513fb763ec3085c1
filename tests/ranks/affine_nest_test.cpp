// Closed forms beside their loops.
#include "longshore/ranks/affine_nest.hpp"

#include <random>

#include "ranks/block_statistics.hpp"
#include "support/expect_error.hpp"
#include "support/ranks.hpp"

namespace longshore {
namespace {

using namespace test;
using Axis = AffineNest::Axis;

Ranks looped(Index base, std::span<const Axis> axes) {
  Ranks list{base};
  for (const auto& [count, stride] : axes) {
    Ranks next;
    for (Index k = 0; k < count; ++k)
      for (const Index w : list) next.push_back(w + k * stride);
    list = next;
  }
  return list;
}

TEST(AffineNest, is_its_loops) {
  std::mt19937_64 random(11);
  int deep = 0;
  for (int round = 0; round < 300; ++round) {
    // Strides that nest, in any order, some backwards.
    std::vector<Axis> axes;
    Index reach = 0, down = 0;
    for (int k = int(random() % 7); k > 0; --k) {
      const Index stride = reach + 1 + Index(random() % 5), count = 1 + Index(random() % 4);
      reach += stride * (count - 1);
      const bool backwards = random() % 3 == 0;
      if (backwards) down += stride * (count - 1);
      axes.push_back({count, backwards ? -stride : stride});
    }
    std::shuffle(axes.begin(), axes.end(), random);
    const Index base = down + Index(random() % 3);
    const auto members = looped(base, axes);
    const AffineNest nest(base, axes);
    deep += nest.depth() > 4;
    ASSERT_EQ(nest.size(), Index(members.size()));
    ASSERT_EQ(nest.lowest(), *std::min_element(members.begin(), members.end()));
    ASSERT_EQ(nest.highest(), *std::max_element(members.begin(), members.end()));
    ASSERT_EQ(nest.ascending(), std::is_sorted(members.begin(), members.end())) << nest.to_string();
    Ranks all(members.size());
    nest.read(0, nest.size(), all.data());
    ASSERT_EQ(all, members);
    for (std::size_t i = 0; i < members.size(); ++i) ASSERT_EQ(nest.select(Index(i)), members[i]) << nest.to_string();
    for (Index w = -2; w <= nest.highest() + 2; ++w) {
      const auto at = std::find(members.begin(), members.end(), w);
      ASSERT_EQ(nest.rank(w), at == members.end() ? nobody : at - members.begin()) << nest.to_string();
    }
  }
  EXPECT_GT(deep, 20);
}

TEST(AffineNest, counts_to_the_largest_world) {
  const std::array<Axis, 3> axes{{{(Index{1} << 20) - 1, 1}, {1023, Index{1} << 20}, {1023, Index{1} << 30}}};
  const AffineNest nest(0, axes);
  std::mt19937_64 random(12);
  for (int k = 0; k < 100000; ++k) {
    const Index i = Index(random() % std::uint64_t(nest.size()));
    const Index inner = i % axes[0].count, rest = i / axes[0].count;
    ASSERT_EQ(nest.select(i), inner + rest % 1023 * (Index{1} << 20) + rest / 1023 * (Index{1} << 30));
    ASSERT_EQ(nest.rank(nest.select(i)), i);
  }
}

TEST(AffineNest, equal_loops_are_equal) {
  const AffineNest one(5, std::array<Axis, 3>{{{4, 2}, {1, 77}, {3, 8}}});
  EXPECT_EQ(one, AffineNest::stride(5, 12, 2));
  EXPECT_EQ(one.to_string(), "5 + 2 x 12");
  EXPECT_EQ(AffineNest(9, std::array<Axis, 2>{{{0, 5}, {3, 1}}}), AffineNest());
}

TEST(AffineNest, ranks_that_may_come_twice_are_refused) {
  const std::vector<Axis> overlapping{{3, 2}, {2, 3}};
  EXPECT_FALSE(AffineNest::make(0, overlapping));
  expect_error(ErrorKind::argument, {"3 by 2", "2 by 3", "twice"}, [&] { AffineNest(0, overlapping); });
  expect_error(ErrorKind::argument, {"negative ranks"}, [] { AffineNest::stride(3, 5, -1); });
  expect_error(ErrorKind::argument, {"no stride"}, [] { AffineNest::stride(3, 5, 0); });
  expect_error(ErrorKind::overflow, {"product"}, [] { AffineNest::stride(3, Index{1} << 40, Index{1} << 40); });
}

TEST(BlockStatistics, vectors_agree_with_their_plain_twin) {
  std::mt19937_64 random(13);
  for (int round = 0; round < 500; ++round) {
    const Index n = round % 5 == 0 ? 1 + Index(random() % 128) : 128;
    Ranks list;
    Index at = Index(random() % 1000), step = 1 + Index(random() % 3);
    for (Index k = 0; k < n; ++k) {
      list.push_back(at);
      if (random() % 10 == 0) step = 1 + Index(random() % (round % 2 ? 3 : 1000));
      at += step;
    }
    if (round % 3 == 0) std::shuffle(list.begin(), list.end(), random);
    ranks::BlockValues values;
    ASSERT_TRUE(values.load(list.data(), n));
    values.x[ranks::BlockValues::before - 1] = double(list[0]) - 1;
    values.x[ranks::BlockValues::before - 2] = double(list[0]) - 3;
    const auto a = ranks::block_statistics(values, n), b = ranks::plain_block_statistics(values, n);
    EXPECT_EQ(a.least_step, b.least_step);
    EXPECT_EQ(a.largest_step, b.largest_step);
    EXPECT_EQ(a.lowest, b.lowest);
    EXPECT_EQ(a.highest, b.highest);
    EXPECT_EQ(a.breaks, b.breaks);
    EXPECT_EQ(a.ones, b.ones);
    EXPECT_EQ(a.descents, b.descents);
    EXPECT_EQ(a.width, b.width);
  }
  ranks::BlockValues values;
  EXPECT_FALSE(values.load(Ranks{5, -1}.data(), 2));
  EXPECT_FALSE(values.load(Ranks{Index{1} << 52}.data(), 1));
}

TEST(Analysis, estimates_bytes_of_what_it_does_not_build) {
  const std::vector<std::string> exact{"stride",      "nest",   "elias-fano", "holes", "bitmap512", "runs",
                                       "affine-runs", "packed", "array",      "gap",   "bitmap",    "product"};
  for (const auto& [name, members, world] : rank_cases(14)) {
    const auto analysis = analyse(Members(members), world);
    for (const auto* module : all_modules()) {
      const auto estimate = module->estimate(Members(members), analysis);
      if (!estimate.possible || members.empty()) continue;
      SCOPED_TRACE(name + ": " + std::string(module->name()));
      const auto bytes = double(RankMap(module->build(Members(members), analysis), world, analysis.ascending).bytes());
      const bool sure = std::find(exact.begin(), exact.end(), module->name()) != exact.end();
      // A few words more or less, a few in a hundred; what depends
      // on how things repeat, or on a sample, within a factor.
      const double factor = sure                                                        ? 1.02
                            : module->name() == "linear" || module->name() == "dag"     ? 1.1
                            : module->name() == "bdd"                                   ? 1.1
                            : module->name() == "chunks" || module->name() == "wavelet" ? 1.5
                                                                                        : 2.5;
      EXPECT_LE(bytes, estimate.bytes * factor + 64);
      // Chunks are looked at in the simplest ways: one that turns out to be loops takes less.
      if (module->name() != "chunks") {
        EXPECT_GE(bytes * factor + 64, estimate.bytes);
      }
    }
  }
}

}  // namespace
}  // namespace longshore

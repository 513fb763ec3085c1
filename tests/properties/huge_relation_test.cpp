// Relations of 2^40 elements and offsets near 2^60: nothing is
// enumerated, nothing wraps, and what is beyond is an error.
#include <gtest/gtest.h>

#include <functional>

#include "longshore/plans/motion_plan.hpp"
#include "support/clock.hpp"
#include "support/expect_error.hpp"
#include "support/relations.hpp"

namespace longshore::test {
namespace {

constexpr Index giant = Index{1} << 40, furthest = Index{1} << 60;

/// rows x columns of doubles, row by row, into columns that lie apart.
AddressRelation transpose(Index rows, Index columns, Index pitch) {
  return AddressRelation::strided(8, std::vector{rows, columns}, std::vector{8 * columns, Index{8}},
                                  std::vector{Index{8}, 8 * pitch});
}

void check_corners(const AddressRelation& relation, const std::vector<Index>& positions,
                   const std::vector<OffsetPair>& pairs) {
  for (std::size_t k = 0; k < positions.size(); ++k) EXPECT_EQ(relation.at(positions[k]), pairs[k]) << positions[k];
}

TEST(HugeRelation, algebra_of_a_transpose) {
  const Clock clock;
  const Index rows = Index{1} << 20, columns = giant / rows, pitch = rows + 3;
  const auto relation = transpose(rows, columns, pitch);
  ASSERT_EQ(relation.elements(), giant);
  check_corners(relation, {0, 1, columns, giant - 1},
                {{0, 0}, {8, 8 * pitch}, {8 * columns, 8}, {8 * (giant - 1), 8 * ((columns - 1) * pitch + rows - 1)}});
  EXPECT_TRUE(relation.is_sorted(PairOrder::source_first));
  EXPECT_FALSE(relation.is_sorted(PairOrder::destination_first));
  const auto sorted = relation.sorted(PairOrder::destination_first);
  EXPECT_TRUE(sorted.is_sorted(PairOrder::destination_first));
  EXPECT_EQ(sorted.at(1), (OffsetPair{8 * columns, 8}));
  EXPECT_TRUE(sorted.same_pairs(relation));
  EXPECT_EQ(relation.inverse().at(columns), (OffsetPair{8, 8 * columns}));
  EXPECT_EQ(relation.inverse().inverse(), relation);
  EXPECT_EQ(relation.canonical(), relation);
  const auto half = relation.assembly();
  EXPECT_EQ(half.at(giant - 1), (OffsetPair{8 * (giant - 1), 8 * (giant - 1)}));
  EXPECT_EQ(relation.disassembly().at(columns), (OffsetPair{8 * columns, 8}));
  EXPECT_LT(relation.workspace_bytes(), 1 << 12);
}

TEST(HugeRelation, cuts_and_joins) {
  const Clock clock;
  const auto relation = transpose(Index{1} << 20, Index{1} << 20, Index{1} << 20);
  const auto cut = relation.restrict(5, giant - 7);
  EXPECT_EQ(cut.elements(), giant - 12);
  EXPECT_EQ(cut.at(0), relation.at(5));
  EXPECT_EQ(cut.at(giant - 13), relation.at(giant - 8));
  EXPECT_EQ(cut.restrict(1, 2).at(0), relation.at(6));
  EXPECT_EQ(cut, relation.restrict(5, giant - 7));
  const auto message = cut.assembly(), arrival = cut.disassembly();
  EXPECT_EQ(message.at(giant - 13), (OffsetPair{relation.at(giant - 8).source, 8 * (giant - 13)}));
  EXPECT_EQ(arrival.at(giant - 13), (OffsetPair{8 * (giant - 13), relation.at(giant - 8).destination}));
  const auto inverse = cut.inverse();
  EXPECT_EQ(inverse.at(3), (OffsetPair{relation.at(8).destination, relation.at(8).source}));
  const auto shifted =
      AddressRelation::strided(8, std::vector{giant}, std::vector<Index>{8}, std::vector<Index>{8}, 0, 8 * giant);
  EXPECT_EQ(AddressRelation::concatenate(std::vector{relation, shifted}).elements(), 2 * giant);
}

TEST(HugeRelation, programs_run_a_stretch) {
  const Clock clock;
  const auto relation = AddressRelation::strided(8, std::vector{giant / 4, Index{4}}, std::vector<Index>{64, 8},
                                                 std::vector<Index>{32, 8});
  const RelationProgram program(relation);
  EXPECT_EQ(program.elements(), giant);
  std::vector<double> source(80), destination(40);
  for (std::size_t k = 0; k < source.size(); ++k) source[k] = double(k);
  program.run(3, 11, reinterpret_cast<std::byte*>(destination.data()),
              reinterpret_cast<const std::byte*>(source.data()));
  for (std::size_t k = 0; k < destination.size(); ++k)
    EXPECT_EQ(destination[k], k >= 3 && k < 11 ? double(k / 4 * 8 + k % 4) : 0.0) << k;
  EXPECT_FALSE(Assembler(relation).program().describe().empty());
}

TEST(HugeRelation, as_nests_they_are_stored_and_read) {
  const Clock clock;
  const auto strided = AddressRelation::strided(8, std::vector{giant / 2, Index{2}}, std::vector<Index>{32, 8},
                                                std::vector<Index>{16, 8});
  const auto turned = transpose(Index{1} << 20, Index{1} << 20, Index{1} << 21);
  for (const auto& relation : {strided, turned, strided.restrict(3, giant - 3)}) {
    const Encoding encoding(relation, EncodingKind::nest);
    EXPECT_LT(encoding.encoded_bytes(), 2000);
    const auto again = Encoding::from_bytes(encoding.to_bytes());
    EXPECT_EQ(again, encoding);
    EXPECT_EQ(again.elements(), relation.elements());
    EXPECT_EQ(again.decode(), relation);
    std::string reason;
    EXPECT_TRUE(again.validate(reason)) << reason;
    EXPECT_EQ(int(Encoding::automatic(relation).kind()), int(EncodingKind::nest));
    EXPECT_EQ(pairs_of(*again.reader(7, 9)), (Pairs{relation.at(7), relation.at(8)}));
  }
  // Three nests whose destinations interleave are as hard to tell apart as their elements are many.
  const auto cut = Encoding(turned.restrict(3, giant - 3), EncodingKind::nest).to_bytes();
  expect_error(ErrorKind::argument, {"cannot be told"}, [&] { Encoding::from_bytes(cut); });
  const auto mixed = AddressRelation::concatenate(
      std::vector{strided, AddressRelation::from_pairs(8, Pairs{{0, -8}, {8, -100}, {0, -50}})});
  EXPECT_EQ(int(Encoding::automatic(mixed).kind()), int(EncodingKind::nest));
}

TEST(HugeRelation, plans_are_told_apart_without_a_look) {
  const Clock clock;
  const std::vector<Index> shape{Index{1} << 21, Index{1} << 21};
  for (const char* text : {"(BLOCK, CYCLIC(3)) on 2x2", "(CYCLIC(5), *) on 3, order=F", "(*, CYCLIC(7)) on 4",
                           "(BLOCK, BLOCK) on 3x2, order=F"})
    for (const char* other : {"(CYCLIC(4), BLOCK) on 2x2", "(*, CYCLIC(2)) on 5, order=F", "(BLOCK, *) on 2"}) {
      const MotionPlan plan(Layout::parse(text, shape), Layout::parse(other, shape), 8);
      for (const auto& motion : plan.sends(0)) {
        const AddressRelation relation(plan.relation(motion));
        EXPECT_EQ(relation.elements(), motion.elements);
        EXPECT_EQ(relation.inverse().inverse(), relation);
        EXPECT_TRUE(relation.sorted(PairOrder::source_first).is_sorted(PairOrder::source_first)) << text << other;
        EXPECT_TRUE(relation.sorted(PairOrder::destination_first).is_sorted(PairOrder::destination_first))
            << text << other;
        EXPECT_EQ(Encoding::from_bytes(Encoding(relation, EncodingKind::nest).to_bytes()).decode(), relation);
      }
    }
}

TEST(HugeRelation, up_to_the_edge_and_no_further) {
  const Clock clock;
  auto line = [](Index n, Index step, Index base = 0, Index element = 8) {
    return AddressRelation::strided(element, std::vector{n}, std::vector{step}, std::vector{step}, base, base);
  };
  const auto longest = line(furthest / 8, 8);
  EXPECT_EQ(longest.source_extent(), (Interval{0, furthest}));
  EXPECT_EQ(longest.at(furthest / 8 - 1).source, furthest - 8);
  EXPECT_EQ(line(furthest / 8, -8, furthest - 8).destination_extent(), (Interval{0, furthest}));
  EXPECT_EQ(line(furthest / 8 * 2, 8, -furthest).source_extent(), (Interval{-furthest, furthest}));
  EXPECT_EQ(line(furthest / 8, 8).sorted(PairOrder::source_first), longest);
  EXPECT_EQ(Encoding::from_bytes(Encoding(longest, EncodingKind::nest).to_bytes()).decode(), longest);
  for (const auto kind : encoding_kinds()) {
    if (kind == EncodingKind::aapair || kind == EncodingKind::packed || kind == EncodingKind::delta) continue;
    EXPECT_EQ(Encoding::from_bytes(Encoding(longest, kind).to_bytes()).decode(), longest) << encoding_name(kind);
  }
  const AddressRelation ends =
      AddressRelation::from_pairs(1, Pairs{{-furthest, furthest - 1}, {furthest - 1, -furthest}, {0, 0}, {1, 7}});
  for (const auto kind : encoding_kinds()) {
    const Encoding encoding(ends, kind);
    EXPECT_EQ(Encoding::from_bytes(encoding.to_bytes()).decode(), ends) << encoding_name(kind);
  }
  EXPECT_EQ(ends.sorted(PairOrder::source_first).at(0).destination, furthest - 1);
  EXPECT_EQ(ends.compose(ends.inverse()).elements(), 4);
  for (const auto& beyond : std::vector<std::function<void()>>{
           [&] { line(furthest / 8 + 1, 8); }, [&] { line(furthest / 8, 8, 1); }, [&] { line(1, 8, furthest); },
           [&] { line(1, 8, INT64_MAX - 8); }, [&] { line(1, 8, INT64_MIN); }, [&] { line(2, INT64_MIN); },
           [&] { line(3, INT64_MAX); }, [&] { line(furthest / 8, 16); }, [&] { line(1, 0, 0, furthest + 1); },
           [&] { line(giant, giant, -furthest); },
           [&] {
             AddressRelation::from_pairs(8, Pairs{{0, INT64_MAX}});
           },
           [&] {
             AddressRelation::from_pairs(8, Pairs{{INT64_MIN, 0}});
           },
           [&] {
             AddressRelation::from_runs(8, {{0, 0, INT64_MAX, 0, 8}});
           },
           [&] {
             AddressRelation::from_runs(8, {{0, 0, 3, INT64_MIN, 8}});
           },
           [&] {
             AddressRelation::from_runs(1, {{0, 0, INT64_MAX, 0, 1}, {0, 0, INT64_MAX, 0, 1}});
           },
           [&] {
             AddressRelation::from_indices(8, std::vector<std::int64_t>{INT64_MAX}, std::vector<std::int64_t>{0});
           },
           [&] {
             AddressRelation::from_segments(1, std::vector<Segment>{{INT64_MAX - 4, 8}}, std::vector<Segment>{{0, 8}});
           }})
    expect_error(ErrorKind::overflow, {}, beyond);
}

/// Axes that go far out and come back: each sum fits, but not every part of it.
TEST(HugeRelation, axes_that_compensate_each_other_do_not_wrap) {
  auto one = [](Index index, Index stride) { return RelationAxis{PairedRuns::run(1, index, index), stride, stride}; };
  for (const auto& axes : std::vector<std::vector<RelationAxis>>{
           {one(furthest, 8), one(-furthest, 7)},
           {one(furthest, 7), one(-furthest, 7), one(furthest, 7), one(-furthest, 7)},
           {one(1, INT64_MIN), one(1, INT64_MAX)},
           {one(0, INT64_MIN), RelationAxis{PairedRuns::run(2), 8, 8}, one(0, INT64_MAX)}}) {
    try {
      const AddressRelation relation(LoopNest(8, axes, -furthest, -furthest));
      EXPECT_EQ(relation.pairs().size(), std::size_t(relation.elements()));
      EXPECT_EQ(relation.canonical(), relation);
    } catch (const Error& error) {
      EXPECT_EQ(int(error.kind()), int(ErrorKind::overflow)) << error.what();
    }
  }
  const LoopNest nothing(8,
                         {{PairedRuns::run(giant), 8, 8}, {PairedRuns::run(0), 8, 8}, {PairedRuns::run(giant), 8, 8}});
  EXPECT_TRUE(nothing.assembly().empty() && nothing.disassembly().empty() && nothing.canonical().empty());
  EXPECT_TRUE(AddressRelation(nothing).empty());
}

/// What would have to be enumerated is refused in words, or takes as long as its runs.
TEST(HugeRelation, destinations_that_cannot_be_told) {
  const Clock clock;
  expect_error(ErrorKind::argument, {"pair 0 (0 -> 0)", "pair 1 (8 -> 0)"},
               [] { AddressRelation::strided(8, std::vector{giant}, std::vector<Index>{8}, std::vector<Index>{0}); });
  expect_error(ErrorKind::argument, {"pair 0 (0 -> 0)", "pair " + std::to_string(giant) + " (8 -> 0)"}, [] {
    AddressRelation::strided(8, std::vector{Index{2}, giant}, std::vector<Index>{8, 8}, std::vector<Index>{0, 16});
  });
  const auto even = AddressRelation::strided(8, std::vector{giant}, std::vector<Index>{8}, std::vector<Index>{16});
  const auto odd = AddressRelation::strided(8, std::vector{giant}, std::vector<Index>{8}, std::vector<Index>{16}, 0, 8);
  expect_error(ErrorKind::memory_limit, {"cannot be told", "combining operation"}, [&] {
    AddressRelation::concatenate(std::vector{even, odd});
  });
  const Reduction add(ElementType::float64, ReduceOp::add);
  const auto sums =
      AddressRelation::strided(8, std::vector{giant}, std::vector<Index>{8}, std::vector<Index>{0}, 0, 0, add);
  EXPECT_EQ(sums.destination_extent(), (Interval{0, 8}));
  EXPECT_EQ(Encoding::from_bytes(Encoding(sums, EncodingKind::nest).to_bytes()).decode(), sums);
}

TEST(HugeRelation, sorting_turns_loops_round) {
  const Clock clock;
  const auto backwards =
      AddressRelation::strided(8, std::vector{giant}, std::vector<Index>{-8}, std::vector<Index>{8}, 8 * giant - 8);
  const auto sorted = backwards.sorted(PairOrder::source_first);
  EXPECT_EQ(sorted.at(0), (OffsetPair{0, 8 * giant - 8}));
  EXPECT_TRUE(sorted.is_sorted(PairOrder::source_first));
  const auto replicated = AddressRelation::strided(8, std::vector{giant, Index{3}}, std::vector<Index>{8, 0},
                                                   std::vector<Index>{8, 8 * giant});
  EXPECT_TRUE(replicated.is_sorted(PairOrder::source_first));
  EXPECT_EQ(replicated.sorted(PairOrder::destination_first).at(1), (OffsetPair{8, 8}));
  const auto outside = AddressRelation::strided(8, std::vector{Index{3}, giant}, std::vector<Index>{0, 8},
                                                std::vector<Index>{8 * giant, 8});
  EXPECT_EQ(outside.sorted(PairOrder::source_first).at(1), (OffsetPair{0, 8 * giant}));
}

}  // namespace
}  // namespace longshore::test

#include "longshore/relations/address_relation.hpp"

#include "support/expect_error.hpp"
#include "support/relations.hpp"

namespace longshore::test {
namespace {

using Blocks = std::vector<OffsetBlock>;
using Segments = std::vector<Segment>;
using Wides = std::vector<std::int64_t>;

const Reduction sum(ElementType::float64, ReduceOp::add);

bool is_one_nest(const AddressRelation& relation) {
  return relation.parts().size() == 1 && std::holds_alternative<LoopNest>(relation.parts()[0]);
}

/// Runs that somebody else gives, good or bad.
struct GivenRuns : RunReader {
  explicit GivenRuns(AddressRelation::RunList list) : runs(std::move(list)) {}
  std::size_t read(std::span<OffsetRun> out) override {
    if (at == runs.size() || out.empty()) return 0;
    out[0] = runs[at++];
    return 1;
  }
  AddressRelation::RunList runs;
  std::size_t at = 0;
};

TEST(AddressRelation, nothing) {
  const AddressRelation none(12);
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.element_bytes(), 12);
  EXPECT_EQ(none.bytes(), 0);
  EXPECT_EQ(none.source_extent(), Interval{});
  EXPECT_EQ(none.destination_extent(), Interval{});
  EXPECT_TRUE(none.pairs().empty() && none.parts().empty());
  EXPECT_TRUE(none.source_segments().empty() && none.destination_segments().empty());
  for (const auto& same :
       {none.inverse(), none.canonical(), none.assembly(), none.disassembly(), none.restrict(0, 0), none.compose(none),
        none.sorted(PairOrder::source_first), AddressRelation::from_pairs(12, Pairs{}),
        AddressRelation::from_blocks(12, Blocks{{4, 5, 0}}),
        AddressRelation::from_segments(12, Segments{{9, 0}}, Segments{}),
        AddressRelation::from_runs(12, {{1, 2, 0, 3, 4}}),
        AddressRelation::strided(12, Wides{3, 0}, Wides{1, 2}, Wides{3, 4}),
        AddressRelation(LoopNest(12, {RelationAxis{}}))}) {
    EXPECT_EQ(same, none);
    EXPECT_TRUE(same.empty());
  }
  EXPECT_TRUE(none.is_sorted(PairOrder::source_first) && none.same_pairs(none));
  EXPECT_EQ(AddressRelation::concatenate({}), AddressRelation());
  EXPECT_EQ(AddressRelation().element_bytes(), 1);
  none.move_plain(nullptr, nullptr);
  expect_error(ErrorKind::argument, {"position 0", "[0, 0)"}, [&] { none.at(0); });
}

TEST(AddressRelation, from_indices) {
  const auto wide = AddressRelation::from_indices(8, Wides{3, 0, 3}, Wides{0, 2, 1});
  EXPECT_EQ(wide.pairs(), (Pairs{{24, 0}, {0, 16}, {24, 8}}));
  EXPECT_EQ(AddressRelation::from_indices(8, std::vector<std::int32_t>{3, 0, 3}, std::vector<std::int32_t>{0, 2, 1}),
            wide);
  EXPECT_EQ(AddressRelation::from_indices(3, Wides{-1}, Wides{-2}).pairs(), (Pairs{{-3, -6}}));
  constexpr std::int32_t last = INT32_MAX;  // 32 bits are the index, not the offset
  EXPECT_EQ(AddressRelation::from_indices(16, std::vector{last}, std::vector{last}).at(0).source, Index{16} * last);
  expect_error(ErrorKind::shape, {"2 source", "1 destination"}, [] {
    AddressRelation::from_indices(8, Wides{1, 2}, Wides{1});
  });
  expect_error(ErrorKind::argument, {"pair 0 (8 -> 24)", "pair 2 (24 -> 24)"}, [] {
    AddressRelation::from_indices(8, Wides{1, 2, 3}, Wides{3, 2, 3});
  });
  expect_error(ErrorKind::overflow, {"product"}, [] { AddressRelation::from_indices(8, Wides{INT64_MAX}, Wides{0}); });
  expect_error(ErrorKind::type, {"0 bytes"}, [] { AddressRelation::from_indices(0, Wides{1}, Wides{1}); });
}

TEST(AddressRelation, from_pairs_runs_and_blocks) {
  const Pairs pairs{{0, 64}, {8, 72}, {16, 80}, {100, 0}};
  const auto relation = AddressRelation::from_pairs(8, pairs);
  EXPECT_EQ(AddressRelation::from_runs(8, {{0, 64, 3, 8, 8}, {100, 0, 1, 77, 99}, {5, 5, 0, 1, 1}}), relation);
  EXPECT_EQ(AddressRelation::from_blocks(8, Blocks{{0, 64, 2}, {16, 80, 1}, {100, 0, 1}}), relation);
  EXPECT_EQ(relation.source_extent(), (Interval{0, 108}));
  EXPECT_EQ(relation.destination_extent(), (Interval{0, 88}));
  EXPECT_EQ(relation.source_segments(), (Segments{{0, 24}, {100, 8}}));
  EXPECT_EQ(relation.destination_segments(), (Segments{{64, 24}, {0, 8}}));
  expect_error(ErrorKind::argument, {"run 1", "-1 elements"}, [] {
    AddressRelation::from_runs(8, {{0, 0, 1, 0, 0}, {8, 8, -1, 0, 0}});
  });
  expect_error(ErrorKind::argument, {"run 0", "-3 elements"}, [] {
    AddressRelation::from_blocks(8, Blocks{{0, 0, -3}});
  });
  expect_error(ErrorKind::type, {"0 bytes"}, [] { AddressRelation::from_pairs(0, Pairs{}); });
  expect_error(ErrorKind::type, {"-4 bytes"}, [] { AddressRelation::from_blocks(-4, Blocks{{0, 0, 1}}); });
}

TEST(AddressRelation, from_segments) {
  const auto relation =
      AddressRelation::from_segments(4, Segments{{100, 8}, {0, 0}, {50, 12}}, Segments{{0, 4}, {0, 0}, {8, 16}});
  EXPECT_EQ(relation.pairs(), (Pairs{{100, 0}, {104, 8}, {50, 12}, {54, 16}, {58, 20}}));
  expect_error(ErrorKind::shape, {"8 bytes", "12"}, [] {
    AddressRelation::from_segments(4, Segments{{0, 8}}, Segments{{0, 12}});
  });
  expect_error(ErrorKind::shape, {"destination segment 1", "6 bytes", "whole elements of 4"}, [] {
    AddressRelation::from_segments(4, Segments{{0, 12}}, Segments{{0, 4}, {8, 6}});
  });
  expect_error(ErrorKind::shape, {"source segment 0", "-8 bytes"}, [] {
    AddressRelation::from_segments(4, Segments{{0, -8}}, Segments{});
  });
  expect_error(ErrorKind::type, {"0 bytes"}, [] {
    AddressRelation::from_segments(0, Segments{{0, 8}}, Segments{{0, 8}});
  });
  expect_error(ErrorKind::type, {"-4 bytes"}, [] {
    AddressRelation::from_segments(-4, Segments{{0, 8}}, Segments{{0, 8}});
  });
}

TEST(AddressRelation, strided) {
  const auto relation = AddressRelation::strided(8, Wides{2, 3}, Wides{8, 16}, Wides{24, 8}, 100, -50);
  EXPECT_EQ(relation.pairs(), (Pairs{{100, -50}, {116, -42}, {132, -34}, {108, -26}, {124, -18}, {140, -10}}));
  EXPECT_EQ(AddressRelation::strided(8, Wides{}, Wides{}, Wides{}, 3, 4).pairs(), (Pairs{{3, 4}}));
  EXPECT_EQ(AddressRelation::strided(8, Wides{4}, Wides{0}, Wides{8}).pairs(),
            (Pairs{{0, 0}, {0, 8}, {0, 16}, {0, 24}}));
  expect_error(ErrorKind::shape, {"2 extents", "1 source strides"}, [] {
    AddressRelation::strided(8, Wides{2, 3}, Wides{8}, Wides{8, 8});
  });
  expect_error(ErrorKind::shape, {"extent -2", "dimension 1"}, [] {
    AddressRelation::strided(8, Wides{2, -2}, Wides{8, 8}, Wides{8, 8});
  });
}

TEST(AddressRelation, from_parts_and_from_readers) {
  const LoopNest nest(8, {{PairedRuns::run(3), 8, 8}});
  const auto relation = AddressRelation::from_parts(
      8, {nest, Pairs{{50, 80}}, AddressRelation::RunList{{0, 100, 2, 8, 8}, {0, 0, 0, 0, 0}}});
  EXPECT_EQ(relation.pairs(), (Pairs{{0, 0}, {8, 8}, {16, 16}, {50, 80}, {0, 100}, {8, 108}}));
  expect_error(ErrorKind::type, {"8-byte elements", "relation of 4-byte"},
               [&] { AddressRelation::from_parts(4, {nest}); });
  expect_error(ErrorKind::argument, {"run 0", "-2 elements"}, [] {
    AddressRelation::from_parts(8, {AddressRelation::RunList{{0, 0, -2, 8, 8}}});
  });
  expect_error(ErrorKind::argument, {"same bytes"}, [&] { AddressRelation::from_parts(8, {nest, Pairs{{0, 16}}}); });

  GivenRuns good({{0, 0, 3, 8, 8}, {24, 24, 1, 0, 0}});
  EXPECT_EQ(AddressRelation::from_reader(8, good), AddressRelation::strided(8, Wides{4}, Wides{8}, Wides{8}));
  auto refused = [](ErrorKind kind, const std::string& words, AddressRelation::RunList runs) {
    GivenRuns reader(std::move(runs));
    expect_error(kind, {words}, [&] { AddressRelation::from_reader(8, reader); });
  };
  refused(ErrorKind::argument, "0 elements", {{0, 0, 0, 8, 8}});
  refused(ErrorKind::argument, "-1 elements", {{0, 0, -1, 8, 8}});
  refused(ErrorKind::overflow, "2^60", {{INT64_MAX - 8, 0, 1, 0, 0}, {INT64_MIN, 8, 1, 0, 0}});
  refused(ErrorKind::overflow, "64 bits", {{0, 0, 3, INT64_MAX, 8}});
  refused(ErrorKind::overflow, "64 bits", {{0, 0, INT64_MAX, 0, 0}, {0, 0, INT64_MAX, 0, 0}});
  GivenRuns none({});
  expect_error(ErrorKind::type, {"0 bytes"}, [&] { AddressRelation::from_reader(0, none); });
}

TEST(AddressRelation, reductions_allow_what_is_otherwise_refused) {
  const auto scatter = AddressRelation::from_indices(8, Wides{0, 1, 2}, Wides{5, 5, 5}, sum);
  EXPECT_EQ(scatter.reduction(), sum);
  EXPECT_EQ(scatter.destination_extent(), (Interval{40, 48}));
  EXPECT_EQ(scatter.disassembly().reduction(), sum);
  EXPECT_TRUE(scatter.assembly().reduction().is_replace());
  EXPECT_EQ(scatter.restrict(1, 3).reduction(), sum);
  EXPECT_EQ(scatter.canonical().reduction(), sum);
  EXPECT_EQ(scatter.sorted(PairOrder::destination_first).reduction(), sum);
  EXPECT_FALSE(scatter.restrict(0, 1) == AddressRelation::from_indices(8, Wides{0}, Wides{5}));
  const auto gather = AddressRelation::from_indices(8, Wides{5, 5, 5}, Wides{0, 1, 2});
  EXPECT_EQ(gather.inverse(sum), scatter);
  EXPECT_EQ(scatter.inverse(), gather);
  expect_error(ErrorKind::argument, {"pair 0 (0 -> 40)", "combining operation"}, [&] { gather.inverse(); });
  expect_error(ErrorKind::type, {"4 bytes", "float64"}, [] { AddressRelation(4, sum); });
  expect_error(ErrorKind::type, {"relation 1", "replace", "add"}, [&] {
    AddressRelation::concatenate(std::vector{scatter, gather});
  });
  expect_error(ErrorKind::type, {"relation 1", "4 bytes"}, [&] {
    AddressRelation::concatenate(std::vector{AddressRelation(8), AddressRelation(4)});
  });
}

TEST(AddressRelation, compose_follows_every_way) {
  // Elements of the second array: 0 comes twice, 1 is not asked for, 2 goes on twice.
  const auto first = AddressRelation::from_indices(8, Wides{10, 11, 12}, Wides{2, 0, 1});
  const auto next = AddressRelation::from_indices(8, Wides{2, 0, 2}, Wides{7, 8, 9});
  EXPECT_EQ(first.compose(next).pairs(), (Pairs{{80, 56}, {80, 72}, {88, 64}}));
  // Elements that straddle two of ours are not ours.
  EXPECT_TRUE(AddressRelation::from_pairs(8, Pairs{{0, 0}, {8, 8}})
                  .compose(AddressRelation::from_pairs(8, Pairs{{4, 0}}))
                  .empty());
  // Of several ways on the order is that of the second relation, whatever stretches it has.
  const auto tangled =
      AddressRelation::from_runs(2, {{-40, -40, 1, 0, 0}, {-40, -42, 1, 0, 0}, {-42, 8, 4, 2, 2}, {-46, 0, 4, 2, 2}});
  EXPECT_EQ(AddressRelation::from_pairs(2, Pairs{{7, -40}}).compose(tangled).pairs(),
            (Pairs{{7, -40}, {7, -42}, {7, 10}, {7, 6}}));
  expect_error(ErrorKind::type, {"8-byte", "4-byte"}, [&] { first.compose(AddressRelation(4)); });
  const auto clash = AddressRelation::from_indices(8, Wides{1, 2}, Wides{0, 0}, sum);
  expect_error(ErrorKind::argument, {"same bytes"}, [&] { first.compose(clash); });
  EXPECT_EQ(first.compose(clash, sum).elements(), 2);
}

TEST(AddressRelation, orders) {
  const auto relation = AddressRelation::from_pairs(8, Pairs{{16, 0}, {0, 24}, {0, 8}, {8, 16}});
  EXPECT_EQ(relation.sorted(PairOrder::source_first).pairs(), (Pairs{{0, 8}, {0, 24}, {8, 16}, {16, 0}}));
  EXPECT_EQ(relation.sorted(PairOrder::destination_first).pairs(), (Pairs{{16, 0}, {0, 8}, {8, 16}, {0, 24}}));
  EXPECT_EQ(relation.sorted(PairOrder::given).pairs(), relation.pairs());
  EXPECT_FALSE(relation.is_sorted(PairOrder::source_first));
  EXPECT_TRUE(relation.is_sorted(PairOrder::given));
  // Loops that are exchanged or turned round stay loops.
  const auto turned = AddressRelation::strided(8, Wides{4, 5}, Wides{8, -32}, Wides{40, 8}, 128);
  const auto sorted = turned.sorted(PairOrder::source_first);
  EXPECT_TRUE(is_one_nest(sorted));
  EXPECT_TRUE(sorted.is_sorted(PairOrder::source_first));
  EXPECT_TRUE(sorted.same_pairs(turned));
}

TEST(AddressRelation, what_repeats_becomes_a_nest) {
  Pairs pairs;
  for (Index j = 0; j < 10; ++j)
    for (Index i = 0; i < 7; ++i) pairs.push_back({8 * (j * 20 + i), 8 * (i * 10 + j)});
  const auto listed = AddressRelation::from_pairs(8, pairs);
  EXPECT_FALSE(is_one_nest(listed));
  EXPECT_TRUE(is_one_nest(listed.canonical()));
  EXPECT_EQ(listed.canonical(), listed);
  EXPECT_LT(listed.canonical().workspace_bytes(), listed.workspace_bytes());
  EXPECT_EQ(AddressRelation::strided(8, Wides{10, 7}, Wides{160, 8}, Wides{8, 80}), listed);
}

TEST(AddressRelation, halves) {
  const auto relation =
      AddressRelation::from_parts(4, {Pairs{{8, 40}, {0, 0}}, LoopNest(4, {{PairedRuns::run(3), 12, 4}}, 100, 200)});
  EXPECT_EQ(relation.assembly().pairs(), (Pairs{{8, 0}, {0, 4}, {100, 8}, {112, 12}, {124, 16}}));
  EXPECT_EQ(relation.disassembly().pairs(), (Pairs{{0, 40}, {4, 0}, {8, 200}, {12, 204}, {16, 208}}));
}

TEST(AddressRelation, positions_are_checked) {
  const auto relation = AddressRelation::from_pairs(8, Pairs{{0, 0}, {8, 8}});
  expect_error(ErrorKind::argument, {"position 2", "[0, 2)"}, [&] { relation.at(2); });
  expect_error(ErrorKind::argument, {"position -1", "[0, 2)"}, [&] { relation.at(-1); });
  expect_error(ErrorKind::argument, {"[1, 3)", "[0, 2)"}, [&] { relation.restrict(1, 3); });
  expect_error(ErrorKind::argument, {"[2, 1)"}, [&] { relation.restrict(2, 1); });
  expect_error(ErrorKind::argument, {"[-1, 1)"}, [&] { relation.reader(-1, 1); });
}

TEST(AddressRelation, move_plain) {
  const auto relation = AddressRelation::from_indices(1, Wides{2, 0}, Wides{0, 3});
  const char source[] = "abc";
  char destination[] = "----";
  relation.move_plain(reinterpret_cast<std::byte*>(destination), reinterpret_cast<const std::byte*>(source));
  EXPECT_STREQ(destination, "c--a");
}

}  // namespace
}  // namespace longshore::test

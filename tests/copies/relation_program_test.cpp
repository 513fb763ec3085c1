#include "longshore/copies/relation_program.hpp"

#include <algorithm>
#include <numeric>

#include "longshore/encodings/encoding.hpp"
#include "support/expect_error.hpp"
#include "support/quick.hpp"
#include "support/relations.hpp"

namespace longshore::test {
namespace {

using Wides = std::vector<std::int64_t>;

/// Every table and both kinds of stores move the same bytes as the pairs say, and no others.
void check(const AddressRelation& relation) {
  const auto pairs = relation.pairs();
  const Index element = relation.element_bytes();
  Field source(pairs, &OffsetPair::source, element, true), expected(pairs, &OffsetPair::destination, element, false);
  const auto before = expected;
  move(pairs, element, relation.reduction(), expected.data(), source.data());
  for (const auto* table : available_kernels())
    for (const auto stores : {Stores::cached, Stores::streaming}) {
      auto moved = before;
      RelationProgram(relation, {stores, table}).run(moved.data(), source.data());
      EXPECT_EQ(moved, expected) << table->name << ' ' << RelationProgram(relation).describe();
    }
}

AddressRelation shuffled(Index element, Index n, Index block, std::uint64_t seed, Index scale = 1, Index base = 0) {
  std::vector<OffsetBlock> blocks;
  std::vector<Index> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), Index{0});
  for (std::size_t k = order.size(); k > 1; --k) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    std::swap(order[k - 1], order[std::size_t(seed >> 33) % k]);
  }
  for (Index k = 0; k < n; ++k)
    blocks.push_back({base + order[std::size_t(k)] * element * block * scale,
                      order[std::size_t(n - 1 - k)] * element * block, block});
  return AddressRelation::from_blocks(element, blocks);
}

TEST(RelationProgram, nothing) {
  const RelationProgram none{AddressRelation(8)};
  EXPECT_EQ(none.describe(), "nothing");
  EXPECT_EQ(none.elements(), 0);
  none.run(nullptr, nullptr);
  none.run(0, 0, nullptr, nullptr);
  Assembler(AddressRelation(8)).run(nullptr, nullptr, 0, 0);
  Disassembler(AddressRelation(8)).run(nullptr, nullptr);
}

TEST(RelationProgram, lists_of_any_block) {
  for (const Index element : {1, 2, 3, 4, 5, 8, 12, 16, 24, 40})
    for (const Index block : {1, 2, 3, 5})
      for (const Index n : {1, 2, 7, 100, quick() ? 263 : 1031}) {
        check(shuffled(element, n, block, 7 * std::uint64_t(n)));
        check(shuffled(element, n, block, 9, 1, -element * block * n / 2));
      }
}

/// A dense message to ascending places, so many of 16 a gap, with elements of `block` each.
AddressRelation ascending(Index element, Index n, Index block, Index gaps, std::uint64_t seed) {
  std::vector<OffsetBlock> blocks;
  Index at = 5;
  for (Index k = 0; k < n; ++k, at += block) {
    for (;; at += block) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      if (Index(seed >> 60) >= gaps) break;
    }
    blocks.push_back({k * block * element, at * element, block});
  }
  return AddressRelation::from_blocks(element, blocks);
}

/// The same in stretches of any length, and all at once.
void check_stretches(const AddressRelation& relation, std::initializer_list<Index> steps) {
  const auto pairs = relation.pairs();
  Field source(pairs, &OffsetPair::source, relation.element_bytes(), true);
  Field expected(pairs, &OffsetPair::destination, relation.element_bytes(), false);
  const auto before = expected;
  move(pairs, relation.element_bytes(), {}, expected.data(), source.data());
  for (const auto* table : available_kernels()) {
    const RelationProgram program(relation, {Stores::cached, table});
    for (const Index step : steps) {
      auto moved = before;
      for (Index at = 0; at < program.elements(); at += step)
        program.run(at, std::min(at + step, program.elements()), moved.data(), source.data());
      EXPECT_EQ(moved, expected) << table->name << ' ' << program.describe() << ", " << step << " at a time";
    }
  }
}

TEST(RelationProgram, ascending_lists_are_marked) {
  for (const Index element : {1, 2, 4, 8, 16})
    for (const Index block : {1, 2})
      for (const Index n : {1, 2, 9, 300, quick() ? 2011 : 20011})
        for (const Index gaps : {0, 3, 10, 14}) {
          const auto relation = ascending(element, n, block, gaps, std::uint64_t(n + gaps));
          check(relation);
          check(relation.inverse());
          if (n < 1000) check_stretches(relation, {1, 3, 7, 64, 1000});
        }
  check_stretches(ascending(8, 20011, 1, 8, 1), {1000, 4096, 7777});
  check_stretches(ascending(4, 20011, 2, 8, 1), {1001, 4096});
  for (const Index element : {4, 8}) {
    const RelationProgram marked(ascending(element, 20000, 1, 8, 3)), wide(ascending(element, 20000, 1, 15, 3));
    EXPECT_EQ(marked.describe().find("marked") != std::string::npos, kernels().expand != nullptr) << marked.describe();
    EXPECT_EQ(wide.describe().find("marked"), std::string::npos) << wide.describe();
  }
}

TEST(RelationProgram, long_packed_lists_are_marked) {
  const Index n = (Index{1} << 20) + 5;
  std::vector<std::int64_t> places;
  for (Index k = 0; k < n; ++k) places.push_back(2 * k + (k % 7 == 3));
  std::vector<std::int64_t> message(places.size());
  std::iota(message.begin(), message.end(), 0);
  const auto relation = Encoding(AddressRelation::from_indices(4, std::span<const std::int64_t>(message),
                                                               std::span<const std::int64_t>(places)),
                                 EncodingKind::packed)
                            .decode();
  const RelationProgram program(relation);
  if (kernels().expand) {
    EXPECT_LT(program.workspace_bytes(), n / 2);
  }
  std::vector<std::uint32_t> from(places.size()), to(std::size_t(2 * n)), expected(to);
  std::iota(from.begin(), from.end(), 1u);
  for (std::size_t k = 0; k < places.size(); ++k) expected[std::size_t(places[k])] = from[k];
  program.run(reinterpret_cast<std::byte*>(to.data()), reinterpret_cast<const std::byte*>(from.data()));
  EXPECT_EQ(to, expected);
}

/// Messages that are streamed as a whole and written with ordinary stores in pieces.
TEST(RelationProgram, long_messages) {
  const Index n = far_bytes / 8 + 1001;
  for (const auto& relation :
       {AddressRelation::strided(8, Wides{n}, Wides{16}, Wides{8}), shuffled(8, n, 1, 5).assembly()}) {
    const auto size = std::size_t(n);
    std::vector<std::uint64_t> source(2 * size), expected(size), whole(expected), pieces(expected);
    std::iota(source.begin(), source.end(), 1u);
    auto bytes = [](auto& v) { return reinterpret_cast<std::byte*>(v.data()); };
    for (const auto& pair : relation.pairs())
      expected[std::size_t(pair.destination / 8)] = source[std::size_t(pair.source / 8)];
    const Assembler assembler(relation);
    assembler.run(bytes(whole), bytes(source));
    EXPECT_EQ(whole, expected);
    for (const Index step : {4096, 100003, int(n - 1)}) {
      std::fill(pieces.begin(), pieces.end(), 0);
      for (Index at = 0; at < n; at += step)
        assembler.run(bytes(pieces) + 8 * at, bytes(source), at, std::min(at + step, n));
      EXPECT_EQ(pieces, expected) << step << " at a time";
    }
  }
}

/// Offsets below the first one, of blocks whose size is no power of two, and not all in whole blocks.
TEST(RelationProgram, lists_whose_first_block_is_not_the_lowest) {
  check(AddressRelation::from_pairs(3, Pairs{{-30, -40}, {-27, -43}, {-24, 0}, {-40, 3}}));
  check(AddressRelation::from_pairs(12, Pairs{{24, 0}, {24, 36}, {24, 72}, {36, 108}, {-40, -40}}));
  check(AddressRelation::from_pairs(3, Pairs{{-40, -40}, {-40, -46}, {-40, -43}, {-40, -49}, {-40, 0}, {-41, 3}}));
  for (Index shift = -13; shift < 14; ++shift) {
    check(AddressRelation::from_pairs(6, Pairs{{100, 100}, {90, 40}, {100 + shift, 20}, {7, 0}}));
    check(AddressRelation::from_pairs(5, Pairs{{100, 100}, {90, 60 + shift}, {100, 20}, {7, 0}}));
  }
}

/// Stretches of a list more than 32 bits apart, of which only one is in memory.
TEST(RelationProgram, lists_further_apart_than_32_bits) {
  const Index far = Index{1} << 33;
  std::vector<double> low(8);
  std::iota(low.begin(), low.end(), 1.0);
  const RelationProgram spread(
      AddressRelation::from_pairs(8, Pairs{{0, 0}, {5 * far, far}, {3 * far, 7 * far}, {8, 16}}));
  EXPECT_EQ(spread.elements(), 4);
  std::vector<double> to(3);
  spread.run(3, 4, reinterpret_cast<std::byte*>(to.data()), reinterpret_cast<const std::byte*>(low.data()));
  EXPECT_EQ(to, (std::vector<double>{0, 0, 2}));
}

TEST(RelationProgram, runs_and_nests) {
  check(AddressRelation::from_runs(8,
                                   {{0, 0, 5, 8, 8}, {100, 48, 3, 16, 24}, {400, 200, 7, -8, 8}, {64, 300, 4, 0, -8}}));
  check(AddressRelation::strided(8, Wides{5, 6, 7}, Wides{8, 40, 240}, Wides{336, 56, 8}));
  check(AddressRelation::strided(3, Wides{9, 5}, Wides{-3, 0}, Wides{-15, 3}));
  check(AddressRelation::strided(16, Wides{33, 65}, Wides{16, 33 * 16}, Wides{65 * 16, 16}));
}

TEST(RelationProgram, says_what_it_does) {
  EXPECT_NE(
      RelationProgram(AddressRelation::strided(8, Wides{4, 4}, Wides{8, 32}, Wides{32, 8})).describe().find("tiles"),
      std::string::npos);
  EXPECT_NE(RelationProgram(shuffled(8, 50, 1, 1)).describe().find("list of 50 x 8-byte blocks"), std::string::npos);
  EXPECT_NE(RelationProgram(shuffled(8, 50, 1, 1).assembly()).describe().find("gather"), std::string::npos);
  EXPECT_NE(RelationProgram(shuffled(8, 50, 1, 1).disassembly()).describe().find("scatter"), std::string::npos);
  const Reduction add(ElementType::float64, ReduceOp::add);
  EXPECT_NE(RelationProgram(AddressRelation::from_indices(8, Wides{0, 1}, Wides{0, 0}, add))
                .describe()
                .find("add in message order"),
            std::string::npos);
}

TEST(RelationProgram, sums_do_not_depend_on_the_form) {
  const Reduction add(ElementType::float64, ReduceOp::add);
  Pairs pairs;
  for (Index k = 0; k < 200; ++k) pairs.push_back({8 * k, 8 * (k % 3)});
  std::vector<double> source(200), expected(3);
  for (std::size_t k = 0; k < source.size(); ++k) source[k] = 1.0 / double(k + 1), expected[k % 3] += source[k];
  const auto listed = AddressRelation::from_pairs(8, pairs, add);
  for (const auto& relation : {listed, listed.canonical()}) {
    std::vector<double> result(3);
    RelationProgram(relation).run(reinterpret_cast<std::byte*>(result.data()),
                                  reinterpret_cast<const std::byte*>(source.data()));
    EXPECT_EQ(result, expected);  // to the last bit
  }
}

TEST(RelationProgram, positions_are_checked) {
  const RelationProgram program(AddressRelation::strided(8, Wides{4}, Wides{8}, Wides{8}));
  for (const auto& [first, last] :
       std::vector<std::pair<Index, Index>>{{0, 5}, {-1, 2}, {3, 2}, {INT64_MIN, INT64_MAX}})
    expect_error(ErrorKind::argument, {"[" + std::to_string(first) + ", " + std::to_string(last) + ")", "[0, 4)"},
                 [&, from = first, to = last] { program.run(from, to, nullptr, nullptr); });
}

}  // namespace
}  // namespace longshore::test

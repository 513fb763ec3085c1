// The encodings in the paper's terms (Dinda & O'Hallaron, section
// 4): sizes of the four redistributions, symbols and keys.
#include "longshore/encodings/encoding.hpp"

#include <random>

#include "longshore/plans/motion_plan.hpp"
#include "support/expect_error.hpp"
#include "support/relations.hpp"

namespace longshore::test {
namespace {

using Kind = EncodingKind;

struct Redistribution {
  const char *source, *destination;
  std::vector<std::size_t> axes;
  Index aablk, dmrle, dmrlec;  ///< bytes of all relations of node 0, as the paper counts them
};

/// The paper's figure of representative redistributions; arrays are column-major, as in Fortran.
const std::vector<Redistribution> redistributions = {
    {"(BLOCK,*) on 4, order=F", "(*,BLOCK) on 4, order=F", {0, 1}, 24576, 49152, 896},
    {"(BLOCK,*) on 4, order=F", "(CYCLIC,*) on 4, order=F", {0, 1}, 6291456, 196608, 2432},
    {"(CYCLIC,*) on 4, order=F", "(BLOCK,*) on 4, order=F", {0, 1}, 6291456, 196608, 2432},
    {"(*,CYCLIC) on 4, order=F", "(CYCLIC,*) on 4", {0, 1}, 6291456, 49152, 896},
};

TEST(Encoding, sizes_of_the_papers_redistributions) {
  const std::vector<Index> shape{1024, 1024};
  for (const auto& entry : redistributions) {
    const MotionPlan plan(Layout::parse(entry.source, shape), Layout::parse(entry.destination, shape), 8, entry.axes);
    auto sums = [&](bool all) {
      std::map<Kind, Index> bytes;
      Index tuples = 0;
      for (const auto& motion : plan.sends(0)) {
        if (!all && motion.destination != 0) continue;
        const auto relation = AddressRelation(plan.relation(motion)).sorted(PairOrder::source_first);
        tuples += relation.elements();
        for (const auto kind : {Kind::aapair, Kind::aablk, Kind::dmrle, Kind::dmrlec, Kind::nest})
          bytes[kind] += Encoding(relation, kind).encoded_bytes();
      }
      EXPECT_EQ(tuples, all ? 262144 : 65536) << entry.source;
      return bytes;
    };
    auto all = sums(true), one = sums(false);
    EXPECT_EQ(all[Kind::aapair], 4194304) << entry.source;
    EXPECT_EQ(one[Kind::aapair], 1048576) << entry.source;
    EXPECT_EQ(all[Kind::aablk], entry.aablk) << entry.source;
    EXPECT_EQ(one[Kind::aablk], entry.aablk / 4) << entry.source;
    EXPECT_EQ(all[Kind::dmrle], entry.dmrle) << entry.source;
    EXPECT_EQ(one[Kind::dmrle], entry.dmrle / 4) << entry.source;
    EXPECT_EQ(all[Kind::dmrlec], entry.dmrlec) << entry.source;
    EXPECT_EQ(one[Kind::dmrlec], entry.dmrlec / 4) << entry.source;
    // "Three to four orders of magnitude".
    EXPECT_GE(all[Kind::aapair], 1000 * all[Kind::dmrlec]) << entry.source;
    EXPECT_LE(all[Kind::aapair], 10000 * all[Kind::dmrlec]) << entry.source;
    EXPECT_LT(one[Kind::nest], 300) << entry.source;
  }
}

/// The difference map and its run-length encoding, from their definitions.
struct Symbol {
  Index source, destination, length;
  auto operator<=>(const Symbol&) const = default;
};
std::vector<Symbol> symbols_of(const Pairs& pairs) {
  std::vector<Symbol> symbols;
  for (std::size_t k = 0; k < pairs.size(); ++k) {
    const auto before = k > 0 ? pairs[k - 1] : OffsetPair{0, 0};
    const Symbol one{pairs[k].source - before.source, pairs[k].destination - before.destination, 1};
    if (!symbols.empty() && symbols.back().source == one.source && symbols.back().destination == one.destination)
      ++symbols.back().length;
    else
      symbols.push_back(one);
  }
  return symbols;
}

/// What an encoding has stored between its header and its checksum.
std::vector<Index> content(const Encoding& encoding) {
  const auto bytes = encoding.to_bytes();
  std::vector<Index> words(bytes.size() / 8 - 4);
  std::memcpy(words.data(), &bytes[24], 8 * words.size());
  return words;
}

TEST(Encoding, dmrle_is_the_greedy_encoding_of_the_difference_map) {
  std::mt19937_64 random(20261124);
  auto draw = [&](Index low, Index high) { return low + Index(random() % std::uint64_t(high - low + 1)); };
  for (int i = 0; i < 2000; ++i) {
    const auto sample = any_distinct(draw);
    const auto symbols = symbols_of(sample.pairs);
    std::vector<Index> expected{Index(symbols.size())};
    for (const auto& symbol : symbols)
      expected.insert(expected.end(), {symbol.source, symbol.destination, symbol.length});
    for (const auto& relation : {sample.relation(), sample.relation().canonical()}) {
      const Encoding dmrle(relation, Kind::dmrle);
      ASSERT_EQ(content(dmrle), expected);
      ASSERT_EQ(dmrle.encoded_bytes(), 24 * Index(symbols.size()));
      ASSERT_EQ(dmrle.symbols(), Index(symbols.size()));
    }
  }
}

/// A relation whose difference map has so many distinct symbols, each of them `times` times.
AddressRelation with_distinct_symbols(Index distinct, Index times = 1) {
  Pairs pairs;
  OffsetPair at{0, 0};
  // Destinations ascend by 8; the source's steps are all different, and the first pair begins a symbol of its own.
  for (Index t = 0; t < times; ++t)
    for (Index k = 0; k < distinct; ++k) {
      at = {at.source + 8 * (k + 1), at.destination + 8};
      pairs.push_back(at);
    }
  return AddressRelation::from_pairs(8, pairs);
}

TEST(Encoding, keys_have_a_power_of_two_bits_and_span_no_words) {
  struct Case {
    Index distinct, bits;
  };
  for (const auto& [distinct, bits] :
       {Case{1, 1}, {2, 1}, {3, 2}, {4, 2}, {5, 4}, {16, 4}, {17, 8}, {256, 8}, {257, 16}, {65536, 16}, {65537, 32}}) {
    const Index times = distinct == 1 ? 1 : distinct < 1000 ? 7 : 1;
    const auto relation = with_distinct_symbols(distinct, times);
    const Encoding dmrlec(relation, Kind::dmrlec);
    const Index keys = distinct * times, per_word = 64 / bits, words = (keys + per_word - 1) / per_word;
    EXPECT_EQ(dmrlec.distinct_symbols(), distinct);
    EXPECT_EQ(dmrlec.symbols(), keys);
    Index entries = 1;
    while (entries < distinct) entries *= 2;
    EXPECT_EQ(dmrlec.encoded_bytes(), entries * 24 + words * 8) << distinct;
    // The stored form: the table, then the keys, the first in the lowest bits.
    const auto stored = content(dmrlec);
    ASSERT_EQ(Index(stored.size()), 1 + 3 * distinct + 1 + words) << distinct;
    const auto symbols = symbols_of(relation.pairs());
    ASSERT_EQ(stored[std::size_t(1 + 3 * distinct)], keys);
    for (Index k = 0; k < keys; ++k) {
      const auto word = std::uint64_t(stored[std::size_t(2 + 3 * distinct + k / per_word)]);
      const auto key = Index(word >> (k % per_word * bits) & (~std::uint64_t(0) >> (64 - bits)));
      ASSERT_LT(key, distinct);
      const auto* entry = &stored[std::size_t(1 + 3 * key)];
      ASSERT_EQ((Symbol{entry[0], entry[1], entry[2]}), symbols[std::size_t(k)]) << distinct << " symbols, key " << k;
    }
    EXPECT_EQ(dmrlec.decode(), relation);
  }
}

TEST(Encoding, blocks_are_as_long_as_they_go) {
  const auto relation =
      AddressRelation::from_pairs(4, Pairs{{0, 100}, {4, 104}, {8, 108}, {16, 112}, {20, 116}, {24, 8}, {23, 0}});
  const Encoding aablk(relation, Kind::aablk);
  EXPECT_EQ(content(aablk), (std::vector<Index>{4, 0, 100, 3, 16, 112, 2, 24, 8, 1, 23, 0, 1}));
  EXPECT_EQ(content(Encoding(relation, Kind::aapair)),
            (std::vector<Index>{7, 0, 100, 4, 104, 8, 108, 16, 112, 20, 116, 24, 8, 23, 0}));
}

/// Huffman's keys are as short as symbols come often.
TEST(Encoding, huffman_of_one_two_and_very_skewed_symbols) {
  for (const Index distinct : {1, 2, 3, 1000}) {
    const auto relation = with_distinct_symbols(distinct, distinct == 1 ? 1 : 3);
    const Encoding huffman(relation, Kind::huffman);
    EXPECT_EQ(huffman.decode(), relation) << distinct;
    EXPECT_EQ(Encoding::from_bytes(huffman.to_bytes()).decode(), relation) << distinct;
    EXPECT_EQ(huffman.distinct_symbols(), distinct);
  }
  // Symbol k comes as often as the k-th Fibonacci number says:
  // the longest code has one bit less than there are symbols.
  std::vector<Index> steps;
  Index a = 1, b = 1;
  constexpr Index skewed = 24;
  for (Index k = 0; k < skewed; ++k) {
    steps.insert(steps.end(), std::size_t(a), k);
    b = std::exchange(a, b) + b;
  }
  std::shuffle(steps.begin(), steps.end(), std::mt19937_64(7));
  AddressRelation::RunList runs;
  Index source = 0, destination = 0;
  for (const Index step : steps) {  // a symbol each: no two alike in turn, for every other one is the same jump back
    source += step, destination += 1;
    runs.push_back({source, destination, 1, 0, 0});
    source += 100, destination += 1;
    runs.push_back({source, destination, 1, 0, 0});
  }
  const auto relation = AddressRelation::from_runs(1, runs);
  const Encoding huffman(relation, Kind::huffman);
  EXPECT_EQ(huffman.distinct_symbols(), skewed + 1);
  const auto stored = content(huffman);
  const Index longest = stored[std::size_t(1 + 3 * huffman.distinct_symbols())];
  EXPECT_EQ(longest, skewed);  // the jump's single bit in front
  EXPECT_EQ(huffman.decode(), relation);
  EXPECT_EQ(Encoding::from_bytes(huffman.to_bytes()).decode(), relation);
  EXPECT_EQ(pairs_of(*huffman.reader(5000, 5100)), slice(relation.pairs(), 5000, 5100));
  EXPECT_LT(huffman.encoded_bytes(), Encoding(relation, Kind::dmrlec).encoded_bytes());
}

TEST(Encoding, names) {
  for (const auto kind : encoding_kinds()) EXPECT_EQ(int(encoding_kind(encoding_name(kind))), int(kind));
  EXPECT_EQ(int(encoding_kind("DmRlEc")), int(Kind::dmrlec));
  expect_error(ErrorKind::argument, {"no encoding 'zip'", "aapair", "nest", "auto"}, [] { encoding_kind("zip"); });
  expect_error(ErrorKind::argument, {"no encoding number 0"}, [] { encoding_name(EncodingKind(0)); });
  expect_error(ErrorKind::argument, {"no encoding number 77"}, [] { Encoding(AddressRelation(8), EncodingKind(77)); });
}

TEST(Encoding, nothing_and_one) {
  for (const auto kind : encoding_kinds()) {
    const Encoding none(AddressRelation(16), kind);
    EXPECT_EQ(none.elements(), 0);
    EXPECT_EQ(none.symbols(), 0) << encoding_name(kind);
    EXPECT_TRUE(none.decode().empty());
    EXPECT_EQ(none.decode().element_bytes(), 16);
    none.assemble(nullptr, nullptr, 0, 0);
    none.disassemble(nullptr, nullptr, 0, 0);
    const Encoding one(AddressRelation::from_pairs(16, Pairs{{-3, 5}}), kind);
    EXPECT_EQ(one.decode().pairs(), (Pairs{{-3, 5}}));
    EXPECT_FALSE(one == none);
    expect_error(ErrorKind::argument, {"[0, 2)", "[0, 1)"}, [&] { one.reader(0, 2); });
    expect_error(ErrorKind::argument, {"[-1, 1)"}, [&] { one.reader(-1, 1); });
    expect_error(ErrorKind::argument, {"[1, 0)"}, [&] { one.reader(1, 0); });
  }
  EXPECT_EQ(Encoding::automatic(AddressRelation(8)).elements(), 0);
}

TEST(Encoding, reductions_are_kept) {
  const Reduction add(ElementType::float64, ReduceOp::add);
  const auto plain = AddressRelation::from_pairs(8, Pairs{{0, 0}, {8, 8}});
  const auto sum = AddressRelation::from_pairs(8, plain.pairs(), add);
  for (const auto kind : encoding_kinds()) {
    EXPECT_FALSE(Encoding(plain, kind) == Encoding(sum, kind));
    EXPECT_EQ(Encoding::from_bytes(Encoding(sum, kind).to_bytes()).reduction(), add);
  }
}

}  // namespace
}  // namespace longshore::test

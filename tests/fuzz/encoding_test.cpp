// Hostile bytes as stored encodings: damaged ones of every kind,
// and bombs; encoding_fuzz.cpp is the same under libFuzzer.
#include "fuzz/encoding.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <random>

#include "support/expect_error.hpp"
#include "support/quick.hpp"

namespace longshore::test {
namespace {

constexpr std::size_t head_words = 3;

struct Dice {
  std::mt19937_64 random{20261123};  // fixed: a failure repeats
  Index operator()(Index low, Index high) { return low + Index(random() % std::uint64_t(high - low + 1)); }
};

/// Every kind of encoding of relations of every sort.
const std::vector<Bytes>& corpus() {
  static const std::vector<Bytes> all = [] {
    Dice draw;
    std::vector<AddressRelation> relations{AddressRelation(8), AddressRelation::from_pairs(3, Pairs{{-7, 100}})};
    relations.push_back(
        AddressRelation::strided(8, std::vector<Index>{5, 7}, std::vector<Index>{56, 8}, std::vector<Index>{8, 40}));
    relations.push_back(LoopNest(
        4, {{PairedRuns(
                 {PairedPeriod{{PairedRun{0, 0, 0, 2, 3, 2, 5, 2}, PairedRun{6, 1, 9, 1, 1, 0, 0, 0}}, 2, 7, 20, 12}}),
             4, 4}}));
    relations.push_back(AddressRelation::from_pairs(4, Pairs{{0, 0}, {8, 0}, {4, 8}, {0, 0}},
                                                    Reduction(ElementType::float32, ReduceOp::add)));
    for (int k = 0; k < 12; ++k) relations.push_back(any_distinct(draw).relation());
    std::vector<Bytes> result;
    for (const auto& relation : relations)
      for (const auto kind : encoding_kinds()) result.push_back(Encoding(relation, kind).to_bytes());
    return result;
  }();
  return all;
}

std::uint64_t word(const Bytes& bytes, std::size_t k) {
  std::uint64_t value;
  std::memcpy(&value, &bytes[8 * k], 8);
  return value;
}
void set_word(Bytes& bytes, std::size_t k, std::uint64_t value) { std::memcpy(&bytes[8 * k], &value, 8); }

/// Whole words, with the checksum put right.
void close(Bytes& bytes) {
  bytes.resize(std::max(bytes.size() / 8 * 8, (head_words + 1) * 8));
  seal(bytes);
}

const std::vector<std::uint64_t> odd_words = [] {
  std::vector<std::uint64_t> words{0, 1, 2, 3, 7, 8, 56, 57, 63, 64, 65, 255, 2048, 2049};
  for (const int bit : {16, 28, 31, 32, 40, 50, 53, 56, 57, 58, 59, 60, 61, 62, 63})
    for (const int by : {-8, -1, 0, 1, 8}) words.push_back((std::uint64_t(1) << bit) + std::uint64_t(std::int64_t(by)));
  for (std::size_t k = words.size(); k-- > 0;) words.push_back(~words[k] + 1);
  return words;
}();

/// A file from words, header first.
Bytes file(EncodingKind kind, Index element, Index elements, const std::vector<Index>& content,
           Reduction reduction = {}) {
  Bytes bytes(8 * (head_words + content.size() + 1));
  const std::uint8_t head[8] = {
      'L', 'S', 'A', 'R', 2, std::uint8_t(kind), std::uint8_t(reduction.op()), std::uint8_t(reduction.type())};
  std::memcpy(bytes.data(), head, 8);
  set_word(bytes, 1, std::uint64_t(element)), set_word(bytes, 2, std::uint64_t(elements));
  for (std::size_t k = 0; k < content.size(); ++k) set_word(bytes, head_words + k, std::uint64_t(content[k]));
  close(bytes);
  return bytes;
}

TEST(StoredEncoding, what_is_written_is_read) {
  for (const auto& bytes : corpus()) {
    auto sealed = bytes;
    seal(sealed);
    ASSERT_EQ(sealed, bytes);  // the checksum of the test is the format's
    ASSERT_TRUE(check_encoding(bytes));
  }
  EXPECT_TRUE(check_encoding(file(EncodingKind::aapair, 8, 2, {2, 0, 8, 8, 0})));
}

TEST(StoredEncoding, any_damage_is_noticed) {
  for (const auto& bytes : corpus()) {
    for (std::size_t n = 0; n < bytes.size(); ++n)
      ASSERT_FALSE(check_encoding({bytes.begin(), bytes.begin() + std::ptrdiff_t(n)}));
    for (std::size_t bit = 0; bit < 8 * bytes.size(); bit += quick() ? 37 : 5) {
      auto damaged = bytes;
      damaged[bit / 8] ^= std::byte(1 << (bit % 8));
      ASSERT_FALSE(check_encoding(damaged)) << bit;
    }
  }
}

TEST(StoredEncoding, survives_every_word_replaced) {
  int good = 0;
  for (const auto& bytes : corpus())
    for (std::size_t k = 0; k + 1 < bytes.size() / 8; ++k) {
      if (k > 40 && k % 7 != 0) continue;
      // Nests with odd counts are looked at for a while before they are refused.
      const std::size_t step = (quick() ? 6 : 1) * (bytes[5] == std::byte(EncodingKind::nest) ? 60 : 6);
      for (std::size_t w = k % step; w < odd_words.size(); w += step) {
        auto changed = bytes;
        set_word(changed, k, odd_words[w]);
        seal(changed);
        good += check_encoding(changed);
      }
    }
  EXPECT_GT(good, 1000);  // some say the same, or something else
}

TEST(StoredEncoding, survives_bits_flipped_and_words_moved) {
  Dice draw;
  const int rounds = quick() ? 5000 : 60000;
  int good = 0;
  for (int i = 0; i < rounds; ++i) {
    auto bytes = corpus()[std::size_t(draw(0, Index(corpus().size()) - 1))];
    for (Index edits = draw(1, 3); edits > 0; --edits) {
      const Index words = Index(bytes.size() / 8), at = draw(0, words - 1);
      switch (draw(0, 6)) {
        case 0: bytes.resize(std::size_t(8 * draw(0, words))); break;
        case 1: bytes[std::size_t(draw(0, Index(bytes.size()) - 1))] ^= std::byte(1 << draw(0, 7)); break;
        case 2:
          bytes.insert(bytes.begin() + 8 * at, 8 * std::size_t(draw(1, 3)), std::byte(draw(0, 1) ? 0 : draw(0, 255)));
          break;
        case 3: bytes.erase(bytes.begin() + 8 * at, bytes.begin() + 8 * std::min(words, at + draw(1, 3))); break;
        case 4: set_word(bytes, std::size_t(at), draw.random()); break;
        case 5: set_word(bytes, std::size_t(at), odd_words[std::size_t(draw(0, Index(odd_words.size()) - 1))]); break;
        default: set_word(bytes, std::size_t(at), word(bytes, std::size_t(draw(0, words - 1)))); break;
      }
      close(bytes);
    }
    good += check_encoding(bytes);
  }
  EXPECT_GT(good, rounds / 100);
}

TEST(StoredEncoding, survives_noise) {
  Dice draw;
  for (int i = 0; i < (quick() ? 5000 : 50000); ++i) {
    std::vector<Index> content(std::size_t(draw(0, 20)));
    for (auto& value : content)
      value = draw(0, 2)   ? draw(0, 8)
              : draw(0, 1) ? Index(draw.random())
                           : Index(odd_words[std::size_t(draw(0, Index(odd_words.size()) - 1))]);
    check_encoding(file(EncodingKind(draw(0, 10)), draw(0, 9), draw(0, 20), content));
  }
}

/// Few bytes that stand for a great deal: told at once or refused, in a moment and little memory.
TEST(StoredEncoding, bombs_do_not_go_off) {
  constexpr Index far = Index{1} << 50, many = Index{1} << 50, more = Index{1} << 27;
  const auto dmrle = EncodingKind::dmrle, nest = EncodingKind::nest, aablk = EncodingKind::aablk;
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  // Many elements at one place; at places that overlap.
  EXPECT_FALSE(check_encoding(file(dmrle, 8, many, {1, 0, 0, many})));
  EXPECT_FALSE(check_encoding(file(dmrle, 8, many, {1, 8, 4, many})));
  EXPECT_TRUE(check_encoding(file(dmrle, 8, many, {1, 8, 8, many})));
  EXPECT_TRUE(check_encoding(file(dmrle, 8, many, {1, 0, 0, many}, Reduction(ElementType::float64, ReduceOp::add))));
  // Two runs that interleave: close to each other, and far.
  for (const Index n : {more, many})
    for (const Index step : {Index{16}, Index{24}, Index{1} << 10})
      for (const Index shift : {Index{8}, Index{4}, Index{13}, Index{11}})
        check_encoding(file(dmrle, 8, 2 * n, {3, 0, step, n, 0, shift - n * step, 1, 0, step, n - 1}));
  check_encoding(file(aablk, 8, 2 * many, {2, 0, 0, many, 0, 8, many}));
  EXPECT_FALSE(check_encoding(file(aablk, 8, 2 * many, {2, 0, 0, many, 0, 8 * many - 1, many})));
  EXPECT_TRUE(check_encoding(file(aablk, 8, 2 * many, {2, 0, 8 * many, many, 0, 0, many})));
  // Loops around loops: in order, overlapping, interleaving, with counts that only just fit.
  auto loops = [&](Index element,
                   const std::vector<std::array<Index, 3>>& axes) {  // (count, source stride, destination stride)
    std::vector<Index> content{1, 0, 0, 0, Index(axes.size())};
    Index elements = 1;
    for (const auto& [count, s, d] : axes) {
      for (const Index x : {s, d, Index{1}, Index{1}, Index{0}, Index{0}, Index{1}, Index{0}, Index{0}, count, Index{1},
                            Index{0}, Index{0}})
        content.push_back(x);
      if (__builtin_mul_overflow(elements, count, &elements)) elements = 0;
    }
    return check_encoding(file(nest, element, elements, content));
  };
  EXPECT_TRUE(loops(8, {{far / 16, 16, 16}, {2, 8, 8}}));
  EXPECT_TRUE(loops(8, {{2, 0, 8}, {far / 16, 16, 16}}));
  EXPECT_FALSE(loops(8, {{far / 16, 16, 16}, {3, 8, 8}}));
  EXPECT_FALSE(loops(8, {{far, 0, 0}, {2, 8, 8}}));
  EXPECT_FALSE(loops(1, {{1 << 20, 1, 3}, {1 << 20, 1, 5}, {2, 1, 7}}));
  EXPECT_FALSE(loops(1, {{1 << 14, 1, 3}, {1 << 14, 1, 5}}));
  EXPECT_FALSE(loops(8, {{far, 1 << 20, 1 << 20}, {far, 1, 1}}));
  EXPECT_FALSE(loops(8, std::vector<std::array<Index, 3>>(64, {2, 8, 0})));
  EXPECT_FALSE(loops(8, std::vector<std::array<Index, 3>>(65, {1, 8, 8})));
  // Axes that go out of 64 bits and come back.
  EXPECT_FALSE(check_encoding(file(nest, 8, 1,
                                   {1,
                                    0,
                                    -(Index{1} << 60),
                                    -(Index{1} << 60),
                                    2,
                                    8,
                                    8,
                                    1,
                                    1,
                                    0,
                                    0,
                                    1,
                                    Index{1} << 60,
                                    Index{1} << 60,
                                    1,
                                    1,
                                    0,
                                    0,
                                    7,
                                    7,
                                    1,
                                    1,
                                    0,
                                    0,
                                    1,
                                    -(Index{1} << 60),
                                    -(Index{1} << 60),
                                    1,
                                    1,
                                    0,
                                    0})));
  rusage after{};
  getrusage(RUSAGE_SELF, &after);
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 600 * 1024);  // KiB
#endif
}

TEST(StoredEncoding, says_what_is_wrong) {
  auto wrong = [](const std::vector<std::string>& words, Bytes bytes) {
    expect_error(ErrorKind::argument, words, [&] { Encoding::from_bytes(bytes); });
  };
  const auto kind = EncodingKind::aapair;
  wrong({"has 0 bytes"}, {});
  wrong({"has 12 bytes", "cut short"}, Bytes(12));
  wrong({"does not begin with LSAR"}, Bytes(48));
  auto bytes = file(kind, 8, 1, {1, 0, 0});
  bytes[4] = std::byte(9);
  seal(bytes);
  wrong({"version 9", "reads version 2"}, bytes);
  bytes = file(kind, 8, 1, {1, 0, 0});
  bytes.resize(bytes.size() - 8);
  seal(bytes);
  wrong({"announces 1 entries", "more than there are"}, bytes);
  bytes = file(kind, 8, 1, {1, 0, 0});
  bytes.back() ^= std::byte(1);
  wrong({"checksum", "damaged"}, bytes);
  wrong({"no encoding number 99"}, file(EncodingKind(99), 8, 1, {1, 0, 0}));
  wrong({"elements of 0 bytes"}, file(kind, 0, 1, {1, 0, 0}));
  wrong({"-1 elements"}, file(kind, 8, -1, {1, 0, 0}));
  wrong({"announces 2 entries", "more than there are"}, file(kind, 8, 1, {2, 0, 0}));
  wrong({"goes on for 8 bytes after its end"}, file(kind, 8, 1, {1, 0, 0, 0}));
  wrong({"has 1 elements and announces 2"}, file(kind, 8, 2, {1, 0, 0}));
  wrong({"pair 0 (0 -> 0) and pair 1 (8 -> 7)", "same bytes"}, file(kind, 8, 2, {2, 0, 0, 8, 7}));
  wrong({"beyond 2^60"}, file(kind, 8, 1, {1, INT64_MAX - 8, 0}));
  wrong({"does not fit in 64 bits"}, file(kind, 8, 1, {1, INT64_MAX, 0}));
  wrong({"block of 0 elements"}, file(EncodingKind::aablk, 8, 0, {1, 0, 0, 0}));
  wrong({"symbol of -3 elements"}, file(EncodingKind::dmrle, 8, 0, {1, 0, 0, -3}));
  wrong({"keys but no symbols"}, file(EncodingKind::dmrlec, 8, 1, {0, 1, 0}));
  wrong({"key 3 at 0", "table of 3"}, file(EncodingKind::dmrlec, 8, 1, {3, 0, 0, 1, 8, 8, 1, 8, 16, 1, 1, 3}));
  wrong({"unknown sort, 9"}, file(EncodingKind::nest, 8, 1, {1, 9, 0, 0}));
  wrong({"no prefix code"}, file(EncodingKind::huffman, 8, 1, {3, 0, 0, 1, 8, 8, 1, 8, 16, 1, 1, 3, 1, 1, 0}));
  wrong({"more codes than symbols"}, file(EncodingKind::huffman, 8, 1, {1, 0, 0, 1, 1, 2, 1, 1, 0}));
  wrong({"stands for nothing"}, file(EncodingKind::huffman, 8, 1, {1, 0, 0, 1, 1, 1, 1, 1, -1}));
  wrong({"codes of 57 bits"}, file(EncodingKind::huffman, 8, 1, [] {
          std::vector<Index> content{1, 0, 0, 1, 57};
          content.resize(70);
          return content;
        }()));
  bytes = file(kind, 8, 1, {1, 0, 0});
  bytes[6] = std::byte(77);
  seal(bytes);
  wrong({"unknown reduction"}, bytes);
  bytes[6] = std::byte(3), bytes[7] = std::byte(ElementType::complex128);
  seal(bytes);
  wrong({"minimum is not defined", "complex128"}, bytes);
  bytes[7] = std::byte(ElementType::float32);
  seal(bytes);
  wrong({"8 bytes", "float32"}, bytes);
}

}  // namespace
}  // namespace longshore::test

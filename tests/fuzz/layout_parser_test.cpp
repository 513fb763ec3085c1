// The layout parser on a fixed corpus and random mutations of it; layout_parser_fuzz.cpp is the same under libFuzzer.
#include "fuzz/layout_parser.hpp"

#include <gtest/gtest.h>

#include <random>

#include "support/quick.hpp"

namespace longshore::test {
namespace {

using namespace std::string_literals;

const std::vector<std::string> corpus = {
    "(BLOCK) on 4",
    "(*) on 1",
    "(BLOCK, *) on 4",
    "(*, *) on REPLICATED(3)",
    "(CYCLIC(64), CYCLIC(64)) on 2x2",
    "(CYCLIC(3), CYCLIC(2)) on 2x2, order=F, rank_order=F, source=1x0, origin=4x1, ranks=[7,3,5,1], ld=99",
    "(GEN_BLOCK(100, 0, 37), *) on 3",
    "(BLOCK(69), CYCLIC) on 2xREPLICATED(2)x5, ranks=4:24",
    "(*, CYCLIC, BLOCK(100)) on 2x3",
    "(BLOCK,BLOCK,BLOCK,BLOCK,*,*,CYCLIC,CYCLIC(2)) on 1x2x1x2x1x2, order=C",
    "(CYCLIC(9223372036854775807)) on 9223372036854775807, origin=9223372036854775807",
    "(BLOCK(4611686018427387904)) on 2, source=1, ld=9223372036854775807",
    "(BLOCK) on 9223372036854775807, ranks=0:9223372036854775807",
    "((((((((((",
    "(BLOCK, *) on 4\0, order=F"s,
    "(BLOCK, *) on 4, ranks=[",
    "(GEN_BLOCK(-1",
    "(\xff\xfe) on \x80",
    "(BLOCK,\t\r\n CYCLIC) on 2x5",  // blanks that no error may pass on to a terminal
};

TEST(LayoutParser, survives_the_corpus_with_every_shape) {
  int layouts = 0;
  for (const auto& text : corpus)
    for (char shape = 0; shape < 12; ++shape) layouts += check_layout_input(shape + text);
  EXPECT_GE(layouts, 12);
}

TEST(LayoutParser, survives_every_prefix) {
  for (const auto& text : corpus)
    for (std::size_t n = 0; n <= text.size(); ++n)
      for (char shape = 0; shape < 12; ++shape) check_layout_input(shape + text.substr(0, n));
}

/// Cuts, doubles, splices and edits: what a mutating fuzzer does, with the notation's own words as its dictionary.
std::string mutate(std::string text, std::mt19937_64& random) {
  static const std::vector<std::string> words = {"(",
                                                 ")",
                                                 ",",
                                                 "*",
                                                 "BLOCK",
                                                 "CYCLIC",
                                                 "GEN_BLOCK",
                                                 "REPLICATED",
                                                 " on ",
                                                 "x",
                                                 "order=",
                                                 "rank_order=",
                                                 "source=",
                                                 "origin=",
                                                 "ld=",
                                                 "ranks=",
                                                 "[",
                                                 "]",
                                                 ":",
                                                 "=",
                                                 "0",
                                                 "1",
                                                 "2",
                                                 "7",
                                                 "-1",
                                                 "9223372036854775807",
                                                 "9223372036854775808",
                                                 "4611686018427387904",
                                                 "99999999999999999999999999",
                                                 "F",
                                                 "\0"s,
                                                 "\xff",
                                                 " "};
  auto below = [&](std::size_t n) { return std::size_t(random() % (n ? n : 1)); };
  for (std::size_t edits = 1 + below(2); edits > 0; --edits) {
    const std::size_t at = below(text.size() + 1), n = below(text.size() - at + 1);
    switch (below(5)) {
      case 0: text.erase(at, n); break;
      case 1: text.insert(at, words[below(words.size())]); break;
      case 2: text.replace(at, std::min<std::size_t>(n, 3), words[below(words.size())]); break;
      case 3: text.insert(at, text.substr(at, n)); break;
      case 4: text = text.substr(0, at) + corpus[below(corpus.size())].substr(below(8)); break;
    }
    if (text.size() > 2000) text.resize(2000);
  }
  return text;
}

TEST(LayoutParser, survives_mutations) {
  std::mt19937_64 random(20261121);  // fixed: a failure repeats
  const int rounds = quick() ? 5000 : 50000;
  int layouts = 0;
  for (int i = 0; i < rounds; ++i) {
    auto text = corpus[random() % corpus.size()];
    for (int generation = 0; generation < 3; ++generation) {
      text = mutate(std::move(text), random);
      const char shape = random() % 2 ? 4 : char(random() % 12);  // most of the corpus has two dimensions
      layouts += check_layout_input(shape + text);
    }
  }
  EXPECT_GT(layouts, rounds / 100);  // most are rejected, but the accepted ones are seen too
}

}  // namespace
}  // namespace longshore::test

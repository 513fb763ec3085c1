// The layout notation: what it accepts, and where its carets point.
#include <sstream>

#include "longshore/layouts/layout.hpp"
#include "support/expect_error.hpp"

namespace longshore {
namespace {

using test::expect_error;
using Shape = std::vector<Index>;

Layout parse(const std::string& text, Shape shape) { return Layout::parse(text, std::move(shape)); }
std::string canonical(const std::string& text, Shape shape) { return parse(text, std::move(shape)).to_string(); }

TEST(Parse, prints_what_it_read) {
  for (const auto* text :
       {"(BLOCK, *) on 4", "(CYCLIC(64), CYCLIC(64)) on 2x2", "(BLOCK, BLOCK(100)) on 2x3", "(*, *) on 1",
        "(*, *) on REPLICATED(3)", "(CYCLIC, *) on 4xREPLICATED(2)", "(GEN_BLOCK(100, 0, 37), *) on 3",
        "(CYCLIC(3), CYCLIC(2)) on 2x2, order=F, rank_order=F, source=1x0, origin=4x1, ranks=[7,3,5,1], ld=99",
        "(BLOCK, *) on 4, ranks=4:8"})
    EXPECT_EQ(canonical(text, {137, 150}), text);
}

TEST(Parse, blanks_and_case_are_free) {
  const auto wanted = parse("(CYCLIC(64), BLOCK) on 2x2, order=F, source=1x0, ranks=4:8", {100, 100});
  EXPECT_EQ(parse("  ( cyclic ( 64 ),block )ON 2X2 ,Order = f,SOURCE=1 x 0 , ranks = 4 : 8  ", {100, 100}), wanted);
  EXPECT_EQ(parse("\t(Cyclic(64),\nBlock) on 2 x 2, ORDER=F, source=1x0, ranks=[4, 5,6 ,7]", {100, 100}), wanted);
}

TEST(Parse, dimensions_find_their_grid_extents) {
  const auto layout = parse("(*, CYCLIC, BLOCK(100)) on 2x3", {5, 7, 300});
  EXPECT_EQ(layout.dimensions()[1].coordinates(), 2);
  EXPECT_EQ(layout.dimensions()[2].coordinates(), 3);
  EXPECT_EQ(layout.processes(), 6);
  const auto copies = parse("(*, CYCLIC) on REPLICATED(5)x2", {5, 7});
  EXPECT_EQ(copies.dimensions()[1].coordinates(), 2);
  EXPECT_EQ(copies.replicas(), 5);
}

TEST(Parse, options_override_the_text) {
  Layout::Options options;
  options.order = Order::C;
  options.ranks = process_ranks(std::vector<Index>{5, 4});
  options.ld = 0;
  const auto layout = Layout::parse("(BLOCK) on 2, order=F, ranks=0:2, ld=77", {10}, options);
  EXPECT_EQ(layout, parse("(BLOCK) on 2, ranks=[5,4]", {10}));
}

/// Where the caret of an error stands: the text from there on.
std::string at_caret(const std::string& message) {
  std::vector<std::string> lines;
  std::istringstream in(message);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  if (lines.size() < 3 || lines.back().find('^') == std::string::npos) return "no caret in: " + message;
  const auto column = lines.back().find('^');
  const auto& shown = lines[lines.size() - 2];
  return column <= shown.size() ? shown.substr(column) : "caret beyond: " + message;
}

TEST(Parse, carets_point_at_the_place) {
  struct Case {
    const char *text, *from, *words;
  };
  const Shape shape{100, 100};
  for (const auto& [text, from, words] : std::initializer_list<Case>{
           {"", "", "begins with '('"},
           {"BLOCK, *) on 4", "BLOCK, *) on 4", "begins with '('"},
           {"(BLOCK, *", "", "',' or ')'"},
           {"(BLOCK; *) on 4", "; *) on 4", "',' or ')'"},
           {"(BLOK, *) on 4", "BLOK, *) on 4", "expected *, BLOCK"},
           {"(BLOCKS, *) on 4", "BLOCKS, *) on 4", "expected *, BLOCK"},
           {"(, *) on 4", ", *) on 4", "expected *, BLOCK"},
           {"(CYCLIC(0), *) on 4", "0), *) on 4", "at least 1"},
           {"(CYCLIC(-2), *) on 4", "-2), *) on 4", "negative"},
           {"(CYCLIC(), *) on 4", "), *) on 4", "expected a number"},
           {"(CYCLIC(64, *) on 4", ", *) on 4", "expected ')'"},
           {"(CYCLIC(9223372036854775808), *) on 4", "9223372036854775808), *) on 4", "64 bits"},
           {"(GEN_BLOCK, *) on 4", ", *) on 4", "needs its sizes"},
           {"(GEN_BLOCK(50, 50), *) on 3", "GEN_BLOCK(50, 50), *) on 3", "2 sizes, its grid extent is 3"},
           {"(GEN_BLOCK(50, 51), *) on 2", "GEN_BLOCK(50, 51), *) on 2", "add up to 101"},
           {"(BLOCK, *)", "", "expected 'on'"},
           {"(BLOCK, *) of 4", "of 4", "expected 'on'"},
           {"(BLOCK, *) on", "", "expected a number"},
           {"(BLOCK, *) on 0", "0", "at least 1"},
           {"(BLOCK, *) on -4", "-4", "negative"},
           {"(BLOCK, *) on 2x2", "2x2", "1 distributed dimension but 2 grid extents"},
           {"(BLOCK, BLOCK) on 4", "4", "2 distributed dimensions but 1 grid extent"},
           {"(BLOCK, BLOCK) on 2xREPLICATED(2)", "2xREPLICATED(2)", "1 grid extent"},
           {"(BLOCK, *) on 4xREPLICATED", "", "number of copies"},
           {"(BLOCK, *) on 4xREPLICATED(0)", "0)", "at least 1"},
           {"(BLOCK, *) on 4 order=F", "order=F", "expected ','"},
           {"(BLOCK, *) on 4,", "", "expected order"},
           {"(BLOCK, *) on 4, colour=F", "colour=F", "expected order"},
           {"(BLOCK, *) on 4, order=G", "G", "expected C or F"},
           {"(BLOCK, *) on 4, order F", "F", "expected '='"},
           {"(BLOCK, *) on 4, order=F, order=F", "order=F", "given twice"},
           {"(BLOCK, *) on 4, ranks=0:4, ranks=[0,1,2,3]", "ranks=[0,1,2,3]", "given twice"},
           {"(BLOCK, *) on 4, ranks=0:3", "0:3", "3 ranks given for a grid of 4"},
           {"(BLOCK, *) on 4, ranks=4:4", "4:4", "ends after it begins"},
           {"(BLOCK, *) on 4, ranks=4", "", "expected ':'"},
           {"(BLOCK, *) on 4, ranks=[0,1", "", "',' or ']'"},
           {"(BLOCK(24), *) on 4", "BLOCK(24), *) on 4", "holds 96 of 100"},
           {"(BLOCK, CYCLIC) on 2x2, source=0x2", "CYCLIC) on 2x2, source=0x2", "dimension 1: source offset 2"},
           {"(*, BLOCK) on 4, origin=3x0", "*, BLOCK) on 4, origin=3x0", "origin"},
       })
    try {
      parse(text, shape);
      ADD_FAILURE() << text << " was parsed";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::layout) << error.what();
      EXPECT_EQ(at_caret(error.what()), from) << error.what();
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos)
          << "no \"" << words << "\" in " << error.what();
    }
}

TEST(Parse, a_long_text_is_shown_around_the_caret) {
  std::string text = "(GEN_BLOCK(";
  for (int i = 0; i < 200; ++i) text += "1, ";
  text += "oops), *) on 200";
  try {
    parse(text, {100, 100});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(at_caret(error.what()), "oops), *) on 200");
    EXPECT_LT(std::string(error.what()).size(), 300u);
  }
}

TEST(Parse, what_is_not_text_does_not_reach_the_terminal) {
  try {
    parse("(BLOCK, *) on 4\x1b[31m", {100, 100});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\x1b'), std::string::npos);
  }
}

TEST(Parse, refuses_layouts_that_disagree_with_the_shape) {
  expect_error(ErrorKind::shape, {"2 dimensions", "shape has 1"}, [] { parse("(BLOCK, *) on 4", {100}); });
  expect_error(ErrorKind::shape, {"extent -1 of dimension 1"}, [] { parse("(BLOCK, *) on 4", {100, -1}); });
}

TEST(Parse, refuses_options_that_disagree_with_the_layout) {
  const auto layout = ErrorKind::layout;
  expect_error(layout, {"source has 2", "1 distributed"}, [] { parse("(BLOCK, *) on 4, source=0x0", {8, 8}); });
  expect_error(layout, {"origin has 1", "2 dimensions"}, [] { parse("(BLOCK, *) on 4, origin=0", {8, 8}); });
  expect_error(layout, {"3 ranks given", "4 processes"}, [] { parse("(BLOCK, *) on 4, ranks=[3,1,2]", {8, 8}); });
  expect_error(layout, {"rank 3 comes twice"}, [] { parse("(BLOCK, *) on 4, ranks=[3,1,2,3]", {8, 8}); });
  expect_error(layout, {"ld 7", "largest local extent 8", "dimension 1"}, [] {
    parse("(BLOCK, *) on 4, ld=7", {8, 8});
  });
  expect_error(layout, {"no meaning for GEN_BLOCK"}, [] { parse("(GEN_BLOCK(4,4), *) on 2, source=1", {8, 8}); });
}

TEST(Parse, hostile_numbers_are_errors) {
  const Index most = INT64_MAX;
  expect_error(ErrorKind::overflow, {"product"}, [&] { parse("(*, *) on 1", {most, most}); });
  expect_error(ErrorKind::overflow, {"product"}, [&] { parse("(BLOCK, BLOCK) on 9223372036854775807x2", {4, 4}); });
  expect_error(ErrorKind::overflow, {}, [&] { parse("(CYCLIC) on 2, origin=9223372036854775807", {4}); });
  expect_error(ErrorKind::layout, {},
               [&] { parse("(BLOCK) on 2, ranks=9223372036854775806:9223372036854775807", {4}); });
  std::string many = "(*";
  for (int i = 0; i < 100; ++i) many += ",*";
  expect_error(ErrorKind::layout, {"more than 64 dimensions"},
               [&] { parse(many + ") on 1", std::vector<Index>(101, 1)); });
  expect_error(ErrorKind::layout, {"longer than"}, [&] { parse(std::string(1 << 25, ' '), {4}); });
}

}  // namespace
}  // namespace longshore

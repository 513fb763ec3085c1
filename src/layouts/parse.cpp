/// The layout notation: a hand-written recursive descent, because its errors must point at the place.
#include <algorithm>
#include <cctype>

#include "longshore/layouts/layout.hpp"

namespace longshore {

namespace {

/// Text as long as a GEN_BLOCK or a rank list of a large machine; more is a mistake or an attack.
constexpr std::size_t longest_text = std::size_t{1} << 24;
/// Enough for any array library, and it keeps hostile texts from costing memory.
constexpr std::size_t most_dimensions = 64;

struct ParsedDistribution {
  enum class Word { star, block, cyclic, general_block } word;
  std::optional<Index> size;
  std::vector<Index> sizes;
  std::size_t place = 0;
};

/// Nothing but what a terminal shows in one column each.
std::string printable(std::string_view text) {
  std::string shown(text);
  for (char& c : shown)
    if (c < ' ' || c > '~') c = '?';
  return shown;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::vector<ParsedDistribution> distributions;
  std::vector<Index> extents;
  std::vector<bool> replicated;
  std::size_t grid_place = 0;
  Layout::Options options;
  std::size_t ranks_place = 0;

  void run() {
    if (text_.size() > longest_text)
      fail(0, "the layout text is longer than " + std::to_string(longest_text) + " characters");
    expect('(', "a layout begins with '(', as in \"(BLOCK, *) on 4\"");
    do {
      if (distributions.size() == most_dimensions)
        fail(at_, "more than " + std::to_string(most_dimensions) + " dimensions");
      distributions.push_back(distribution());
    } while (accept(','));
    expect(')', "expected ',' or ')' after a dimension");
    if (!keyword("on")) fail(at_, "expected 'on' and the process grid, as in \"on 2x2\"");
    blanks();
    grid_place = at_;
    do {
      if (extents.size() == most_dimensions)
        fail(at_, "more than " + std::to_string(most_dimensions) + " grid extents");
      extent();
    } while (times());
    while (accept(',')) option();
    blanks();
    if (at_ != text_.size()) fail(at_, "expected ',' and an option, or the end");
  }

  [[noreturn]] void fail(std::size_t place, const std::string& message) const {
    // Show a window of long texts, so that the caret is on the same screen as its message.
    constexpr std::size_t around = 48;
    const std::size_t first = place > around ? place - around : 0;
    const std::string shown = printable(text_.substr(first, 2 * around));
    const std::string lead = first ? "..." : "";
    throw Error(ErrorKind::layout, "layout: " + message + "\n  " + lead + shown +
                                       (first + shown.size() < text_.size() ? "..." : "") + "\n  " +
                                       std::string(lead.size() + place - first, ' ') + "^");
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;

  void blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool accept(char c) {
    blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c, const std::string& message) {
    if (!accept(c)) fail(at_, message);
  }
  bool times() { return accept('x') || accept('X'); }
  static bool word_character(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
  std::string_view peek_word() {
    blanks();
    std::size_t end = at_;
    while (end < text_.size() && word_character(text_[end])) ++end;
    return text_.substr(at_, end - at_);
  }
  static bool same(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
      return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
    });
  }
  bool keyword(std::string_view name) {
    if (!same(peek_word(), name)) return false;
    at_ += name.size();
    return true;
  }
  Index integer(const char* what) {
    blanks();
    const std::size_t begin = at_;
    Wide value = 0;
    if (at_ < text_.size() && text_[at_] == '-') fail(at_, std::string(what) + " must not be negative");
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
      value = value * 10 + (text_[at_++] - '0');
      if (value > Wide(INT64_MAX)) fail(begin, std::string(what) + " does not fit in 64 bits");
    }
    if (at_ == begin) fail(at_, std::string("expected a number: ") + what);
    return Index(value);
  }
  std::vector<Index> integers(const char* what, char separator) {
    std::vector<Index> result{integer(what)};
    while (separator == 'x' ? times() : accept(separator)) result.push_back(integer(what));
    return result;
  }

  ParsedDistribution distribution() {
    using Word = ParsedDistribution::Word;
    blanks();
    ParsedDistribution result{Word::star, {}, {}, at_};
    if (accept('*')) return result;
    const std::size_t begin = at_;
    if (keyword("GEN_BLOCK")) {
      result.word = Word::general_block;
      expect('(', "GEN_BLOCK needs its sizes, as in GEN_BLOCK(100, 0, 37)");
      result.sizes = integers("a GEN_BLOCK size", ',');
      expect(')', "expected ',' or ')' in GEN_BLOCK's sizes");
      return result;
    }
    if (keyword("BLOCK"))
      result.word = Word::block;
    else if (keyword("CYCLIC"))
      result.word = Word::cyclic;
    else
      fail(begin, "expected *, BLOCK, BLOCK(b), CYCLIC, CYCLIC(b) or GEN_BLOCK(n0, n1, ...)");
    if (accept('(')) {
      blanks();
      const std::size_t place = at_;
      result.size = integer("a block size");
      if (*result.size == 0) fail(place, "a block size must be at least 1");
      expect(')', "expected ')' after the block size");
    }
    return result;
  }

  void extent() {
    blanks();
    std::size_t place = at_;
    const bool copies = keyword("REPLICATED");
    if (copies) {
      expect('(', "REPLICATED needs the number of copies, as in 4xREPLICATED(2)");
      blanks();
      place = at_;
    }
    extents.push_back(integer("a grid extent"));
    if (extents.back() == 0) fail(place, "a grid extent must be at least 1");
    if (copies) expect(')', "expected ')' after the number of copies");
    replicated.push_back(copies);
  }

  Order order() {
    if (keyword("C")) return Order::C;
    if (keyword("F")) return Order::F;
    fail(at_, "expected C or F");
  }

  void option() {
    blanks();
    const std::size_t begin = at_;
    const std::string_view name = peek_word();
    at_ += name.size();
    auto once = [&](bool given) {
      if (given) fail(begin, "'" + std::string(name) + "' is given twice");
      expect('=', "expected '=' after '" + std::string(name) + "'");
    };
    if (same(name, "order")) {
      once(options.order.has_value());
      options.order = order();
    } else if (same(name, "rank_order")) {
      once(options.rank_order.has_value());
      options.rank_order = order();
    } else if (same(name, "source")) {
      once(options.source.has_value());
      options.source = integers("a source offset", 'x');
    } else if (same(name, "origin")) {
      once(options.origin.has_value());
      options.origin = integers("an origin", 'x');
    } else if (same(name, "ld")) {
      once(options.ld.has_value());
      options.ld = integer("ld");
    } else if (same(name, "ranks")) {
      once(options.ranks.has_value());
      blanks();
      ranks_place = at_;
      if (accept('[')) {
        options.ranks = process_ranks(integers("a rank", ','));
        expect(']', "expected ',' or ']' in the list of ranks");
      } else {
        const Index first = integer("the first rank");
        expect(':',
               "expected ':' and the rank after the last one, as in ranks=4:8 or ranks=0:8:2, or a list, as in "
               "ranks=[3,1,0]");
        const Index last = integer("the rank after the last one");
        if (last <= first) fail(ranks_place, "a range of ranks ends after it begins");
        const Index step = accept(':') ? integer("the step between ranks") : 1;
        if (step < 1) fail(ranks_place, "the step between ranks is at least 1");
        if (last > RankMap::largest_world) fail(ranks_place, "ranks are below 2^40");
        options.ranks = RankMap::of_nest(AffineNest::stride(first, ceil_div(last - first, step), step), last);
      }
    } else {
      fail(begin, "expected order, rank_order, source, origin, ranks or ld");
    }
  }
};

}  // namespace

Layout Layout::parse(std::string_view text, std::vector<Index> shape) {
  return parse(text, std::move(shape), Options());
}

Layout Layout::parse(std::string_view text, std::vector<Index> shape, const Options& given) {
  Parser parser(text);
  parser.run();
  using Word = ParsedDistribution::Word;

  const std::size_t n = parser.distributions.size();
  if (n != shape.size())
    throw Error(ErrorKind::shape, "the layout \"" + printable(text.substr(0, 96)) + "\" has " + std::to_string(n) +
                                      " dimension" + (n == 1 ? "" : "s") + ", the shape has " +
                                      std::to_string(shape.size()));
  for (std::size_t d = 0; d < n; ++d)
    if (shape[d] < 0)
      throw Error(ErrorKind::shape,
                  "extent " + std::to_string(shape[d]) + " of dimension " + std::to_string(d) + " is negative");

  auto pick = [](const auto& over, const auto& own) { return over ? over : own; };
  const auto source = pick(given.source, parser.options.source);
  const auto origin = pick(given.origin, parser.options.origin);

  std::vector<std::size_t> plain;
  for (std::size_t g = 0; g < parser.extents.size(); ++g)
    if (!parser.replicated[g]) plain.push_back(g);
  const std::size_t distributed = std::size_t(std::count_if(parser.distributions.begin(), parser.distributions.end(),
                                                            [](const auto& d) { return d.word != Word::star; }));
  const bool lone = distributed == 0 && plain.size() == 1 && parser.extents[plain[0]] == 1;
  if (plain.size() != distributed && !lone)
    parser.fail(parser.grid_place,
                std::to_string(distributed) + " distributed dimension" + (distributed == 1 ? "" : "s") + " but " +
                    std::to_string(plain.size()) + " grid extent" + (plain.size() == 1 ? "" : "s") +
                    "; write one extent for each dimension that is not *, as in \"(BLOCK, CYCLIC) on 2x3\"");
  if (source && source->size() != distributed)
    throw Error(ErrorKind::layout, "source has " + std::to_string(source->size()) + " offsets, the layout has " +
                                       std::to_string(distributed) + " distributed dimensions");
  if (origin && origin->size() != n)
    throw Error(ErrorKind::layout, "origin has " + std::to_string(origin->size()) + " numbers, the array has " +
                                       std::to_string(n) + " dimensions");

  std::vector<Distribution> dimensions;
  std::size_t used = 0;
  for (std::size_t d = 0; d < n; ++d) {
    const auto& parsed = parser.distributions[d];
    const Index first = origin ? (*origin)[d] : 0;
    if (parsed.word == Word::star || parsed.word == Word::general_block)
      if (first != 0)
        parser.fail(parsed.place, "an origin other than 0 has a meaning only for BLOCK and CYCLIC (dimension " +
                                      std::to_string(d) + ")");
    if (parsed.word == Word::star) {
      dimensions.push_back(Distribution::collapsed(shape[d]));
      continue;
    }
    const Index offset = source ? (*source)[used] : 0;
    const Index coordinates = parser.extents[plain[used++]];
    try {
      if (parsed.word == Word::general_block) {
        if (Index(parsed.sizes.size()) != coordinates)
          throw Error(ErrorKind::layout, "GEN_BLOCK has " + std::to_string(parsed.sizes.size()) +
                                             " sizes, its grid extent is " + std::to_string(coordinates));
        if (offset != 0) throw Error(ErrorKind::layout, "a source offset has no meaning for GEN_BLOCK");
        dimensions.push_back(Distribution::general_block(shape[d], parsed.sizes));
      } else if (parsed.word == Word::block) {
        dimensions.push_back(Distribution::block(shape[d], coordinates, parsed.size.value_or(-1), offset, first));
      } else {
        dimensions.push_back(Distribution::cyclic(shape[d], coordinates, parsed.size.value_or(1), offset, first));
      }
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::layout) throw;
      parser.fail(parsed.place, "dimension " + std::to_string(d) + ": " + error.what());
    }
  }

  ProcessGrid grid;
  grid.extents = parser.extents;
  grid.replicated = parser.replicated;
  grid.rank_order = pick(given.rank_order, parser.options.rank_order).value_or(Order::C);
  if (const auto& ranks = given.ranks ? given.ranks : parser.options.ranks) {
    if (!given.ranks && ranks->size() != grid.size())
      parser.fail(parser.ranks_place, std::to_string(ranks->size()) + " ranks given for a grid of " +
                                          std::to_string(grid.size()) + " processes");
    grid.ranks = *ranks;
  }
  return Layout(std::move(dimensions), std::move(grid), pick(given.order, parser.options.order).value_or(Order::C),
                pick(given.ld, parser.options.ld).value_or(0));
}

}  // namespace longshore

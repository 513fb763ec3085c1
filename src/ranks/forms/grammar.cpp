#include "ranks/forms/grammar.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace longshore::ranks {

namespace {

/// A sequence of symbols made shorter round by round: first every run of a symbol becomes a power, then the pairs that
/// come most often become symbols, all those within a factor of two of the most frequent in one go.
class Repair {
 public:
  enum Kind { terminal, pair, power };
  struct Rule {
    Index left, right;
    int kind;
    bool operator==(const Rule&) const = default;
  };

  Index symbol(const Rule& rule) {
    const auto [at, is_new] = numbers_.try_emplace(rule, Index(rules.size()));
    if (is_new) rules.push_back(rule);
    return at->second;
  }

  void shorten(std::vector<Index>& text) {
    gather_powers(text);
    while (round(text)) gather_powers(text);
  }

  std::vector<Rule> rules;

 private:
  struct Hash {
    std::size_t operator()(const Rule& rule) const {
      auto mixed = std::uint64_t(rule.left) * 0x9E3779B97F4A7C15u;
      mixed = (mixed ^ mixed >> 31 ^ std::uint64_t(rule.right) ^ std::uint64_t(rule.kind) << 61) * 0xC2B2AE3D27D4EB4Fu;
      return std::size_t(mixed ^ mixed >> 29);
    }
  };

  void gather_powers(std::vector<Index>& text) {
    std::size_t to = 0;
    for (std::size_t at = 0, end; at < text.size(); at = end) {
      for (end = at + 1; end < text.size() && text[end] == text[at];) ++end;
      const auto times = end - at;
      if (times < 3) {
        for (; at < end; ++at) text[to++] = text[at];
        continue;
      }
      text[to++] = symbol({text[at], Index(times), power});
    }
    text.resize(to);
  }

  bool round(std::vector<Index>& text) {
    std::unordered_map<Rule, Index, Hash> counts;
    Index most = 0;
    for (std::size_t k = 0; k + 1 < text.size(); ++k) {
      const Rule rule{text[k], text[k + 1], pair};
      const Index n = ++counts[rule];
      most = std::max(most, n);
      // "aaa" has one pair that can be replaced, not two.
      if (k + 2 < text.size() && text[k] == text[k + 1] && text[k + 1] == text[k + 2]) ++k;
    }
    // A rule takes about as much as four symbols of the text.
    if (most < 4) return false;
    const Index enough = std::max<Index>(4, most / 2);
    std::size_t to = 0;
    for (std::size_t at = 0; at < text.size();) {
      if (at + 1 < text.size()) {
        const Rule rule{text[at], text[at + 1], pair};
        if (counts[rule] >= enough) {
          text[to++] = symbol(rule);
          at += 2;
          continue;
        }
      }
      text[to++] = text[at++];
    }
    text.resize(to);
    return true;
  }

  std::unordered_map<Rule, Index, Hash> numbers_;
};

/// The last entry that is at most `at`, of an ascending list that begins with 0.
template <class Entry>
Index last_at_most(Index n, Index at, Entry entry) {
  Index low = 0, high = n - 1;
  while (low < high) {
    const Index middle = low + (high - low + 1) / 2;
    if (entry(middle) <= at)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

FixedIntegers above(std::span<const Index> values, Index& least) {
  least = values.empty() ? 0 : *std::min_element(values.begin(), values.end());
  std::vector<Index> rest(values.begin(), values.end());
  for (auto& value : rest) value -= least;
  return FixedIntegers::of(rest);
}

}  // namespace

GrammarForm::GrammarForm(std::span<const AffineRun> runs, bool ascending) : ascending_(ascending) {
  Repair repair;
  std::vector<Index> text;
  Index step = 0, count = 0;
  auto push = [&](Index by, Index times) {
    if (by != step) {
      if (count > 0) text.push_back(repair.symbol({step, count, Repair::terminal}));
      step = by, count = 0;
    }
    count += times;
  };
  for (std::size_t j = 0; j < runs.size(); ++j) {
    if (j > 0) push(runs[j].first - runs[j - 1].last(), 1);
    if (runs[j].count > 1) push(runs[j].step, runs[j].count - 1);
  }
  push(0, 0);
  if (Index(text.size()) > most_terminals)
    throw Error(ErrorKind::argument, "grammar: more than " + std::to_string(most_terminals) + " stretches of steps");
  repair.shorten(text);

  // Rules that were taken up by others and are reached no more are left out.
  const auto& rules = repair.rules;
  std::vector<Index> number(rules.size(), 0);
  for (const Index symbol : text) number[std::size_t(symbol)] = 1;
  for (std::size_t k = rules.size(); k-- > 0;) {
    if (number[k] == 0 || rules[k].kind == Repair::terminal) continue;
    number[std::size_t(rules[k].left)] = 1;
    if (rules[k].kind == Repair::pair) number[std::size_t(rules[k].right)] = 1;
  }
  std::vector<Symbol> symbols;
  for (std::size_t k = 0; k < rules.size(); ++k) {
    if (number[k] == 0) continue;
    const auto& [left, right, kind] = rules[k];
    auto made = [&](Index symbol) -> const Symbol& { return symbols[std::size_t(number[std::size_t(symbol)] - 1)]; };
    switch (kind) {
      case Repair::terminal: symbols.push_back({0, 0, right, checked_mul(left, right)}); break;
      case Repair::power:
        symbols.push_back({number[std::size_t(left)], 0, made(left).steps * right, made(left).way * right});
        break;
      default:
        symbols.push_back({number[std::size_t(left)], number[std::size_t(right)], made(left).steps + made(right).steps,
                           made(left).way + made(right).way});
    }
    number[k] = Index(symbols.size());
  }
  for (auto& symbol : text) symbol = number[std::size_t(symbol)] - 1;
  if (!runs.empty()) first_ = runs[0].first, size_ = 1;
  pack(symbols, text);
}

void GrammarForm::pack(std::span<const Symbol> symbols, std::span<const Index> top) {
  std::vector<Index> left, right, steps, ways, positions, values;
  std::vector<int> depth;
  for (const auto& symbol : symbols) {
    left.push_back(symbol.left), right.push_back(symbol.right), steps.push_back(symbol.steps),
        ways.push_back(symbol.way);
    const int below = std::max(symbol.left > 0 ? depth[std::size_t(symbol.left - 1)] : 0,
                               symbol.right > 0 ? depth[std::size_t(symbol.right - 1)] : 0);
    depth.push_back(below + 1);
    if (below >= most_depth_of_rules) throw Error(ErrorKind::argument, "grammar: rules are nested too deeply");
  }
  Index position = 0, value = 0;
  for (const Index symbol : top) {
    positions.push_back(position), values.push_back(value);
    position = checked_add(position, steps[std::size_t(symbol)]), value = checked_add(value, ways[std::size_t(symbol)]);
  }
  size_ = checked_add(size_, position);
  left_ = FixedIntegers::of(left), right_ = FixedIntegers::of(right), steps_ = FixedIntegers::of(steps);
  ways_ = above(ways, least_way_);
  top_ = FixedIntegers::of(top), positions_ = FixedIntegers::of(positions), values_ = above(values, least_value_);
}

Index GrammarForm::bytes_of(Index rules, Index top, Index size, Index way) {
  const int id = FixedIntegers::bits_of(rules), sums = FixedIntegers::bits_of(size) + FixedIntegers::bits_of(way);
  return ceil_div(rules * (2 * id + sums) + top * (id + sums), 8) + 7 * 8;
}

Index GrammarForm::bytes() const {
  Index bytes = 0;
  for (const auto* list : {&left_, &right_, &steps_, &ways_, &top_, &positions_, &values_})
    bytes += list->memory_bytes();
  return bytes;
}

Index GrammarForm::select(Index i) const {
  if (i == 0) return first_;
  const Index t = last_at_most(top_.size(), i, [&](Index k) { return positions_[k]; });
  Index value = first_ + value_at(t), symbol = top_[t];
  i -= positions_[t];
  while (i > 0) {
    const Index left = left_[symbol] - 1;
    if (left < 0) return value + way_of(symbol) / steps_[symbol] * i;
    const Index steps = steps_[left], right = right_[symbol] - 1;
    if (right < 0) {
      const Index times = i / steps;
      value += times * way_of(left), i -= times * steps;
      symbol = left;
    } else if (i < steps) {
      symbol = left;
    } else {
      value += way_of(left), i -= steps;
      symbol = right;
    }
  }
  return value;
}

Index GrammarForm::rank(Index w) const {
  if (!ascending_) return unknown;
  Index r = w - first_;
  if (r <= 0 || top_.empty()) return r == 0 && size_ > 0 ? 0 : nobody;
  const Index t = last_at_most(top_.size(), r, [&](Index k) { return value_at(k); });
  Index i = positions_[t], symbol = top_[t];
  r -= value_at(t);
  if (r > way_of(symbol)) return nobody;
  while (r > 0) {
    const Index left = left_[symbol] - 1;
    if (left < 0) {
      const Index step = way_of(symbol) / steps_[symbol];
      return r % step == 0 ? i + r / step : nobody;
    }
    const Index way = way_of(left), right = right_[symbol] - 1;
    if (right < 0) {
      const Index times = r / way;
      r -= times * way, i += times * steps_[left];
      symbol = left;
    } else if (r < way) {
      symbol = left;
    } else {
      r -= way, i += steps_[left];
      symbol = right;
    }
  }
  return i;
}

/// Where members go: the first `skip` are left out, at most `left` are written.
struct GrammarForm::Emission {
  Index skip, left, value;
  Index* out;
};

void GrammarForm::emit(Index symbol, Emission& to) const {
  const Index steps = steps_[symbol], way = way_of(symbol);
  if (to.skip >= steps) {
    to.skip -= steps, to.value += way;
    return;
  }
  const Index left = left_[symbol] - 1, right = right_[symbol] - 1;
  if (left < 0) {
    const Index step = way / steps, here = std::min(steps - to.skip, to.left);
    for (Index k = 1; k <= here; ++k) *to.out++ = to.value + step * (to.skip + k);
    to.value += way, to.left -= here, to.skip = 0;
  } else if (right < 0) {
    const Index whole = to.skip / steps_[left];
    to.skip -= whole * steps_[left], to.value += whole * way_of(left);
    for (Index times = steps / steps_[left] - whole; times > 0 && to.left > 0; --times) emit(left, to);
  } else {
    emit(left, to);
    if (to.left > 0) emit(right, to);
  }
}

void GrammarForm::read(Index first, Index n, Index* out) const {
  if (n <= 0) return;
  if (first == 0) *out++ = first_, --n;
  const Index skip = std::max<Index>(first, 1) - 1;
  if (n == 0) return;
  Index t = last_at_most(top_.size(), skip, [&](Index k) { return positions_[k]; });
  Emission to{skip - positions_[t], n, first_ + value_at(t), out};
  for (; to.left > 0; ++t) emit(top_[t], to);
}

void GrammarForm::write(WordWriter& out) const {
  out.index(first_), out.word(ascending_);
  out.index(left_.size());
  for (Index k = 0; k < left_.size(); ++k)
    out.index(left_[k]), out.index(right_[k]), out.index(steps_[k]), out.index(way_of(k));
  out.index(top_.size());
  for (Index t = 0; t < top_.size(); ++t) out.index(top_[t]);
}

GrammarForm GrammarForm::stored(WordReader& in, const FormHead& head) {
  GrammarForm form;
  form.first_ = in.within(0, head.world, "a rank");
  form.ascending_ = in.within(0, 1, "an order") != 0;
  std::vector<Symbol> symbols(std::size_t(in.count(4)));
  for (std::size_t k = 0; k < symbols.size(); ++k) {
    auto& [left, right, steps, way] = symbols[k];
    left = in.within(0, Index(k), "a symbol"), right = in.within(0, Index(k), "a symbol");
    steps = in.within(1, head.size, "a number of steps"), way = in.within(-head.world, head.world, "a way");
    auto part = [&](Index number) { return symbols[std::size_t(number - 1)]; };
    bool good = !form.ascending_ || way > 0;
    if (left == 0)
      good = good && right == 0 && way != 0 && way % steps == 0;
    else if (right == 0)
      good = good && steps % part(left).steps == 0 && Wide(part(left).way) * (steps / part(left).steps) == way;
    else
      good = good && part(left).steps + part(right).steps == steps && part(left).way + part(right).way == way;
    if (!good) in.refuse("has a symbol " + std::to_string(k) + " that does not add up");
  }
  std::vector<Index> top(std::size_t(in.count(1)));
  for (auto& symbol : top) symbol = in.within(0, Index(symbols.size()) - 1, "a symbol");
  form.size_ = head.size > 0;
  form.pack(symbols, top);
  if (form.size_ != head.size || form.ascending_ != head.ascending) in.refuse("has rules of another map");
  return form;
}

Checked GrammarForm::check(const FormHead& head) const {
  if (!ascending_) return Checked::structure;  // each step was seen to be one up
  if (size_ > 0 && select(size_ - 1) >= head.world) throw Error(ErrorKind::argument, "grammar: ranks beyond the world");
  return Checked::all;
}

}  // namespace longshore::ranks

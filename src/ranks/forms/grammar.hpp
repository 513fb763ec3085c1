/// The steps between members as a grammar with rules of runs (Re-Pair): what repeats is kept once, wherever it begins.
#pragma once

#include "ranks/forms/common.hpp"

namespace longshore::ranks {

/// Terminals are `count` steps of the same size. A rule is two symbols one after the other, or one symbol a number of
/// times. Each symbol knows how many steps it stands for and how far they go.
class GrammarForm {
 public:
  static constexpr std::string_view name = "grammar";
  static constexpr Index most_terminals = Index{1} << 22;

  /// Of the runs that the members are, in order.
  GrammarForm(std::span<const AffineRun> runs, bool ascending);
  static Index bytes_of(Index rules, Index top, Index size, Index way);

  Index size() const { return size_; }
  Index select(Index i) const;
  Index rank(Index w) const;
  void read(Index first, Index n, Index* out) const;
  Index bytes() const;
  void write(WordWriter& out) const;
  static GrammarForm stored(WordReader& in, const FormHead& head);
  Checked check(const FormHead& head) const;

 private:
  /// left and right count symbols from 1: a terminal has no left one, a power no right one. What else there is to know
  /// of them, the step of a terminal and the times of a power, follows from `steps` and `way`.
  struct Symbol {
    Index left, right, steps, way;
  };

  GrammarForm() = default;
  /// Each symbol comes after those it is made of.
  void pack(std::span<const Symbol> symbols, std::span<const Index> top);
  Index way_of(Index symbol) const { return ways_[symbol] + least_way_; }
  Index value_at(Index t) const { return values_[t] + least_value_; }
  struct Emission;
  void emit(Index symbol, Emission& to) const;

  static constexpr int most_depth_of_rules = 1000;

  bool ascending_ = true;
  Index first_ = 0, size_ = 0, least_way_ = 0, least_value_ = 0;
  FixedIntegers left_, right_, steps_, ways_;
  FixedIntegers top_;                 ///< the start rule
  FixedIntegers positions_, values_;  ///< steps and way before each of its symbols
};

}  // namespace longshore::ranks

/// How to add a representation of rank maps: derive a `CustomForm`, which is what is kept of one map, and a
/// `RankModule`, which says what that would cost, makes it and reads it back; then name the module in
/// `Strategy::modules`.
///
///   struct Pairs : RankModule { ... } pairs;
///   Strategy strategy;
///   strategy.modules = standard_modules(), strategy.modules.push_back(&pairs);
///   const auto map = RankMap::of(members, world, strategy);
///
/// `examples/cpp/rank_module.cpp` is one in full. The thesis's representations, in `src/ranks/thesis/`, are others.
#pragma once

#include <optional>

#include "longshore/ranks/strategy.hpp"

namespace longshore {

/// A list of firsts, each of which begins the same inner loops.
struct OuterInner {
  AffineNest inner;  ///< from 0
  Index base, unit;  ///< the firsts are base + unit * outer
  std::vector<Index> outer;
  std::shared_ptr<const Analysis> outer_analysis;
};

/// What one pass over the members finds; from it, every module says what it would cost.
struct Analysis {
  Index size = 0, world = 0;
  Index lowest = 0, highest = 0;           ///< member ranks
  bool ascending = true;                   ///< strictly
  Index least_step = 0, largest_step = 0;  ///< of a member from the one before
  Index ranges = 0;                        ///< maximal runs of consecutive ascending ranks
  Index ascents = 0;                       ///< maximal ascending runs
  Index breaks = 0;                        ///< members whose step is not that of the member before, about
  bool enumerated = false;                 ///< each member was looked at; if not, the two below are not known
  Index linear_bytes = 0;                  ///< in blocks of 128 along a line each
  Index chunk_bytes = 0;                   ///< in chunks of 4096, each as a simple module has it
  /// The members as runs, in order; empty where there would be many.
  std::vector<AffineRun> runs;
  std::optional<AffineNest> nest;
  std::optional<OuterInner> product;
  /// Whether stretches of steps repeat: what only then may pay is looked into only then.
  bool repetitive = false;
  Index grammar_rules = 0,
        grammar_top = 0;  ///< estimated symbols of a grammar of the steps, and of its start rule; 0: not known
  Index dag_nodes = 0, dag_leaves = 0;      ///< of the decision diagram; 0: not known
  std::shared_ptr<const RankForm> diagram;  ///< it was made to be counted, and is there for who takes it

  Index span() const { return size == 0 ? 0 : highest - lowest + 1; }
};

/// One pass. Throws `Error(argument)` where a rank is outside [0, world) or comes twice.
Analysis analyse(const Members& members, Index world);
/// The same without the search for ranks that come twice, which ascending ones do not need.
Analysis analyse_order(const Members& members, Index world);

/// What a module keeps of one map, as an immutable value. Many threads ask at once.
class CustomForm : public RankForm {
 public:
  virtual ~CustomForm() = default;
  /// The name of the module that reads it back.
  virtual std::string_view name() const = 0;
  virtual Index size() const = 0;
  /// SELECT; 0 <= i < size().
  virtual Index select(Index i) const = 0;
  /// RANK: where a rank of the world is, `nobody`, or nothing where the form cannot say. Then ascending ranks are
  /// bisected, and others looked up in the map's index or looked through.
  virtual std::optional<Index> rank(Index w) const;
  /// Members [first, first + n) in order, where that is faster than one by one.
  virtual void read(Index first, Index n, Index* out) const;
  /// What is kept, this object with it.
  virtual Index bytes() const = 0;
  /// What `RankModule::read` makes the form of again, or nothing: then the map is stored as a list.
  virtual std::optional<std::vector<std::uint64_t>> words() const;
  /// Whether it is known without a look at each member that they are distinct ranks of [0, world), ascending where that
  /// is said; if not, they are looked at. Throws `Error(argument)` saying what is wrong. Asked of what `read` made.
  virtual bool check(Index world, bool ascending) const;
};

/// A way to represent maps.
class RankModule {
 public:
  virtual ~RankModule() = default;
  virtual std::string_view name() const = 0;
  /// Of these members, whose analysis is there: `Estimate::impossible`, or `Estimate::of`. Called for every map that
  /// the module might be taken for: what looks at the members themselves should know when not to.
  virtual Estimate estimate(const Members& members, const Analysis& analysis) const = 0;
  /// Throws `Error(argument)` where it is not possible after all.
  virtual RankMap::Form build(const Members& members, const Analysis& analysis) const = 0;
  /// The form of `size` members that `CustomForm::words` gave these words of. They may be anybody's: a length, a rank
  /// or a link is not to be trusted, but members are looked at afterwards unless `CustomForm::check` has seen to it.
  /// Throws `Error(argument)` saying what is wrong. Those who have no words have nothing to read.
  virtual std::shared_ptr<const CustomForm> read(std::span<const std::uint64_t> words, Index size, Index world) const;

 protected:
  static RankMap::Form custom(std::shared_ptr<const CustomForm> form) { return {std::move(form)}; }
};

}  // namespace longshore

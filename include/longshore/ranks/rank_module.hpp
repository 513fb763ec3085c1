/// How representations are chosen: one analysis of a map, modules
/// that estimate from it, strategies that weigh what they say.
#pragma once

#include <functional>
#include <optional>

#include "longshore/ranks/rank_map.hpp"

namespace longshore {

/// What a map is made from: a list, runs, or another map; read in pieces, never copied.
class Members {
 public:
  explicit Members(std::span<const Index> list) : list_(list), size_(Index(list.size())) {}
  explicit Members(std::span<const AffineRun> runs);
  explicit Members(const RankMap& map) : map_(&map), size_(map.size()) {}

  Index size() const { return size_; }
  void read(Index first, Index n, Index* out) const;
  /// The runs it was given as, or none.
  std::span<const AffineRun> runs() const { return runs_; }
  /// The map it was given as, or nullptr.
  const RankMap* map() const { return map_; }
  /// The list it was given as, or none.
  std::span<const Index> list() const { return list_; }
  /// visit(first, values) for pieces of 4096 members, the last perhaps shorter.
  template <class Visit>
  void each_piece(Visit visit) const {
    constexpr Index piece = 4096;
    std::vector<Index> room(list_.empty() ? std::size_t(std::min(piece, size_)) : 0);
    for (Index first = 0; first < size_; first += piece) {
      const Index n = std::min(piece, size_ - first);
      if (room.empty()) {
        visit(first, list_.subspan(std::size_t(first), std::size_t(n)));
      } else {
        read(first, n, room.data());
        visit(first, std::span<const Index>(room.data(), std::size_t(n)));
      }
    }
  }

 private:
  std::span<const Index> list_;
  std::span<const AffineRun> runs_;
  std::vector<Index> starts_;  ///< the position of each run
  const RankMap* map_ = nullptr;
  Index size_;
};

struct Analysis;

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
  std::vector<Index> sample;  ///< up to 1000 members from the middle
  /// Whether stretches of steps repeat: what only then may pay is looked into only then.
  bool repetitive = false;
  Index grammar_rules = 0,
        grammar_top = 0;  ///< estimated symbols of a grammar of the steps, and of its start rule; 0: not known
  Index dag_nodes = 0, dag_leaves = 0, paths = 0;  ///< of the decision diagram, and its paths; 0: not known
  std::shared_ptr<const RankForm> diagram;         ///< it was made to be counted, and is there for who takes it

  Index span() const { return size == 0 ? 0 : highest - lowest + 1; }
};

/// One pass. Throws `Error(argument)` where a rank is outside [0, world) or comes twice.
Analysis analyse(const Members& members, Index world);
/// The same without the search for ranks that come twice, which ascending ones do not need.
Analysis analyse_order(const Members& members, Index world);

/// What a module says a map would cost.
struct Estimate {
  bool possible = false;
  double bytes = 0;
  double select_ns = 0, rank_ns = 0;  ///< independent questions at random; `rank_ns` negative: an index or a search
  std::string note;                   ///< why it is not possible, or what it found
};

/// What a module of a user keeps: answers through virtual calls, which those of the library are spared.
class CustomForm {
 public:
  virtual ~CustomForm() = default;
  virtual Index size() const = 0;
  virtual Index select(Index i) const = 0;
  /// Where a rank is, `nobody`, or nothing where the form cannot say.
  virtual std::optional<Index> rank(Index w) const = 0;
  virtual Index bytes() const = 0;
  virtual std::string_view name() const = 0;
};

/// A way to represent maps. To add one, derive a class and name it in `Strategy::modules`.
class RankModule {
 public:
  virtual ~RankModule() = default;
  virtual std::string_view name() const = 0;
  virtual Estimate estimate(const Analysis& analysis) const = 0;
  /// Throws `Error(argument)` where it is not possible after all.
  virtual RankMap::Form build(const Members& members, const Analysis& analysis) const = 0;

 protected:
  static RankMap::Form custom(std::shared_ptr<const CustomForm> form);
};

using Modules = std::vector<const RankModule*>;

/// Those that a map is made with if nothing else is said.
const Modules& standard_modules();
/// Those of the thesis, as it defines them; and the int array, their yardstick.
const Modules& thesis_modules();
/// All that there are.
const Modules& all_modules();
/// By name. Throws `Error(argument)` naming those there are.
const RankModule& rank_module(std::string_view name);

/// What is to be small: alpha log(time) + (1 - alpha) log(space), the thesis's hybrid; time and space are its ends.
struct Strategy {
  double alpha = 0.25;
  Modules modules;  ///< none: the standard ones
  LookupKind lookup = LookupKind::none;

  static Strategy time() { return {1.0, {}, LookupKind::none}; }
  static Strategy space() { return {0.0, {}, LookupKind::none}; }
  static Strategy hybrid(double alpha = 0.25) { return {alpha, {}, LookupKind::none}; }
  /// Only this module. Throws `Error(argument)` where there is none of that name.
  static Strategy only(std::string_view module) { return {0.25, {&rank_module(module)}, LookupKind::none}; }
  double score(const Estimate& estimate) const;
};

/// What each module would cost, and which one a strategy takes.
struct Explanation {
  struct Row {
    std::string module;
    Estimate estimate;
    double score;
    bool chosen;
  };
  Index size, world;
  std::string structure;  ///< in words
  std::vector<Row> rows;  ///< the best score first
  std::string to_string() const;
};

Explanation explain(const Members& members, Index world, const Strategy& strategy = {});
Explanation explain(const RankMap& map, const Strategy& strategy = {});
/// The map in the representation that another strategy takes.
RankMap rebuilt(const RankMap& map, const Strategy& strategy);

}  // namespace longshore

/// `Strategy`: how the representation of a rank map is chosen. Modules estimate what theirs would cost, before anything
/// is built; the strategy weighs time and space, and `explain` shows what it saw.
#pragma once

#include "longshore/ranks/members.hpp"

namespace longshore {

struct Analysis;

/// What a module says that a map would cost.
struct Estimate {
  bool possible = false;
  double bytes = 0;
  double select_ns = 0, rank_ns = 0;  ///< independent questions at random; `rank_ns` negative: an index or a search
  std::string note;                   ///< why it is not possible, or what it found

  static Estimate impossible(std::string why) { return {false, 0, 0, 0, std::move(why)}; }
  /// `bytes` are all that is kept, the form itself and `RankForm::counts_bytes` too. The nanoseconds are those of bytes
  /// that are in the first cache; what the way to others adds, `accesses` times one after the other, is added here.
  /// `rank_ns` negative: the form has no RANK, so that ascending ranks are bisected.
  static Estimate of(const Analysis& analysis, Index bytes, double select_ns, double rank_ns, int accesses,
                     std::string note = {});
};

/// Those that a map is made with if nothing else is said.
const Modules& standard_modules();
/// Those of the thesis, as it defines them; and the int array, their yardstick.
const Modules& thesis_modules();
/// All that come with the library.
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

// Which module a map is made with, and the words that explain it.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "ranks/forms.hpp"
#include "ranks/make.hpp"
#include "ranks/runs.hpp"

namespace longshore {

double Strategy::score(const Estimate& estimate) const {
  return alpha * std::log2(std::max(estimate.select_ns, 0.1)) + (1 - alpha) * std::log2(std::max(estimate.bytes, 1.0));
}

namespace ranks {

namespace {

struct Candidate {
  const RankModule* module;
  Estimate estimate;
  double score;
};

void check_alpha(const Strategy& strategy) {
  if (!(strategy.alpha >= 0 && strategy.alpha <= 1))
    throw Error(ErrorKind::argument, "alpha is " + std::to_string(strategy.alpha) + "; it is between 0 and 1");
}

/// The best score first; what is not possible last.
std::vector<Candidate> candidates(const Members& members, const Analysis& analysis, const Strategy& strategy) {
  check_alpha(strategy);
  std::vector<Candidate> list;
  for (const auto* module : strategy.modules.empty() ? standard_modules() : strategy.modules) {
    auto estimate = module->estimate(members, analysis);
    const double score = estimate.possible ? strategy.score(estimate) : INFINITY;
    list.push_back({module, std::move(estimate), score});
  }
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.score < b.score; });
  return list;
}

}  // namespace

RankMap make_analysed(const Members& members, const Analysis& analysis, const Strategy& strategy) {
  std::string why;
  for (const auto& candidate : candidates(members, analysis, strategy)) {
    const std::string name(candidate.module->name());
    if (!candidate.estimate.possible) {
      why += (why.empty() ? "" : "; ") + name + ": " + candidate.estimate.note;
      continue;
    }
    try {
      const RankMap map(candidate.module->build(members, analysis), analysis.world, analysis.ascending);
      if (map.size() != analysis.size)
        throw Error(ErrorKind::argument, name + " made a map of " + std::to_string(map.size()) + " members");
      return strategy.lookup == LookupKind::none ? map : map.with_lookup(strategy.lookup);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::argument) throw;
      why += (why.empty() ? "" : "; ") + std::string(error.what());
    }
  }
  if (analysis.size == 0) return RankMap(AffineNest(), analysis.world, true);
  throw Error(ErrorKind::argument, "none of the representations can hold the map: " + why);
}

RankMap make_checked(const Members& members, Index world, const Strategy& strategy) {
  check_alpha(strategy);
  // Nothing is better for a stride, and most lists that are none are seen to be none at their first members.
  if (strategy.modules.empty() || strategy.modules == standard_modules())
    if (auto stride = stride_of(members, world)) return RankMap::of_nest(std::move(*stride), world);
  return make_analysed(members, analyse(members, world), strategy);
}

RankMap make_trusted(const Members& members, Index world, const Strategy& strategy) {
  return make_analysed(members, analyse_order(members, world), strategy);
}

RankMap flattened(const RankMap& map, const Strategy& strategy) {
  constexpr Index most = Index{1} << 30, most_runs = Index{1} << 20;
  if (form_of<ChildForm>(map) == nullptr) return map;
  return map.size() > most && !known_runs(map, most_runs) ? map : rebuilt(map, strategy);
}

}  // namespace ranks

namespace {

std::string structure_of(const Analysis& a) {
  if (a.size == 0) return "no members";
  std::string text =
      a.ascending ? "ascending"
                  : "a list of " + std::to_string(a.ascents) + (a.ascents == 1 ? " ascending run" : " ascending runs");
  text += ", ranks " + std::to_string(a.lowest) + " to " + std::to_string(a.highest) + ", ";
  text += std::to_string(a.ranges) + (a.ranges == 1 ? " range" : " ranges");
  if (a.nest)
    text += a.nest->depth() == 1 ? ", a stride" : ", " + std::to_string(a.nest->depth()) + " nested loops";
  else if (!a.runs.empty())
    text += ", " + std::to_string(a.runs.size()) + " affine runs";
  return text + (a.repetitive && !a.nest ? ", repetitive" : "");
}

std::string scaled(double value) {
  char text[32];
  const char* units[] = {"", "K", "M", "G", "T"};
  int unit = 0;
  for (; value >= 9999.5 && unit < 4; ++unit) value /= 1000;
  std::snprintf(text, sizeof text, value < 99.95 && unit == 0 ? "%.1f%s" : "%.0f%s", value, units[unit]);
  return text;
}

}  // namespace

Explanation explain(const Members& members, Index world, const Strategy& strategy) {
  const auto analysis = analyse(members, world);
  Explanation out{analysis.size, world, structure_of(analysis), {}};
  for (auto& [module, estimate, score] : ranks::candidates(members, analysis, strategy))
    out.rows.push_back({std::string(module->name()), estimate, score, false});
  if (!out.rows.empty() && out.rows[0].estimate.possible) out.rows[0].chosen = true;
  return out;
}

Explanation explain(const RankMap& map, const Strategy& strategy) {
  return explain(Members(map), map.world(), strategy);
}

RankMap rebuilt(const RankMap& map, const Strategy& strategy) {
  ranks::check_alpha(strategy);
  // Loops are not enumerated to find out that they are loops.
  const auto& modules = strategy.modules.empty() ? standard_modules() : strategy.modules;
  if (map.nest() != nullptr && std::find(modules.begin(), modules.end(), &rank_module("nest")) != modules.end())
    return map;
  return ranks::make_trusted(Members(map), map.world(), strategy);
}

std::string Explanation::to_string() const {
  std::string text = std::to_string(size) + " members of a world of " + std::to_string(world) + ": " + structure + "\n";
  for (const auto& row : rows) {
    std::string line = std::string(row.chosen ? "* " : "  ") + row.module;
    line.resize(std::max<std::size_t>(line.size(), 14), ' ');
    if (row.estimate.possible) {
      char numbers[96];
      std::snprintf(numbers, sizeof numbers, " %9s bytes %8s ns %9s ns", scaled(row.estimate.bytes).c_str(),
                    scaled(row.estimate.select_ns).c_str(),
                    row.estimate.rank_ns < 0 ? "index" : scaled(row.estimate.rank_ns).c_str());
      line += numbers;
    }
    if (!row.estimate.note.empty()) line += "  " + row.estimate.note;
    text += line + "\n";
  }
  return text;
}

}  // namespace longshore

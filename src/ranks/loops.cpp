// Runs as nested loops, or as a list of firsts with the same loops inside.
#include <algorithm>
#include <numeric>

#include "ranks/analysis.hpp"
#include "ranks/runs.hpp"

namespace longshore::ranks {

namespace {

/// Runs of one step cut to pieces of equal count, so that two that happen to continue one another are two again. Long
/// runs that share no long piece stay as they are: the pieces would be many more than the runs.
bool cut_to_equal(std::vector<AffineRun>& runs) {
  Index count = 0, pieces_in_all = 0;
  for (const auto& run : runs) count = std::gcd(count, run.step == runs[0].step ? run.count : 1);
  for (const auto& run : runs) pieces_in_all += run.count / std::max<Index>(count, 1);
  if (count < 2 || pieces_in_all > 4 * Index(runs.size()) + 1024) return false;
  std::vector<AffineRun> pieces;
  for (const auto& run : runs)
    for (Index k = 0; k < run.count; k += count) pieces.push_back({run.first + k * run.step, run.step, count});
  runs = std::move(pieces);
  return true;
}

}  // namespace

void find_loops(Analysis& analysis) {
  if (analysis.runs.empty()) return;
  std::vector<AffineNest::Axis> axes;
  std::vector<AffineRun> level = analysis.runs;
  const Index base = level[0].first;
  for (;;) {
    Index count = level[0].count;
    const Index step = level[0].step;
    const bool uniform = std::all_of(level.begin(), level.end(), [&](const AffineRun& run) {
      return run.count == count && (count == 1 || run.step == step);
    });
    if (uniform ? count == 1 : !cut_to_equal(level)) break;
    count = level[0].count;
    axes.push_back({count, step});
    if (level.size() == 1) {
      analysis.nest = AffineNest::make(base, axes);
      return;
    }
    RunCollector collector(false);
    for (const auto& run : level) collector.push(run.first);
    auto next = collector.finish();
    if (next.empty()) return;  // a first comes twice: who asks for distinct ranks will say so
    if (next.size() == level.size()) {
      level = std::move(next);
      break;
    }
    level = std::move(next);
  }
  if (level.size() == 1 && axes.empty() && level[0].count == 1) {
    analysis.nest = AffineNest::make(base, {});
    return;
  }
  Index inner_size = 1;
  for (const auto& axis : axes) inner_size *= axis.count;
  constexpr Index worth = 4;
  if (inner_size < worth) return;
  // Inner loops begin at their lowest rank, firsts are on a lattice that keeps them apart.
  Index lowest = 0;
  for (const auto& axis : axes) lowest += std::min<Index>(axis.stride, 0) * (axis.count - 1);
  auto inner = AffineNest::make(-lowest, axes);
  if (!inner) return;
  OuterInner product{*inner, 0, 0, {}, nullptr};
  for (const auto& run : level)
    for (Index k = 0; k < run.count; ++k) product.outer.push_back(run.first + run.step * k + lowest);
  product.base = *std::min_element(product.outer.begin(), product.outer.end());
  for (auto& first : product.outer) first -= product.base, product.unit = std::gcd(product.unit, first);
  if (product.unit <= inner->highest()) return;
  for (auto& first : product.outer) first /= product.unit;
  const Index world = *std::max_element(product.outer.begin(), product.outer.end()) + 1;
  product.outer_analysis = std::make_shared<const Analysis>(analyse_order(Members(product.outer), world));
  analysis.product = std::move(product);
}

void find_unit(Analysis& analysis, const Members& members) {
  constexpr Index least = 64, most = Index{1} << 24;
  if (analysis.nest || analysis.product || !analysis.runs.empty() || analysis.size < least || analysis.size > most)
    return;
  Index unit = 0;
  auto keeps = [&](Index apart) {
    if (unit == 0 || apart % unit != 0) unit = std::gcd(unit, apart);
    return unit != 1;
  };
  // A sample from the middle tells most of those that are not.
  std::vector<Index> sample(std::size_t(std::min<Index>(analysis.size, 1000)));
  members.read((analysis.size - Index(sample.size())) / 2, Index(sample.size()), sample.data());
  for (const Index w : sample)
    if (!keeps(w - analysis.lowest)) return;
  OuterInner product{AffineNest::stride(0, 1, 1), analysis.lowest, 0, {}, nullptr};
  product.outer.reserve(std::size_t(analysis.size));
  members.each_piece([&](Index, std::span<const Index> values) {
    for (const Index w : values)
      if (unit != 1 && keeps(w - analysis.lowest)) product.outer.push_back(w - analysis.lowest);
  });
  if (unit < 2) return;
  product.unit = unit;
  for (auto& first : product.outer) first /= unit;
  const Index world = (analysis.highest - analysis.lowest) / unit + 1;
  product.outer_analysis = std::make_shared<const Analysis>(analyse_order(Members(product.outer), world));
  analysis.product = std::move(product);
}

}  // namespace longshore::ranks

// Halos dimension by dimension.
#include <algorithm>

#include "longshore/plans/block_algebra.hpp"
#include "plans/neighbours.hpp"

namespace longshore {

namespace {

/// Ghost cells beyond edges and corners that a rank must have before it is worth it. With fewer, two ranks that copy
/// straight lose as much by waiting for each other in each phase.
constexpr Wide worth_points = 400;

bool has_width(const Halo& halo, std::size_t d) { return halo.below[d] > 0 || halo.above[d] > 0; }

bool wraps(const Halo& halo, std::size_t d) { return !halo.periodic.empty() && halo.periodic[d]; }

}  // namespace

std::string phases_obstacle(const BlockPlan& plan) {
  if (plan.kind() != BlockPlan::Kind::halo) return "it is no halo";
  if (!plan.swept().empty()) return "it is a phase itself";
  if (plan.reversed()) return "it is reversed";
  if (plan.has_by_hand()) return "it has motions by hand";
  const Halo& halo = plan.halo();
  if (!halo.corners) return "it has no corners";
  const std::size_t dims = halo.below.dims();
  std::size_t wide = 0;
  for (std::size_t d = 0; d < dims; ++d) wide += has_width(halo, d);
  if (wide < 2) return "it has ghost cells in fewer than two dimensions";
  const auto& cuts = plan.source().cuts();
  if (cuts.empty()) return "its blocks are no lattice, cut all the way through along each dimension";
  for (std::size_t d = 0; d < dims; ++d)
    if (wraps(halo, d) && (cuts[d].front() != halo.domain.lower()[d] || cuts[d].back() != halo.domain.upper()[d]))
      return "its blocks do not fill the domain, which is periodic in dimension " + std::to_string(d);
  return {};
}

std::vector<BlockPlan> phases(const BlockPlan& plan, Order order) {
  if (!phases_obstacle(plan).empty()) return {plan};
  std::vector<BlockPlan> phases;
  Axes swept;
  const std::size_t dims = plan.source().dims();
  for (std::size_t k = 0; k < dims; ++k) {
    const std::size_t d = order == Order::F ? k : dims - 1 - k;
    if (!has_width(plan.halo(), d)) continue;
    swept.push_back(d);
    phases.push_back(plan);
    phases.back().neighbours_ = std::make_shared<const Neighbours>(*plan.neighbours_, swept);
  }
  return phases;
}

bool phases_pay(const BlockPlan& plan) {
  if (!phases_obstacle(plan).empty()) return false;
  // Of a lattice, sums over all blocks are products of sums along each dimension: of cells that are owned in all
  // dimensions, beyond a face, and beyond an edge or a corner. Whole numbers, for all machines alike.
  constexpr Wide most = Wide{1} << 60;
  const auto& cuts = plan.source().cuts();
  const Halo& halo = plan.halo();
  Wide owned = 1, face = 0, further = 0;
  for (std::size_t d = 0; d < cuts.size(); ++d) {
    const Wide first = cuts[d].front(), last = cuts[d].back();
    Wide beyond = 0;
    for (std::size_t k = 0; k + 1 < cuts[d].size(); ++k) {
      beyond += wraps(halo, d) ? Wide(halo.below[d]) : std::min<Wide>(halo.below[d], cuts[d][k] - first);
      beyond += wraps(halo, d) ? Wide(halo.above[d]) : std::min<Wide>(halo.above[d], last - cuts[d][k + 1]);
    }
    const Wide inside = std::min(last - first, most);
    beyond = std::min(beyond, most);
    further = std::min(further * (inside + beyond) + face * beyond, most);
    face = std::min(face * inside + owned * beyond, most);
    owned = std::min(owned * inside, most);
  }
  return further >= worth_points * plan.source().owning_ranks().size();
}

}  // namespace longshore

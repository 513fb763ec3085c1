#include "plans/interleaving.hpp"

#include <algorithm>

namespace longshore {

namespace {

/// Runs shorter than this share their cache lines and pages with their neighbours often enough to be moved jointly.
constexpr Index joint_run_bytes = 2048;

constexpr Index line_bytes = 64;

/// Of a rank: what a first-level cache holds, and what no cache does that a core has to itself.
constexpr Index near_part_bytes = Index{32} << 10, far_part_bytes = Index{3} << 20;

bool short_blocks(const Distribution& d, Index unit) { return !d.intervals() && d.block() < joint_run_bytes / unit; }

}  // namespace

std::optional<Interleaved> interleaved_dimension(const MotionPlan& plan) {
  const std::size_t n = plan.axes().size();
  auto nth_fastest = [n](const Layout& layout, std::size_t k) { return layout.order() == Order::C ? n - 1 - k : k; };
  Index unit = plan.element_bytes();
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t d = nth_fastest(plan.destination(), k), s = plan.axes()[d];
    if (s != nth_fastest(plan.source(), k)) return std::nullopt;
    const auto &a = plan.source().dimensions()[s], &b = plan.destination().dimensions()[d];
    if (a.coordinates() > 1 || b.coordinates() > 1) return Interleaved{d, unit};
    // With padding the next dimension is not contiguous with this one, and rows end here.
    if (k == 0 && (plan.source().ld() > 0 || plan.destination().ld() > 0)) return std::nullopt;
    unit *= std::max<Index>(a.extent(), 1);
  }
  return std::nullopt;
}

/// Whoever owns the side without short runs gathers what it needs from lines of the other side, or deals them out.
/// Where both have some, the destination's lines are put together from all sources, in whole lines.
std::optional<Direction> joint_direction(const MotionPlan& plan) {
  const auto where = interleaved_dimension(plan);
  if (!where) return std::nullopt;
  const auto& a = plan.source().dimensions()[plan.axes()[where->dimension]];
  const auto& b = plan.destination().dimensions()[where->dimension];
  const bool a_short = short_blocks(a, where->unit), b_short = short_blocks(b, where->unit);
  if (!a_short && !b_short) return std::nullopt;
  if (!a_short) return Direction::push;
  // In cache, blocks that have one whole run for each destination are dealt out with fewer loads.
  const bool one_run_each =
      b_short && b.block() < a.block() && a.block() % b.block() == 0 && a.block() <= b.block() * b.coordinates();
  const Wide bytes = Wide(plan.source().size()) * plan.element_bytes();
  return one_run_each && bytes < Wide(far_part_bytes) * plan.source().processes() ? Direction::push : Direction::pull;
}

bool lines_go_to_several(const MotionPlan& plan) {
  const auto where = interleaved_dimension(plan);
  if (!where) return false;
  const auto& a = plan.source().dimensions()[plan.axes()[where->dimension]];
  const auto& b = plan.destination().dimensions()[where->dimension];
  if (b.intervals() || b.coordinates() == 1) return false;
  // Of a longer block of the destination, a source has every few of its own blocks, one after the other.
  const Index run = a.intervals() ? b.block() : std::min(b.block(), std::max(a.block(), b.block() / a.coordinates()));
  return run < line_bytes / where->unit;
}

Index joint_from_bytes(const MotionPlan& plan) {
  const auto where = *interleaved_dimension(plan);
  const auto& a = plan.source().dimensions()[plan.axes()[where.dimension]];
  const auto& b = plan.destination().dimensions()[where.dimension];
  // Alone, each rank's part visits every line again. In cache that costs less than putting the parts together where
  // they are two, or many whose short runs fit each other nowhere.
  const Index parts = std::max(a.coordinates(), b.coordinates());
  bool uneven = false;
  if (!a.intervals() && !b.intervals()) {
    const auto [shorter, longer] = std::minmax({a.block(), b.block()});
    uneven = longer % shorter != 0 && shorter <= (line_bytes - 1) / where.unit;
  }
  if (parts == 2 || (parts > 4 && uneven)) return far_part_bytes;
  return std::max(near_part_bytes, far_part_bytes / parts / parts);
}

Direction preferred_direction(const MotionPlan& plan) { return joint_direction(plan).value_or(Direction::pull); }

}  // namespace longshore

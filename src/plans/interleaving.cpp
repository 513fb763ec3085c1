#include "plans/interleaving.hpp"

namespace longshore {

namespace {

/// Runs shorter than this share their cache lines and pages with their neighbours often enough to be moved jointly.
constexpr Index joint_run_bytes = 2048;

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

std::optional<Direction> joint_direction(const MotionPlan& plan) {
  const auto where = interleaved_dimension(plan);
  if (!where) return std::nullopt;
  const auto& a = plan.source().dimensions()[plan.axes()[where->dimension]];
  const auto& b = plan.destination().dimensions()[where->dimension];
  const bool a_short = short_blocks(a, where->unit), b_short = short_blocks(b, where->unit);
  if (a_short && (!b_short || b.block() >= a.block())) return Direction::pull;
  if (b_short) return Direction::push;
  return std::nullopt;
}

Direction preferred_direction(const MotionPlan& plan) { return joint_direction(plan).value_or(Direction::pull); }

}  // namespace longshore

#include "plans/interleaving.hpp"

#include <algorithm>

namespace longshore {

namespace {

/// Runs shorter than this share their cache lines and pages with their neighbours often enough to be moved jointly.
constexpr Index joint_run_bytes = 2048;

/// Of a rank: what a first-level cache holds, and what no cache does that a core has to itself.
constexpr Index near_part_bytes = Index{32} << 10, far_part_bytes = Index{3} << 20;

bool short_blocks(const Distribution& d, Index unit) { return !d.intervals() && d.block() < joint_run_bytes / unit; }

/// Who moves what lies in short runs: the other side's owner, unless its own are shorter.
struct ShortSides {
  Direction direction;
  bool in_turns;  ///< one rank after the other, not those jointly that share cache lines
};

std::optional<ShortSides> short_sides(const MotionPlan& plan) {
  const auto where = interleaved_dimension(plan);
  if (!where) return std::nullopt;
  const auto& a = plan.source().dimensions()[plan.axes()[where->dimension]];
  const auto& b = plan.destination().dimensions()[where->dimension];
  const bool a_short = short_blocks(a, where->unit), b_short = short_blocks(b, where->unit);
  if (!a_short && !b_short) return std::nullopt;
  if (a_short && (!b_short || b.block() >= a.block())) return ShortSides{Direction::pull, false};
  // From short blocks to shorter ones, ranks are gone through jointly where each block has one run, and a whole one,
  // for each of them. Where it has more or parts, each rank's lines are gone through faster by themselves.
  const bool one_run_each = a.block() % b.block() == 0 && a.block() <= b.block() * b.coordinates();
  return ShortSides{Direction::push, a_short && !one_run_each};
}

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

bool interleaves_shortly(const MotionPlan& plan) { return short_sides(plan).has_value(); }

std::optional<Direction> joint_direction(const MotionPlan& plan) {
  const auto sides = short_sides(plan);
  return sides && !sides->in_turns ? std::optional(sides->direction) : std::nullopt;
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
    uneven = longer % shorter != 0 && shorter <= 63 / where.unit;  // shorter than a line
  }
  if (parts == 2 || (parts > 4 && uneven)) return far_part_bytes;
  return std::max(near_part_bytes, far_part_bytes / parts / parts);
}

Direction preferred_direction(const MotionPlan& plan) {
  const auto sides = short_sides(plan);
  return sides ? sides->direction : Direction::pull;
}

}  // namespace longshore

/// All ranks of a move, one after the other, in this process.
#pragma once

#include "longshore/plans/motion_plan.hpp"
#include "support/generators.hpp"

namespace longshore::test {

inline MotionPlan plan_of(const MoveSpec& spec) {
  return MotionPlan(layout(spec.source), layout(spec.destination), spec.element_bytes, spec.axes);
}

/// Carries every motion out with carry(relation, destination, source) and says whether every destination array is
/// exactly what the dense oracle expects, padding untouched.
template <class Carry>
bool delivers(const MoveSpec& spec, Carry&& carry) {
  const DenseLayout source(spec.source), destination(spec.destination);
  const auto plan = plan_of(spec);
  const auto from = scatter(source, spec.element_bytes);
  const auto expected = scatter_permuted(destination, spec.element_bytes, spec.axes);
  std::vector<Bytes> to;
  for (const auto& part : expected) to.emplace_back(part.size(), untouched);
  for (Index rank = 0; rank < plan.world_size(); ++rank)
    for (const auto& motion : plan.sends(rank)) {
      const auto relation = plan.relation(motion);
      const auto sender = std::size_t(*plan.source().process_of(motion.source));
      const auto receiver = std::size_t(*plan.destination().process_of(motion.destination));
      carry(relation, to[receiver].data(), from[sender].data());
    }
  return to == expected;
}

}  // namespace longshore::test

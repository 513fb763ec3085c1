/// Relations enumerated pair by pair.
#pragma once

#include <ostream>
#include <vector>

#include "longshore/relations/loop_nest.hpp"

namespace longshore {

inline bool operator==(const PairedRuns::Pair& a, const PairedRuns::Pair& b) {
  return a.global == b.global && a.source == b.source && a.destination == b.destination;
}
inline std::ostream& operator<<(std::ostream& out, const PairedRuns::Pair& pair) {
  return out << pair.global << ": " << pair.source << " -> " << pair.destination;
}
inline std::ostream& operator<<(std::ostream& out, const LoopNest::Pair& pair) {
  return out << pair.source << " -> " << pair.destination;
}

}  // namespace longshore

namespace longshore::test {

inline std::vector<PairedRuns::Pair> pairs_of(const PairedRuns& runs) {
  std::vector<PairedRuns::Pair> pairs;
  runs.for_each_run([&](Index global, Index source, Index destination, Index length) {
    for (Index e = 0; e < length; ++e) pairs.push_back({global + e, source + e, destination + e});
  });
  return pairs;
}

/// By nested loops over the axes, without `LoopNest::at`.
inline std::vector<LoopNest::Pair> pairs_of(const LoopNest& relation) {
  if (relation.empty()) return {};
  std::vector<LoopNest::Pair> pairs{{relation.source_base(), relation.destination_base()}};
  for (const auto& axis : relation.axes()) {
    std::vector<LoopNest::Pair> longer;
    for (const auto& outer : pairs)
      for (const auto& inner : pairs_of(axis.runs))
        longer.push_back({outer.source + inner.source * axis.source_stride,
                          outer.destination + inner.destination * axis.destination_stride});
    pairs = std::move(longer);
  }
  return pairs;
}

}  // namespace longshore::test

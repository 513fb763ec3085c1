#include "longshore/sequences/runs.hpp"

namespace longshore {

Runs::Runs(std::vector<Run> runs) {
  for (auto& run : runs) {
    if (run.length <= 0 || run.count <= 0) continue;
    if (run.count == 1) run.step = 0;
    size_ = checked_add(size_, checked_mul(run.length, run.count));
    runs_.push_back(run);
  }
}

Runs Runs::interval(Index first, Index last) { return Runs({Run{first, last - first, 1, 0}}); }

}  // namespace longshore

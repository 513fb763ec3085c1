#include "longshore/sequences/runs.hpp"

#include <algorithm>

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

bool Runs::contains(Index index) const {
  return std::any_of(runs_.begin(), runs_.end(), [index](const Run& run) {
    const Index offset = index - run.first;
    if (offset < 0) return false;
    if (run.count == 1) return offset < run.length;
    return offset / run.step < run.count && offset % run.step < run.length;
  });
}

Index Runs::at(Index position) const {
  if (position >= 0) {
    Index left = position;
    for (const auto& run : runs_) {
      const Index n = run.length * run.count;
      if (left < n) return run.first + left / run.length * run.step + left % run.length;
      left -= n;
    }
  }
  throw Error(ErrorKind::argument,
              "position " + std::to_string(position) + " is outside [0, " + std::to_string(size_) + ")");
}

std::string Runs::to_string() const {
  std::string text;
  for (const auto& run : runs_) {
    if (!text.empty()) text += ", ";
    text += std::to_string(run.first) + ":" + std::to_string(run.first + run.length);
    if (run.count > 1) text += " by " + std::to_string(run.step) + " x " + std::to_string(run.count);
  }
  return text;
}

}  // namespace longshore

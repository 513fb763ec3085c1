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

std::optional<AffineRun> Runs::affine() const {
  if (size_ == 0) return AffineRun{};
  const Run& front = runs_.front();
  AffineRun all{front.first, 1, size_};
  if (front.length == 1 && size_ > 1) all.step = front.count > 1 ? front.step : runs_[1].first - front.first;
  Index next = front.first;
  for (const Run& run : runs_) {
    if (run.first != next || (run.length > 1 && all.step != 1)) return std::nullopt;
    if (run.count > 1 && run.step - run.length + 1 != all.step) return std::nullopt;
    next = run.first + run.step * (run.count - 1) + run.length - 1 + all.step;
  }
  return all;
}

std::vector<Index> Runs::to_vector() const {
  std::vector<Index> all;
  all.reserve(std::size_t(size_));
  for (const Run& run : runs_)
    for (Index k = 0; k < run.count; ++k)
      for (Index i = 0; i < run.length; ++i) all.push_back(run.first + k * run.step + i);
  return all;
}

}  // namespace longshore

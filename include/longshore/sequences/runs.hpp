/// sequences: compact integer sequences. `Runs` is an ascending set of indices kept as periodic runs, never enumerated.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "longshore/sequences/affine_run.hpp"
#include "longshore/sequences/interval.hpp"

namespace longshore {

/// `count` runs of `length` consecutive integers, `step` apart, the first starting at `first`.
struct Run {
  Index first = 0, length = 0, count = 1, step = 0;
  bool operator==(const Run&) const = default;
};

/// An ascending sequence of disjoint runs.
class Runs {
 public:
  Runs() = default;
  explicit Runs(std::vector<Run> runs);
  static Runs interval(Index first, Index last);

  const std::vector<Run>& runs() const& { return runs_; }
  std::vector<Run> runs() && { return std::move(runs_); }
  Index size() const { return size_; }
  bool empty() const { return size_ == 0; }
  /// All of them as one run of evenly spaced integers, where they are one; its step is 1 where there are fewer than
  /// two.
  std::optional<AffineRun> affine() const;
  /// All of them, one by one.
  std::vector<Index> to_vector() const;
  bool operator==(const Runs&) const = default;

 private:
  std::vector<Run> runs_;
  Index size_ = 0;
};

}  // namespace longshore

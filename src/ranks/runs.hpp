/// Members as affine runs: put together as they come, or told by a map that knows its runs.
#pragma once

#include <optional>

#include "longshore/ranks/members.hpp"

namespace longshore::ranks {

/// Members put together to affine runs as they come. With `near`, the second of only two may begin the next run
/// instead, where that is by far the closer of its neighbours.
class RunCollector {
 public:
  explicit RunCollector(bool near) : near_(near) {}
  void push(Index value) {
    if (run_.count == 0) {
      run_ = {value, 1, 1};
      return;
    }
    const Index step = value - last_();
    if (run_.count > 1 && step == run_.step) {
      ++run_.count;
      return;
    }
    if (step == 0) broken_ = true;
    if (run_.count == 1) {
      run_ = {run_.first, step, 2};
    } else if (near_ && run_.count == 2 && std::abs(run_.step) >= 4 * std::abs(step)) {
      runs_.push_back({run_.first, 1, 1});
      run_ = {last_(), step, 2};
    } else {
      runs_.push_back(run_);
      run_ = {value, 1, 1};
    }
  }
  /// n values first, first + step, ... Steps are not 0.
  void push(Index first, Index step, Index n) {
    for (; n > 0 && !(run_.count > 2 && step == run_.step && first == last_() + step); --n, first += step) push(first);
    run_.count += n;
  }
  std::vector<AffineRun> finish() {
    if (run_.count > 0) runs_.push_back(run_);
    if (broken_) runs_.clear();
    return std::move(runs_);
  }
  std::size_t size() const { return runs_.size(); }

 private:
  Index last_() const { return run_.first + run_.step * (run_.count - 1); }
  std::vector<AffineRun> runs_;
  AffineRun run_;
  bool near_, broken_ = false;
};

/// The stride that all members are; nothing where they are none, or leave the world, or one comes twice.
std::optional<AffineNest> stride_of(const Members& members, Index world);

/// The runs that the same members are put together to one by one: of equal members, equal ones.
std::vector<AffineRun> merged_runs(std::span<const AffineRun> runs);

/// A map as runs one after the other, where its form says them without a look at each member and they are at most so
/// many.
std::optional<std::vector<AffineRun>> known_runs(const RankMap& map, Index most);
/// The same, with a look at each member where the form does not say.
std::optional<std::vector<AffineRun>> few_runs(const RankMap& map, Index most);

}  // namespace longshore::ranks

// What maps are made from, and the checks that all of them go through.
#include <algorithm>
#include <unordered_map>

#include "ranks/forms/common.hpp"

namespace longshore {

Members::Members(std::span<const AffineRun> runs) : runs_(runs), size_(0) {
  starts_.reserve(runs.size());
  for (const auto& run : runs) {
    if (run.count < 0 || (run.count > 1 && run.step == 0))
      throw Error(ErrorKind::argument, "a run from rank " + std::to_string(run.first) + " has " +
                                           std::to_string(run.count) + " members by " + std::to_string(run.step));
    if (run.count > 0) checked_add(run.first, checked_mul(run.step, run.count - 1));
    starts_.push_back(size_);
    size_ = checked_add(size_, run.count);
  }
}

void Members::read(Index first, Index n, Index* out) const {
  if (map_ != nullptr) return map_->read(first, n, out);
  if (runs_.empty()) {
    std::copy_n(list_.begin() + first, n, out);
    return;
  }
  auto j = std::size_t(std::upper_bound(starts_.begin(), starts_.end(), first) - starts_.begin()) - 1;
  for (Index end = first + n; first < end; ++j) {
    const auto& run = runs_[j];
    const Index from = first - starts_[j], here = std::min(end - first, run.count - from);
    for (Index k = 0; k < here; ++k) *out++ = run.first + run.step * (from + k);
    first += here;
  }
}

std::vector<Interval> Members::intervals() const {
  std::vector<Interval> intervals;
  auto add = [&](Index first, Index last) {
    if (!intervals.empty() && intervals.back().last == first)
      intervals.back().last = last;
    else if (intervals.empty() || intervals.back().last < first)
      intervals.push_back({first, last});
    else
      throw Error(ErrorKind::argument, "rank " + std::to_string(first) + " follows rank " +
                                           std::to_string(intervals.back().last - 1) + ": the ranks do not ascend");
  };
  for (const auto& run : runs_)
    if (run.count == 0)
      continue;
    else if (run.count == 1 || run.step == 1)
      add(run.first, run.first + run.count);
    else
      for (Index k = 0; k < run.count; ++k) add(run.first + k * run.step, run.first + k * run.step + 1);
  if (runs_.empty())
    each_piece([&](Index, std::span<const Index> values) {
      for (const Index value : values) add(value, value + 1);
    });
  return intervals;
}

namespace ranks {

void refuse_rank(Index w, Index position, Index world) {
  throw Error(ErrorKind::argument, "rank " + std::to_string(w) + " at position " + std::to_string(position) +
                                       " is outside [0, " + std::to_string(world) + ")");
}

namespace {

[[noreturn]] void refuse_twice(const Members& members, Index w) {
  Index position = 0, first = nobody, second = nobody;
  members.each_piece([&](Index, std::span<const Index> values) {
    for (const Index value : values) {
      if (value == w && second == nobody) (first == nobody ? first : second) = position;
      ++position;
    }
  });
  throw Error(ErrorKind::argument, "rank " + std::to_string(w) + " comes twice, at positions " + std::to_string(first) +
                                       " and " + std::to_string(second));
}

}  // namespace

void check_distinct(const Members& members, Index lowest, Index highest) {
  const Index span = members.size() == 0 ? 0 : highest - lowest + 1;
  if (span / 64 <= members.size() + 1024) {
    std::vector<std::uint64_t> seen(std::size_t(ceil_div(span, 64)));
    Index twice = nobody;
    members.each_piece([&](Index, std::span<const Index> values) {
      for (const Index value : values) {
        auto& word = seen[std::size_t((value - lowest) / 64)];
        const std::uint64_t bit = std::uint64_t{1} << ((value - lowest) % 64);
        if (word & bit) twice = value;
        word |= bit;
      }
    });
    if (twice != nobody) refuse_twice(members, twice);
    return;
  }
  std::vector<Index> sorted;
  sorted.reserve(std::size_t(members.size()));
  members.each_piece(
      [&](Index, std::span<const Index> values) { sorted.insert(sorted.end(), values.begin(), values.end()); });
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) refuse_twice(members, *twice);
}

void check_distinct_runs(std::span<const AffineRun> runs) {
  std::vector<AffineRun> sorted(runs.begin(), runs.end());
  std::erase_if(sorted, [](const AffineRun& run) { return run.count == 0; });
  std::sort(sorted.begin(), sorted.end(),
            [](const AffineRun& a, const AffineRun& b) { return a.lowest() < b.lowest(); });
  bool apart = true;
  for (std::size_t k = 1; k < sorted.size() && apart; ++k) apart = sorted[k - 1].highest() < sorted[k].lowest();
  if (apart) return;
  Index highest = 0, size = 0;
  for (const auto& run : sorted) highest = std::max(highest, run.highest()), size = checked_add(size, run.count);
  constexpr Index most = Index{1} << 32;
  if (size > most)
    throw Error(ErrorKind::memory_limit, "runs of " + std::to_string(size) +
                                             " members that lie between one another are not looked "
                                             "through for ranks that come twice; at most " +
                                             std::to_string(most));
  check_distinct(Members(runs), sorted.front().lowest(), highest);
}

}  // namespace ranks
}  // namespace longshore

/// One dimension of an address relation: which source index goes to which destination index, as runs, never enumerated.
#pragma once

#include <utility>
#include <vector>

#include "longshore/sequences/interval.hpp"

namespace longshore {

/// `count` runs of `length` consecutive indices. Element e of repetition r pairs source index
/// `source + r * source_step + e` with destination index `destination + r * destination_step + e`;
/// both are the same global index `global + r * global_step + e`.
struct PairedRun {
  Index global = 0, source = 0, destination = 0;
  Index length = 0, count = 1;
  Index global_step = 0, source_step = 0, destination_step = 0;
  bool operator==(const PairedRun&) const = default;
};

/// A list of runs repeated with a period.
struct PairedPeriod {
  std::vector<PairedRun> runs;  ///< of one period, in ascending global order, not interleaved
  Index repeats = 1;
  Index global_period = 0, source_period = 0, destination_period = 0;
  bool operator==(const PairedPeriod&) const = default;
  Index elements_per_period() const;
};

/// An ordered one-dimensional relation: the periods one after the other, in ascending global order.
/// Position p means the p-th pair in that order.
class PairedRuns {
 public:
  PairedRuns() = default;
  explicit PairedRuns(std::vector<PairedPeriod> periods);
  /// One plain run of n pairs starting at the given indices.
  static PairedRuns run(Index n, Index source = 0, Index destination = 0, Index global = 0);

  const std::vector<PairedPeriod>& periods() const& { return periods_; }
  std::vector<PairedPeriod> periods() && { return std::move(periods_); }
  Index elements() const { return elements_; }
  bool empty() const { return elements_ == 0; }
  /// True when the relation is one run: a single interval on both sides.
  bool single_run() const;
  /// The number of separate (source contiguous and destination contiguous) runs, all repetitions counted.
  Index run_count() const;

  struct Pair {
    Index global, source, destination;
  };
  /// The pair at a position. Throws `Error(argument)` outside [0, elements()).
  Pair at(Index position) const { return at(find(position)); }
  /// Where a position is: in which period and which run of it, in which repetitions of both, and how far on.
  struct Place {
    std::size_t period = 0, run = 0;
    Index repeat = 0, count = 0, element = 0;
  };
  Place find(Index position) const;
  Pair at(const Place& place) const {
    const auto& period = periods_[place.period];
    const auto& run = period.runs[place.run];
    return {run.global + place.repeat * period.global_period + place.count * run.global_step + place.element,
            run.source + place.repeat * period.source_period + place.count * run.source_step + place.element,
            run.destination + place.repeat * period.destination_period + place.count * run.destination_step +
                place.element};
  }
  /// The first position whose destination index is at least
  /// `index`, where destination indices ascend with the position.
  Index position_of_destination(Index index) const;
  /// The pairs at positions [first, last).
  PairedRuns restrict(Index first, Index last) const;
  /// The same pairs with source and destination exchanged.
  PairedRuns inverse() const;
  /// The same relation moved so that its first pair is (0, 0), if it has one.
  PairedRuns from_origin() const& { return PairedRuns(*this).from_origin(); }
  PairedRuns from_origin() &&;
  /// Source index -> position in this relation: the assembly half of a message.
  PairedRuns source_to_position() const;
  /// Every index i replaced by the n consecutive indices [i*n,
  /// i*n + n): used when a contiguous inner dimension merges in.
  PairedRuns scaled(Index n) const;

  /// The same (source, destination) pairs in the same order, in fewer runs where blocks that are apart
  /// in the array lie side by side in both memories. What touches in memory need not touch in the array,
  /// so the global index is dropped: it becomes the position.
  PairedRuns joined() const;

  template <class F>  // F(global, source, destination, length): every run, in order; time proportional to run_count()
  void for_each_run(F&& f) const {
    for (const auto& period : periods_)
      for (Index k = 0; k < period.repeats; ++k)
        for (const auto& run : period.runs)
          for (Index r = 0; r < run.count; ++r)
            f(run.global + k * period.global_period + r * run.global_step,
              run.source + k * period.source_period + r * run.source_step,
              run.destination + k * period.destination_period + r * run.destination_step, run.length);
  }

  bool operator==(const PairedRuns&) const = default;

 private:
  std::vector<PairedPeriod> periods_;
  Index elements_ = 0;
};

/// Merges neighbours: adjacent runs into longer ones, equal runs at equal steps into one run with a count.
std::vector<PairedRun> compress(const std::vector<PairedRun>& runs);

}  // namespace longshore

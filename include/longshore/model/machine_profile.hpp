/// model: what a machine was measured to take: its copies in every situation, and its ways between processes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "longshore/model/copy_shape.hpp"
#include "longshore/model/throughput.hpp"

namespace longshore {

/// What copies run into: how much they touch, who else copies, and who wrote what they read.
struct CopySituation {
  Index working_bytes = 0;    ///< that a thread touches on one side
  int at_once = 1;            ///< threads or processes of the machine that copy at the same time
  bool from_another = false;  ///< the source was written by another core, as a peer's is
};

/// The rates of local copies in one situation, xCy in words of `word_bytes`.
struct CopyRates {
  static constexpr Index beyond_caches = INT64_MAX;

  Index word_bytes = 8;
  CopyLoops loops = CopyLoops::rows;
  CopySituation situation;  ///< `working_bytes`: `beyond_caches` where all comes from memory
  ThroughputTable table;
};

/// How long it takes two processes to send each other so many contiguous bytes, at the same time, in one way. Sizes
/// ascend; between two of them time is linear, beyond the last it grows in proportion.
struct ExchangeTimes {
  struct Sample {
    Index bytes = 0;
    double seconds = 0;
    bool operator==(const Sample&) const = default;
  };
  std::string way;   ///< "direct", "ring", "messages" or "collective"
  std::string pair;  ///< of processes: "same node" or "other node"
  std::vector<Sample> samples;
  double transfer_seconds = 0;  ///< that each transfer takes beyond its bytes, where a peer is sent many

  double seconds(Index bytes) const;
};

/// What moves within a process take beyond the bytes that they copy, in seconds.
struct CallTimes {
  double start = 0;           ///< of a move that has next to nothing to do
  double transfer = 0;        ///< of each of its transfers
  double wake = 0;            ///< until several threads are at work
  double leaf = 0;            ///< of each call of a kernel, where a program makes many
  double row = 0;             ///< of each innermost loop of a kernel's call
  double block_transfer = 0;  ///< of each transfer between blocks, which have programs in common
};

/// A value. What is not measured is found from what is nearest: see `copy_rate`.
class MachineProfile {
 public:
  /// `coarse`: nothing was measured here. Throws `Error(argument)` where there is no table of copies, or a number is
  /// negative or not finite.
  MachineProfile(std::string machine, bool coarse, std::vector<CopyRates> copies, std::vector<ExchangeTimes> exchanges,
                 CallTimes calls);

  const std::string& machine() const& { return machine_; }
  std::string machine() && { return std::move(machine_); }
  bool coarse() const { return coarse_; }
  const CallTimes& calls() const { return calls_; }
  const std::vector<CopyRates>& copies() const& { return copies_; }
  std::vector<CopyRates> copies() && { return std::move(copies_); }
  const std::vector<ExchangeTimes>& exchanges() const& { return exchanges_; }
  std::vector<ExchangeTimes> exchanges() && { return std::move(exchanges_); }

  /// Bytes per second of a copy. Time per byte is interpolated linearly in the logarithm of the bytes that are touched;
  /// of threads at once, the table with as many or the next fewer counts; words that have no table of their own take as
  /// long as those of the next larger size that has one, and a source from elsewhere as long as one's own where there
  /// is none. Throws what `ThroughputTable::rate` throws.
  double copy_rate(const CopyShape& shape, const CopySituation& situation) const;
  /// Of so many bytes, with the kernels' calls that it takes.
  double copy_seconds(const CopyShape& shape, Index bytes, const CopySituation& situation) const;
  /// Null where it was not measured.
  const ExchangeTimes* exchange(std::string_view way, std::string_view pair) const;

 private:
  bool measured_together(const CopyShape& shape, const CopySituation& situation) const;
  std::vector<const CopyRates*> tables(Index word_bytes, CopyLoops loops, const CopySituation& situation) const;

  std::string machine_;
  bool coarse_;
  std::vector<CopyRates> copies_;
  std::vector<ExchangeTimes> exchanges_;
  CallTimes calls_;
};

}  // namespace longshore

/// mpi: `NodeBoard`, on which the processes of a node tell each other something short, all at once: an all-gather in
/// shared memory, some times as fast as one of MPI's. Those of them that wait for each other may sleep meanwhile.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "core/signal.hpp"
#include "longshore/core/checked.hpp"
#include "mpi/mpi_header.hpp"
#include "mpi/shared_segment.hpp"

namespace longshore::mpi {

class NodeBoard {
 public:
  /// What one process may say at a time.
  static constexpr Index most_bytes = 1008;

  /// Collective over `node`. `crowded`, the same everywhere: there are more processes than processors. Null,
  /// everywhere, where a process cannot see the memory that the first one makes.
  static std::unique_ptr<NodeBoard> make(MPI_Comm node, bool crowded);

  /// Everybody's bytes into `all`, in order of rank; of all as many, at most `most_bytes`. Collective. Where
  /// somebody has not come after so many looks, `waiting` is called again and again.
  void gather(std::span<const std::byte> mine, std::span<std::byte> all, int looks,
              const std::function<void()>& waiting);

  /// This process has written what that one may be waiting for.
  void wake(int process) {
    if (crowded_) signals_[process].signal.send_to_sleepers();
  }
  /// For who waits for others of the node: they have the processor. Where there are too few processors and others keep
  /// this one for long turns, sleeps until it is woken, a millisecond at most, unless `look()` finds something.
  template <class Look>
  void step_aside(Look&& look) {
    if (crowded_ && is_taken())
      signals_[me_].signal.wait_unless(look, longest_sleep);
    else
      yield();
  }

 private:
  static constexpr std::chrono::microseconds longest_sleep{1000};  // whoever is to wake it may have ended
  struct alignas(64) Slot {
    std::atomic<std::uint64_t> round{0};  ///< in which `said` was said
    std::byte said[most_bytes];
  };
  struct alignas(64) SignalLine {
    Signal signal{Signal::Among::processes};
  };
  static Index bytes(int processes) { return processes * Index(2 * sizeof(Slot) + sizeof(SignalLine)); }
  NodeBoard(std::shared_ptr<const void> memory, std::byte* data, int me, int processes, bool crowded);
  /// Two take turns: who says something again has seen all of the round before, which nobody begins that still reads.
  Slot& slot(int process) const { return slots_[2 * process + int(round_ & 1)]; }

  void yield() const;
  static bool is_taken();

  std::shared_ptr<const void> memory_;  ///< that of nobody's: it is there until the last one lets go
  Slot* slots_;
  SignalLine* signals_;
  int me_, processes_;
  bool crowded_;
  std::uint64_t round_ = 0;
};

}  // namespace longshore::mpi

/// mpi: `NodeBoard`, on which the processes of a node tell each other something short, all at once: an all-gather in
/// shared memory, some times as fast as one of MPI's.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>

#include "longshore/core/checked.hpp"
#include "mpi/mpi_header.hpp"
#include "mpi/shared_segment.hpp"

namespace longshore::mpi {

class NodeBoard {
 public:
  /// What one process may say at a time.
  static constexpr Index most_bytes = 1008;

  /// Collective over `node`. Null, everywhere, where a process cannot see the memory that the first one makes.
  static std::unique_ptr<NodeBoard> make(MPI_Comm node);

  /// Everybody's bytes into `all`, in order of rank; of all as many, at most `most_bytes`. Collective. Where
  /// somebody has not come after so many looks, `waiting` is called again and again.
  void gather(std::span<const std::byte> mine, std::span<std::byte> all, int looks,
              const std::function<void()>& waiting);

 private:
  struct alignas(64) Slot {
    std::atomic<std::uint64_t> round{0};  ///< in which `said` was said
    std::byte said[most_bytes];
  };
  static Index bytes(int processes) { return 2 * processes * Index(sizeof(Slot)); }
  NodeBoard(std::shared_ptr<const void> memory, std::byte* data, int me, int processes);
  /// Two take turns: who says something again has seen all of the round before, which nobody begins that still reads.
  Slot& slot(int process) const { return slots_[2 * process + int(round_ & 1)]; }

  std::shared_ptr<const void> memory_;  ///< that of nobody's: it is there until the last one lets go
  Slot* slots_;
  int me_, processes_;
  std::uint64_t round_ = 0;
};

}  // namespace longshore::mpi

/// mpi: whether a process of this node still runs, told without asking it.
#pragma once

#include <cstdint>

namespace longshore::mpi {

/// A process by its number, when it was started, and the process namespace in which that is its number: a number alone
/// may be given to another process.
struct ProcessId {
  std::int64_t number = 0;  ///< 0: of nobody whose life could be told
  std::int64_t started = 0, space = 0;
};

ProcessId this_process();
/// `process`, or nobody where this process cannot see it. It runs when it is asked for.
ProcessId visible(const ProcessId& process);
/// Killed, or returned from main. False where it cannot be told, and for one that is stopped.
bool has_ended(const ProcessId& process);

}  // namespace longshore::mpi

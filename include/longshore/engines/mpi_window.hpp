/// engines/mpi: windows over the arrays of all processes of a communicator. Like `mpi.hpp`, this header names no MPI
/// type.
#pragma once

#include "longshore/engines/mpi.hpp"
#include "longshore/movers/window.hpp"

namespace longshore::mpi {

/// What sees to the gets and puts of others that come to a process which does not call MPI for long.
enum class Progress {
  automatic,  ///< `thread` where data goes through MPI and all threads may call it, else `calls`
  calls,      ///< nothing but MPI's own calls: others may wait until this process makes one
  thread      ///< a thread of each process, which calls MPI every now and then
};

/// How windows are opened. All must be the same on all ranks.
struct WindowOptions {
  /// `automatic`, or `messages`: all arrays of other processes are got at through MPI.
  NodePath node = NodePath::automatic;
  Progress progress = Progress::automatic;
  std::string element{};  ///< what an element is ("<f8"), compared between the ranks; may be empty
};

/// Lays open this process's arrays to all processes of the communicator: `mine[k].rank` is an array's number in the
/// window, in [0, pieces). Arrays in memory that processes of a node have in common are reached directly there, other
/// memory of the node's processes by the kernel, where it allows that, and the rest by MPI's one-sided calls, request
/// by request (MPI_Rget, MPI_Rput). Collective; throws on every rank what goes wrong on one: `Error(argument)` where a
/// number is outside that range or given twice, or where `Progress::thread` is asked for and MPI was not initialised
/// with MPI_THREAD_MULTIPLE; what `window_piece` throws. `failure`: what has gone wrong here before. Close
/// the window before MPI_Finalize, and before its communicator is freed.
std::shared_ptr<Window> open_window(CommHandle comm, Index pieces, std::vector<Part> mine, Index element_bytes,
                                    const WindowOptions& options = {}, const Error* failure = nullptr);

/// For a process that leaves windows open, when it has no more use for them and is about to call MPI_Finalize, which
/// must not begin while a thread is in MPI: ends all progress threads for good. Not collective.
void stop_progress_threads();

}  // namespace longshore::mpi

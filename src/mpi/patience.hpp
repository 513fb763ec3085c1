/// mpi: waiting for other processes, but not for those that have ended.
#pragma once

#include <chrono>
#include <vector>

#include "mpi/communicator.hpp"

namespace longshore::mpi {

/// Somebody without whom nothing will get on.
struct Awaited {
  int rank;           ///< of `Communicator::world()`
  bool left = false;  ///< has given up what it is waited for
};

/// What to throw where a rank has given up a move that this one takes part in.
Error given_up(const Communicator& communicator, int rank);

/// For loops that wait: told whenever nothing got on, it looks twice a second at those who are waited for. One that
/// was gone at two looks, with nothing having got on in between, is an error: what it had sent before has arrived by
/// then. Processes of other nodes cannot be seen; those that are stopped or slow are not gone.
class Patience {
 public:
  explicit Patience(const Communicator& communicator) : communicator_(&communicator) {}

  void progress() { waiting_ = false; }
  /// `awaited()` is asked at a look. Throws `Error(transport)` that names who is gone.
  template <class F>
  void nothing(F&& awaited) {
    if (due()) look(awaited());
  }

 private:
  bool due();
  void look(const std::vector<Awaited>& awaited);

  const Communicator* communicator_;
  bool waiting_ = false;
  int polls_ = 0;     ///< since the last look
  int suspect_ = -1;  ///< who was gone at the last look
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace longshore::mpi

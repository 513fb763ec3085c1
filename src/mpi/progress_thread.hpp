/// mpi: a thread that lets MPI get on with what other processes ask of this one, while this one does something else.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "mpi/communicator.hpp"
#include "mpi/rests.hpp"

namespace longshore::mpi {

/// Calls MPI, and what is to be done besides, some ten thousand times a second while there is something to do, and less
/// often where there is not, from `begin()` on until it goes or MPI is finalised. MPI must allow calls from several
/// threads. Throws `Error(transport)` where the system has no thread for it.
class ProgressThread {
 public:
  explicit ProgressThread(std::shared_ptr<Communicator> communicator);
  ~ProgressThread();
  void begin();
  /// There is something to do from now on.
  void wake(Woken what);
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

 private:
  std::shared_ptr<Communicator> communicator_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool begun_ = false, stop_ = false;
  std::atomic<Woken> woken_ = Woken::no;
  std::thread thread_;
};

}  // namespace longshore::mpi

/// movers: threads that help a mover with its tasks.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "core/relax.hpp"
#include "core/signal.hpp"
#include "longshore/movers/mover.hpp"

namespace longshore {

/// Below this a second thread costs more than it gains.
inline constexpr Index least_threaded_bytes = 256 * 1024;

/// How many threads `options.threads` means here; where it is 0, `by_default`, and where that is 0, too, as many as the
/// process may run on. Throws `Error(argument)` for options that mean nothing.
int threads_of(const MoveOptions& options, int by_default = 0);
/// About how many bytes a task should have, so that a thread that started late still finds its share; all of them where
/// one thread does the work.
Index task_bytes(Index total, int threads);

/// They run what is to be run when they are called, and look out for the next call for twice as long as it takes to
/// wake them, as measured, which is 100 microseconds at most; then they sleep. In the child of a fork there are none.
class Helpers {
 public:
  /// `run_one` takes one of the owner's tasks and runs it; false where none may be taken now.
  explicit Helpers(std::function<bool()> run_one) : run_one_(std::move(run_one)) {}
  ~Helpers();
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;

  /// So many threads, or as many as there can be. Once.
  void start(int count);
  int count() const { return int(threads_.size()); }
  /// There is something to take. By anybody.
  void call();
  /// What the owner waits for may have come. By those who run tasks.
  void tell() { told_.send(1); }
  /// This is a process that was forked: what helpers had taken will not be done here.
  bool gone() const { return !threads_.empty() && getpid() != process_; }
  /// For the owner: waits until `so` holds, which those who run tasks tell of. False where they are gone.
  template <class So>
  bool wait(So&& so) {
    for (int i = 0; i < patient_looks; ++i, relax())  // last tasks are short: to be woken would often take longer
      if (so()) return true;
    while (true) {
      const auto seen = told_.now();
      if (so()) return true;
      if (gone()) return false;
      told_.wait(seen);
    }
  }

 private:
  static constexpr int patient_looks = 2000;  ///< some tens of microseconds
  void serve();
  bool look_out(std::uint32_t seen) const;

  const std::function<bool()> run_one_;
  const pid_t process_ = getpid();
  bool spare_processors_ = false;  ///< so that those who look out are in nobody's way
  Signal calls_, told_;
  std::atomic<bool> leaving_ = false;
  std::atomic<std::int64_t> called_ = 0;       ///< when somebody was woken last, in nanoseconds
  std::atomic<std::int64_t> waking_ = 20'000;  ///< what that takes, as seen of late
  std::vector<std::thread> threads_;
};

}  // namespace longshore

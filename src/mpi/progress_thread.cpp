#include "mpi/progress_thread.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace longshore::mpi {

namespace {

using Clock = std::chrono::steady_clock;

// A link of 1 GB/s carries 50 KB in this time, which the buffers of any transport hold.
constexpr std::chrono::microseconds pause{50};
/// After a call that has done something, more is to come.
constexpr std::chrono::microseconds awake{100};
/// Calls without a pause: Open MPI looks at sockets in every eighth only.
constexpr int together = 16;

/// Asks for short turns on the processor, and so for early ones: Linux lets a thread that asks for less be ahead of one
/// that computes. Older ones take no notice.
void ask_for_short_turns() {
  prctl(PR_SET_TIMERSLACK, 1000UL);  // else it would sleep twice as long
  struct {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime, deadline, period;
  } wanted{sizeof wanted, SCHED_OTHER, 0, getpriority(PRIO_PROCESS, 0), 0, 100'000, 0, 0};  // nanoseconds, the least
  if (sched_getscheduler(0) == SCHED_OTHER) static_cast<void>(syscall(SYS_sched_setattr, 0, &wanted, 0));
}

}  // namespace

ProgressThread::ProgressThread(std::shared_ptr<Communicator> communicator) : communicator_(std::move(communicator)) {
  thread_ = std::thread([this] {
    ask_for_short_turns();
    // MPI does not say whether a call has done anything, but it shows in the time: some calls find nothing.
    auto shortest = Clock::duration::max();
    auto last_busy = Clock::now() - awake;
    std::unique_lock lock(mutex_);
    while (!stop_) {
      if (communicator_->callers() > 0) {
        stopped_.wait_for(lock, pause);
        continue;
      }
      const auto begin = Clock::now();
      for (int k = 0; k < together; ++k)
        if (!communicator_->poke_unless_finalising()) return;
      const auto end = Clock::now();
      shortest = std::min(shortest, end - begin);
      if (end - begin > 3 * shortest + std::chrono::microseconds(1)) last_busy = end;
      if (end - last_busy > awake) {
        stopped_.wait_for(lock, pause);
        continue;
      }
      // Not a yield: whoever computes on this core would have it for milliseconds.
      lock.unlock();
      lock.lock();
    }
  });
}

ProgressThread::~ProgressThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  thread_.join();
}

}  // namespace longshore::mpi

#include "mpi/progress_thread.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

namespace longshore::mpi {

namespace {

using Clock = std::chrono::steady_clock;

// A link of 1 GB/s carries 50 KB in this time, which the buffers of any transport hold.
constexpr std::chrono::microseconds least_pause{50};
// Where nothing has happened for long, whoever computes beside is not disturbed: what comes then waits for a twelfth
// of the time that nothing came, and for this at most.
constexpr std::chrono::microseconds most_pause{10'000};
constexpr int pause_share = 12;
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

ProgressThread::ProgressThread(std::shared_ptr<Communicator> communicator, std::function<void()> besides)
    : communicator_(std::move(communicator)) {
  thread_ = std::thread([this, besides = std::move(besides)] {
    ask_for_short_turns();
    // MPI does not say whether a call has done anything, but it shows in the time. What calls that find nothing take is
    // learned, apart for those after a pause, for which the caches have forgotten MPI.
    std::array<Clock::duration, 2> usual{};
    bool paused = false;
    auto last_busy = Clock::now();
    std::unique_lock lock(mutex_);
    while (!stop_) {
      if (communicator_->callers() > 0) {
        stopped_.wait_for(lock, least_pause);
        last_busy = Clock::now();
        continue;
      }
      const auto begin = Clock::now();
      for (int k = 0; k < together; ++k)
        if (!communicator_->poke_unless_finalising(besides)) return;
      const auto end = Clock::now();
      auto& known = usual[paused];
      const bool busy = end - begin > 3 * known + std::chrono::microseconds(1);
      known += (end - begin - known) / (busy ? 128 : 8);
      if (busy || woken_.exchange(false)) last_busy = end;
      paused = end - last_busy > awake;
      if (const auto idle = end - last_busy; paused) {
        stopped_.wait_for(lock, std::clamp<Clock::duration>(idle / pause_share, least_pause, most_pause));
        continue;
      }
      // Not a yield: whoever computes on this core would have it for milliseconds.
      lock.unlock();
      lock.lock();
    }
  });
}

/// Should it miss that, it is late by a pause.
void ProgressThread::wake() {
  woken_ = true;
  stopped_.notify_all();
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

#include "mpi/progress_thread.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <ctime>

#include "core/start_thread.hpp"

namespace longshore::mpi {

namespace {

/// Calls in a row, and after rests that leave a processor to others: Open MPI looks at sockets in every eighth only.
constexpr int together = 16;
#ifdef MPICH
constexpr int together_sharing = 1;
#else
constexpr int together_sharing = 8;
#endif

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

Rests::Moment moment() {
  timespec worked;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &worked);
  return {Rests::Clock::now(), std::chrono::seconds(worked.tv_sec) + std::chrono::nanoseconds(worked.tv_nsec)};
}

}  // namespace

ProgressThread::ProgressThread(std::shared_ptr<Communicator> communicator) : communicator_(std::move(communicator)) {
  auto body = [this] {
    ask_for_short_turns();
    std::unique_lock lock(mutex_);
    stopped_.wait(lock, [this] { return begun_ || stop_; });
    Rests rests(communicator_->node_size() < communicator_->size(), moment());
    bool rested = true;
    while (!stop_) {
      if (communicator_->callers() > 0) {
        stopped_.wait_for(lock, rests.while_others_call(Rests::Clock::now()));
        rested = true;
        continue;
      }
      for (int k = rests.begin(moment(), rested) ? together_sharing : together; k > 0; --k)
        if (!communicator_->poke_unless_finalising()) return;
      rests.end(moment(), woken_.exchange(Woken::no));
      const auto rest = rests.length();
      rested = rest > Rests::Duration{};
      if (rested) {
        stopped_.wait_for(lock, rest);
      } else {
        // Not a yield: whoever computes on this core would have it for milliseconds.
        lock.unlock();
        lock.lock();
      }
    }
  };
  thread_ = start_thread(body, "the progress of a window", "open it with progress=\"calls\"");
}

void ProgressThread::begin() {
  {
    const std::lock_guard lock(mutex_);
    begun_ = true;
  }
  stopped_.notify_all();
}

/// Should it miss that, it is late by a pause.
void ProgressThread::wake(Woken what) {
  auto known = woken_.load();
  while (known < what && !woken_.compare_exchange_weak(known, what)) continue;
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

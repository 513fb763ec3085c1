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
#include <ctime>

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
/// Calls in a row: Open MPI looks at sockets in every eighth only.
constexpr int together = 16;

// A thread that was away from its processor for so long between two calls shares it with one that computes. It takes a
// thirtieth of it then, for what has come meanwhile takes fewer calls, and more where what comes needs more: a link of
// 1 Gbit/s carries 60 KB in the longest pause. That is found anew now and then. What comes from this node comes too
// fast for pauses.
constexpr std::chrono::microseconds taken_away{200};
constexpr std::chrono::milliseconds remembered{200};
constexpr int processor_share = 30;
constexpr std::chrono::microseconds most_working_pause{500};
constexpr std::chrono::milliseconds near_for{1};
#ifdef MPICH
constexpr int together_shared = 1;
#else
constexpr int together_shared = 8;
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

/// That this thread has had.
std::chrono::nanoseconds processor_time() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

/// How long the thread rests between two calls of MPI, by what it has seen of them.
class Rests {
 public:
  /// `far`: some processes are on other nodes.
  explicit Rests(bool far) : far_(far) {}
  /// Calls are about to be made, so many in a row; `slept`: after a rest.
  int begin(bool slept) {
    begun_ = Clock::now();
    if (slept) last_end_ = begun_, last_processor_ = processor_time();
    shares_ = far_ && begun_ < shared_until_ && begun_ - last_near_ > near_for;
    usual_ = &usual_of_[shares_][slept];
    return shares_ ? together_shared : together;
  }
  void end(Woken woken) {
    const auto now = Clock::now();
    const auto processor = processor_time();
    const auto took = now - begun_;
    // MPI does not say whether a call has done anything, but it shows in the time. What calls that find nothing take is
    // learned, apart for those after a rest, for which the caches have forgotten MPI.
    auto& known = *usual_;
    const bool busy = took > 3 * known + std::chrono::microseconds(1);
    known += (took - known) / (busy ? 128 : 8);
    if (busy || woken != Woken::no) last_busy_ = now;
    if (woken == Woken::near) last_near_ = now;
    const Clock::duration worked = processor - last_processor_;
    if (now - last_end_ - worked > taken_away) shared_until_ = now + remembered;
    cost_ = std::max(worked, cost_ * 3 / 4);
    last_end_ = now, last_processor_ = processor;
  }
  /// None where there is nobody else to have the processor, and more is to come.
  Clock::duration length() const {
    Clock::duration rest{};
    if (shares_) rest = std::clamp<Clock::duration>(processor_share * cost_, least_pause, most_working_pause);
    if (const auto idle = last_end_ - last_busy_; idle > awake + rest)
      rest = std::max(rest, std::clamp<Clock::duration>(idle / pause_share, least_pause, most_pause));
    return rest;
  }
  /// Somebody else of this process calls MPI, and sees to everything.
  Clock::duration while_others_call() {
    last_busy_ = Clock::now();
    return shares_ ? most_working_pause : least_pause;
  }

 private:
  bool far_, shares_ = false;
  std::array<std::array<Clock::duration, 2>, 2> usual_of_{};
  Clock::duration* usual_ = nullptr;
  Clock::time_point begun_, last_end_, last_busy_ = Clock::now(), last_near_, shared_until_;
  std::chrono::nanoseconds last_processor_{};
  Clock::duration cost_{};  ///< processor time of calls, the most of the last ones
};

}  // namespace

ProgressThread::ProgressThread(std::shared_ptr<Communicator> communicator) : communicator_(std::move(communicator)) {
  thread_ = std::thread([this] {
    ask_for_short_turns();
    Rests rests(communicator_->node_size() < communicator_->size());
    bool slept = true;
    std::unique_lock lock(mutex_);
    while (!stop_) {
      if (communicator_->callers() > 0) {
        stopped_.wait_for(lock, rests.while_others_call());
        slept = true;
        continue;
      }
      for (int k = rests.begin(slept); k > 0; --k)
        if (!communicator_->poke_unless_finalising()) return;
      rests.end(woken_.exchange(Woken::no));
      const auto rest = rests.length();
      slept = rest > Clock::duration{};
      if (slept) {
        stopped_.wait_for(lock, rest);
      } else {
        // Not a yield: whoever computes on this core would have it for milliseconds.
        lock.unlock();
        lock.lock();
      }
    }
  });
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

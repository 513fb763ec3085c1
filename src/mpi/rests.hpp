/// mpi: how long a thread for progress rests between calls of MPI.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>

namespace longshore::mpi {

/// What a thread for progress is told to see to: accesses of other nodes, or of this one, which are as fast as memory.
enum class Woken { no, far, near };

/// Decides by what it has seen of the calls: what they took, and whether the thread had its processor meanwhile.
class Rests {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = Clock::duration;
  struct Moment {
    Clock::time_point now;
    Duration worked;  ///< processor time that the thread has had until then
  };

  // A link of 1 GB/s carries 50 KB in this time, which the buffers of any transport hold.
  static constexpr std::chrono::microseconds least{50};
  // Where nothing has happened for long, whoever computes beside is not disturbed: what comes then waits for a twelfth
  // of the time that nothing came, and for this at most.
  static constexpr std::chrono::microseconds most{10'000};
  static constexpr int share_of_idle = 12;
  /// After a call that has done something, more is to come.
  static constexpr std::chrono::microseconds awake{100};

  // A thread that was away from its processor for so long between two calls shares it with one that computes. It takes
  // a thirtieth of it then, for what has come meanwhile takes fewer calls, and more where what comes needs more: a link
  // of 1 Gbit/s carries 60 KB in the longest rest. That is found anew now and then. What comes from this node comes too
  // fast for rests.
  static constexpr std::chrono::microseconds taken_away{200};
  static constexpr std::chrono::milliseconds remembered{200};
  static constexpr int processor_share = 30;
  static constexpr std::chrono::microseconds most_while_sharing{500};
  static constexpr std::chrono::milliseconds near_for{1};

  /// `far`: some processes are on other nodes.
  Rests(bool far, const Moment& moment) : far_(far), last_busy_(moment.now), last_(moment) {}

  /// Calls are about to be made; `rested`: after a rest. Whether the processor is shared.
  bool begin(const Moment& moment, bool rested) {
    begun_ = moment.worked;
    if (rested) last_ = moment;
    shares_ = far_ && moment.now < shared_until_ && moment.now - last_near_ > near_for;
    usual_ = &usual_of_[shares_][rested];
    return shares_;
  }
  void end(const Moment& moment, Woken woken) {
    // MPI does not say whether a call has done anything, but it shows in the time, also where nobody tells. What calls
    // that find nothing take is learned, apart for those after a rest, for which the caches have forgotten MPI.
    const Duration took = moment.worked - begun_;
    auto& known = *usual_;
    const bool busy = took > 3 * known + std::chrono::microseconds(1);
    known += (took - known) / (busy ? 128 : 8);
    if (busy || woken != Woken::no) last_busy_ = moment.now;
    if (woken == Woken::near) last_near_ = moment.now, shares_ = false;
    const Duration worked = moment.worked - last_.worked;
    if (moment.now - last_.now - worked > taken_away) shared_until_ = moment.now + remembered;
    cost_ = std::max(worked, cost_ * 3 / 4);
    last_ = moment;
  }
  /// None where there is nobody else to have the processor, and more is to come.
  Duration length() const {
    Duration rest{};
    if (shares_) rest = std::clamp<Duration>(processor_share * cost_, least, most_while_sharing);
    if (const auto idle = last_.now - last_busy_; idle > awake + rest)
      rest = std::max(rest, std::clamp<Duration>(idle / share_of_idle, least, most));
    return rest;
  }
  /// Somebody else of this process calls MPI, and sees to everything.
  Duration while_others_call(Clock::time_point now) {
    last_busy_ = now;
    return shares_ ? most_while_sharing : least;
  }

 private:
  bool far_, shares_ = false;
  std::array<std::array<Duration, 2>, 2> usual_of_{};  ///< whether the processor is shared, whether after a rest
  Duration* usual_ = nullptr;
  Duration begun_{};  ///< processor time
  Clock::time_point last_busy_, last_near_, shared_until_;
  Moment last_;
  Duration cost_{};  ///< processor time of calls, the most of the last ones
};

}  // namespace longshore::mpi

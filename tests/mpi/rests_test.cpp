// How long a thread for progress rests follows what calls of MPI took, and whether others wanted its processor.
#include "mpi/rests.hpp"

#include <gtest/gtest.h>

namespace longshore::mpi {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr microseconds nothing{2}, something{40};  // what calls take that do it

/// A thread that has learned how long calls take that find nothing.
class Thread {
 public:
  explicit Thread(bool far) : rests_(far, moment_) {
    for (int k = 0; k < 5000; ++k) call(nothing);
    call(nothing, {}, Woken::far);
  }
  /// Calls that take so long, after having been away from the processor for so long. The rest after them, which it has.
  Rests::Duration call(microseconds take, microseconds away = {}, Woken woken = Woken::no) {
    shares = rests_.begin(moment_, rest_ > Rests::Duration{});
    moment_.now += take + away, moment_.worked += take;
    rests_.end(moment_, woken);
    rest_ = rests_.length();
    moment_.now += rest_;
    return rest_;
  }
  void pass(microseconds time) { moment_.now += time; }
  bool shares = false;

 private:
  Rests::Moment moment_{Rests::Clock::time_point(std::chrono::hours(1)), {}};
  Rests rests_;
  Rests::Duration rest_{};
};

TEST(Rests, none_while_something_comes_to_a_processor_of_its_own) {
  Thread thread(true);
  for (int k = 0; k < 1000; ++k) {
    EXPECT_EQ(thread.call(something), Rests::Duration{});
    EXPECT_EQ(thread.call(nothing), Rests::Duration{});
  }
}

TEST(Rests, longer_the_longer_nothing_comes) {
  Thread thread(true);
  Rests::Duration last{}, all{};
  for (int k = 0; k < 1000; ++k) {
    const auto rest = thread.call(nothing);
    EXPECT_GE(rest, last);
    last = rest, all += rest;
    EXPECT_LE(rest, std::max<Rests::Duration>(Rests::least, all)) << "of the time that nothing came, a part";
  }
  EXPECT_EQ(last, Rests::most);
}

TEST(Rests, leave_a_processor_to_others_who_want_it) {
  Thread thread(true);
  thread.call(something, milliseconds(3));
  Rests::Duration rested{}, worked{};
  for (int k = 0; k < 100; ++k) {
    rested += thread.call(something, {}, Woken::far), worked += something;
    EXPECT_TRUE(thread.shares);
  }
  EXPECT_LE(rested / 100, Rests::most_while_sharing);
  EXPECT_GE(rested, 10 * worked);
  for (int k = 0; k < 100; ++k) rested = thread.call(nothing, {}, Woken::far);
  EXPECT_LE(rested, 100 * nothing) << "what is answered at once waits less";
}

TEST(Rests, are_given_up_now_and_then_to_see_whether_others_still_want_it) {
  Thread thread(true);
  thread.call(something, milliseconds(3));
  thread.call(something);
  EXPECT_TRUE(thread.shares);
  thread.pass(Rests::remembered);
  EXPECT_EQ(thread.call(something), Rests::Duration{});
  EXPECT_FALSE(thread.shares);
}

TEST(Rests, none_for_what_comes_from_this_node) {
  Thread near(true), alone(false);
  for (Thread* thread : {&near, &alone}) thread->call(something, milliseconds(3));
  near.call(something, {}, Woken::near);
  for (int k = 0; k < 20; ++k) {
    EXPECT_EQ(near.call(something), Rests::Duration{});
    EXPECT_EQ(alone.call(something), Rests::Duration{});
  }
}

}  // namespace
}  // namespace longshore::mpi

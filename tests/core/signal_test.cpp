#include "core/signal.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>
#include <thread>

namespace longshore {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

TEST(Signal, nobody_sleeps_who_finds_what_is_waited_for) {
  Signal signal;
  const auto before = Clock::now();
  signal.wait_unless([] { return true; }, 20s);
  EXPECT_LT(Clock::now() - before, 10s);
}

TEST(Signal, a_sleep_ends_when_its_time_is_over) {
  Signal signal;
  int looks = 0;
  const auto before = Clock::now();
  signal.wait_unless([&] { return ++looks, false; }, 20ms);
  EXPECT_GE(Clock::now() - before, 15ms);
  EXPECT_EQ(looks, 1);
}

TEST(Signal, what_a_look_throws_is_passed_on_and_nobody_is_taken_to_sleep) {
  Signal signal;
  EXPECT_THROW(signal.wait_unless([]() -> bool { throw 1; }, 1ms), int);
  const auto seen = signal.now();
  signal.send_to_sleepers();
  EXPECT_EQ(signal.now(), seen);
}

/// Each waits for the other a thousand times; a wake that is lost would cost 20 seconds.
void take_turns(Signal* mine, Signal* others, std::atomic<int>* turn, int parity) {
  for (int k = parity; k < 2000; k += 2) {
    while (turn->load() != k) mine->wait_unless([&] { return turn->load() == k; }, 20s);
    turn->store(k + 1);
    others->send_to_sleepers();
  }
}

TEST(Signal, threads_wake_each_other) {
  Signal signals[2];
  std::atomic<int> turn = 0;
  const auto before = Clock::now();
  std::thread other([&] { take_turns(&signals[1], &signals[0], &turn, 1); });
  take_turns(&signals[0], &signals[1], &turn, 0);
  other.join();
  EXPECT_LT(Clock::now() - before, 20s);
}

TEST(Signal, processes_wake_each_other_in_memory_that_both_map) {
  struct Shared {
    Signal signals[2] = {Signal(Signal::Among::processes), Signal(Signal::Among::processes)};
    std::atomic<int> turn = 0;
  };
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const shared = new (memory) Shared;
  const auto before = Clock::now();
  const pid_t child = fork();
  if (child == 0) {
    take_turns(&shared->signals[1], &shared->signals[0], &shared->turn, 1);
    _exit(0);
  }
  take_turns(&shared->signals[0], &shared->signals[1], &shared->turn, 0);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_LT(Clock::now() - before, 20s);
  munmap(memory, sizeof(Shared));
}

}  // namespace
}  // namespace longshore

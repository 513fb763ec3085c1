#include "core/signal.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <limits>

namespace longshore {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "the kernel looks at the number as it lies in memory");

void Signal::send(int wakes) {
  word_.fetch_add(1);
  wake(wakes);
}

void Signal::wake(int wakes) {
  if (sleepers_.load() > 0) syscall(SYS_futex, &word_, operation(FUTEX_WAKE), wakes, nullptr, nullptr, 0);
}

bool Signal::wait(std::uint32_t seen) {
  bool slept = false;
  sleepers_.fetch_add(1);  // before it is looked at: whoever changes it meanwhile wakes
  for (; now() == seen; slept = true) syscall(SYS_futex, &word_, operation(FUTEX_WAIT), seen, nullptr, nullptr, 0);
  sleepers_.fetch_sub(1);
  return slept;
}

void Signal::send_to_sleepers() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_relaxed) > 0) send(std::numeric_limits<int>::max());
}

void Signal::sleep(std::uint32_t seen, std::chrono::microseconds most) {
  const timespec limit{most.count() / 1'000'000, most.count() % 1'000'000 * 1000};
  syscall(SYS_futex, &word_, operation(FUTEX_WAIT), seen, &limit, nullptr, 0);
}

int Signal::operation(int of_processes) const {
  return among_ == Among::threads ? of_processes | FUTEX_PRIVATE_FLAG : of_processes;
}

}  // namespace longshore

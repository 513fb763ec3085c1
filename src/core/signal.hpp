/// `Signal`: threads, of one process or of several, sleep until others have done something.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace longshore {

/// A number that changes, which threads sleep on until it does.
class Signal {
 public:
  enum class Among { threads, processes };  ///< of this process; of all that map the memory that it lies in
  explicit Signal(Among among = Among::threads) : among_(among) {}

  std::uint32_t now() const { return word_.load(); }
  /// Changes it, and wakes so many at most of those who sleep.
  void send(int wakes);
  /// Wakes others of those who slept when it was changed.
  void wake(int wakes);
  /// Sleeps until it is changed, unless it has been since now() was `seen`. True where it slept.
  bool wait(std::uint32_t seen);

  /// Changes it and wakes all who sleep; hardly anything where nobody does. What their `look` finds was written before.
  void send_to_sleepers();
  /// Sleeps until somebody sends to sleepers, at most so long, unless `look()` finds what is waited for.
  template <class Look>
  void wait_unless(Look&& look, std::chrono::microseconds most) {
    sleepers_.fetch_add(1);  // before it looks: whoever writes meanwhile sends
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const auto seen = now();
    try {
      if (!look()) sleep(seen, most);
    } catch (...) {
      sleepers_.fetch_sub(1);
      throw;
    }
    sleepers_.fetch_sub(1);
  }

 private:
  void sleep(std::uint32_t seen, std::chrono::microseconds most);
  int operation(int of_processes) const;

  std::atomic<std::uint32_t> word_ = 0;
  std::atomic<int> sleepers_ = 0;
  const Among among_;
};

}  // namespace longshore

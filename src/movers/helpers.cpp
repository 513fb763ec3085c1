#include "movers/helpers.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <limits>

namespace longshore {

namespace {

/// Tasks per thread, so that a thread that started late still finds its share.
constexpr int tasks_per_thread = 8;
/// Whoever is woken wakes others: all are up after a few steps, and nobody wakes many.
constexpr int wakes_each = 2;
/// Nobody looks out for longer, whatever it takes to be woken.
constexpr std::int64_t most_patience = 100'000;  // nanoseconds
constexpr int looks_between_times = 16;

std::int64_t nanoseconds() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(CPU_COUNT(&set), 1);
  return std::max(int(std::thread::hardware_concurrency()), 1);
}

}  // namespace

void Helpers::start(int count) {
  spare_processors_ = count < available_processors();
  sigset_t every, before;  // signals are for the threads of the program
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, &before);
  try {
    for (int i = 0; i < count; ++i) threads_.emplace_back([this] { serve(); });
  } catch (const std::system_error&) {  // there are fewer
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Helpers::~Helpers() {
  if (gone()) {
    new std::vector<std::thread>(std::move(threads_));  // nobody can join them
    return;
  }
  leaving_ = true;
  calls_.send(INT_MAX);
  for (auto& thread : threads_) thread.join();
}

void Helpers::call() {
  called_.store(nanoseconds(), std::memory_order_relaxed);
  calls_.send(wakes_each);
}

void Helpers::serve() {
  while (true) {
    const auto seen = calls_.now();
    if (leaving_) return;  // asked after the number was read: whoever ends them changes it later, and nobody sleeps on
    while (run_one_()) {
    }
    if (look_out(seen) || !calls_.wait(seen)) continue;
    const auto took = nanoseconds() - called_.load(std::memory_order_relaxed), known = waking_.load();
    waking_.store(known + (std::min(took, most_patience) - known) / 8, std::memory_order_relaxed);
    calls_.wake(wakes_each);
  }
}

/// True once somebody has called.
bool Helpers::look_out(std::uint32_t seen) const {
  if (!spare_processors_) return false;
  const auto end = nanoseconds() + std::min(2 * waking_.load(std::memory_order_relaxed), most_patience);
  do {
    for (int i = 0; i < looks_between_times; ++i, relax())
      if (calls_.now() != seen) return true;
    sched_yield();  // whoever else wants this processor has it
  } while (nanoseconds() < end);
  return false;
}

int threads_of(const MoveOptions& options, int by_default) {
  if (options.threads < 0)
    throw Error(ErrorKind::argument, "threads is " + std::to_string(options.threads) +
                                         "; it must be 1 or more, or 0 for what is by default");
  if (options.max_mem < 0)
    throw Error(ErrorKind::argument,
                "max_mem is " + std::to_string(options.max_mem) + " bytes; it must not be negative");
  const int threads = options.threads > 0 ? options.threads : by_default;
  return threads > 0 ? threads : available_processors();
}

Index task_bytes(Index total, int threads) {
  if (threads <= 1 || total < least_threaded_bytes) return std::numeric_limits<Index>::max();
  return std::max<Index>(total / (threads * tasks_per_thread), least_threaded_bytes / 2);
}

}  // namespace longshore

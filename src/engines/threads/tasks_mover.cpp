#include "engines/threads/tasks_mover.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <thread>

#include "core/relax.hpp"

namespace longshore {

namespace {

/// Tasks per thread, so that a thread that started late still finds its share.
constexpr int tasks_per_thread = 8;

/// How often to look whether the helpers are done before sleeping until they are: some tens of microseconds.
constexpr int patient_looks = 2000;

int available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(CPU_COUNT(&set), 1);
  return std::max(int(std::thread::hardware_concurrency()), 1);
}

/// Threads that run one list of tasks each time they are told to, the caller of `finish` helping.
class ThreadPool {
 public:
  ThreadPool(const std::vector<CopyTask>& tasks, int helpers) : tasks_(tasks) {
    for (int i = 0; i < helpers; ++i) threads_.emplace_back([this] { serve(); });
  }
  ~ThreadPool() {
    {
      std::lock_guard lock(mutex_);
      leaving_ = true;
    }
    wake_.notify_all();
    for (auto& thread : threads_) thread.join();
  }
  void begin() {
    {
      std::lock_guard lock(mutex_);
      left_.store(tasks_.size(), std::memory_order_relaxed);
      next_.store(0,
                  std::memory_order_release);  // last: a helper still leaving the round before may take a task at once
      ++round_;
    }
    wake_.notify_all();
  }
  bool done() const { return left_.load(std::memory_order_acquire) == 0; }
  /// Runs one task of this round; false when none is left to take.
  bool run_one() {
    const std::size_t task = next_.fetch_add(1, std::memory_order_acq_rel);
    if (task >= tasks_.size()) return false;
    tasks_[task].run();
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      std::lock_guard lock(mutex_);
      finished_.notify_all();
    }
    return true;
  }
  void finish() {
    while (run_one()) {
    }
    // The helpers' last tasks are short: to be woken up would often take longer.
    for (int i = 0; i < patient_looks && !done(); ++i) relax();
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [this] { return done() && busy_ == 0; });
  }
  std::size_t helpers() const { return threads_.size(); }

 private:
  void serve() {
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return leaving_ || round_ != seen; });
      if (leaving_) return;
      seen = round_;
      ++busy_;
      lock.unlock();
      while (run_one()) {
      }
      lock.lock();
      if (--busy_ == 0) finished_.notify_all();
    }
  }

  const std::vector<CopyTask>& tasks_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_, finished_;
  std::atomic<std::size_t> next_{0}, left_{0};
  std::uint64_t round_ = 0;
  int busy_ = 0;  ///< helpers inside a round: none may touch `next_` when the next round begins
  bool leaving_ = false;
};

class TasksMover final : public Mover {
 public:
  TasksMover(std::vector<CopyTask> tasks, int threads, const MoveOptions& options, std::vector<BoundMemory> memory,
             Index shared_workspace_bytes)
      : Mover(std::move(memory)), tasks_(std::move(tasks)), workspace_(shared_workspace_bytes) {
    for (const auto& task : tasks_) moved_ += task.bytes, workspace_ += task.workspace_bytes();
    if (options.max_mem > 0 && workspace_ > options.max_mem)
      throw Error(ErrorKind::memory_limit, "this move needs " + std::to_string(workspace_) +
                                               " bytes beyond its arrays, " + "max_mem allows " +
                                               std::to_string(options.max_mem) + "; allow at least that much");
    const auto helpers = moved_ < least_threaded_bytes ? 0 : std::min<Index>(threads, Index(tasks_.size())) - 1;
    pool_ = std::make_unique<ThreadPool>(tasks_, int(std::max<Index>(helpers, 0)));
  }
  ~TasksMover() override {
    if (under_way()) pool_->finish();
  }

  Index workspace_bytes() const override { return workspace_; }
  Index moved_bytes() const override { return moved_; }
  std::string describe() const override {
    std::string text = "threads engine, " + std::to_string(pool_->helpers() + 1) + " threads, " +
                       std::to_string(tasks_.size()) + " tasks";
    std::vector<std::pair<std::string, Index>> kinds;
    for (const auto& task : tasks_) {
      const auto words = task.describe();
      auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return k.first == words; });
      if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {words, 0});
      ++kind->second;
    }
    constexpr std::size_t shown = 8;
    for (std::size_t k = 0; k < std::min(shown, kinds.size()); ++k)
      text += "\n  " + std::to_string(kinds[k].second) + " x " + kinds[k].first;
    if (kinds.size() > shown) text += "\n  and " + std::to_string(kinds.size() - shown) + " other kinds";
    return text;
  }

 private:
  void begin() override { pool_->begin(); }
  bool advance() override {
    if (!pool_->done()) pool_->run_one();
    if (!pool_->done()) return false;
    pool_->finish();
    return true;
  }
  void finish() override { pool_->finish(); }

  std::vector<CopyTask> tasks_;
  Index moved_ = 0, workspace_;
  std::unique_ptr<ThreadPool> pool_;
};

}  // namespace

int threads_of(const MoveOptions& options) {
  if (options.threads < 0)
    throw Error(ErrorKind::argument,
                "threads is " + std::to_string(options.threads) + "; it must be 0 (as many as there are) or more");
  if (options.max_mem < 0)
    throw Error(ErrorKind::argument,
                "max_mem is " + std::to_string(options.max_mem) + " bytes; it must not be negative");
  return options.threads > 0 ? options.threads : available_processors();
}

Index task_bytes(Index total, int threads) {
  if (threads <= 1 || total < least_threaded_bytes) return std::numeric_limits<Index>::max();
  return std::max<Index>(total / (threads * tasks_per_thread), least_threaded_bytes / 2);
}

std::unique_ptr<Mover> make_tasks_mover(std::vector<CopyTask> tasks, int threads, const MoveOptions& options,
                                        std::vector<BoundMemory> memory, Index shared_workspace_bytes) {
  return std::make_unique<TasksMover>(std::move(tasks), threads, options, std::move(memory), shared_workspace_bytes);
}

}  // namespace longshore

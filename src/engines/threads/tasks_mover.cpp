#include "engines/threads/tasks_mover.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <iterator>
#include <limits>
#include <mutex>
#include <thread>

#include "core/relax.hpp"
#include "movers/arrivals.hpp"

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

/// Threads that run one list of tasks each time they are told to, the caller of `finish` helping. Its stages end at
/// `ends`: whoever is done with the last task of one opens the next.
class ThreadPool {
 public:
  ThreadPool(const std::vector<CopyTask>& tasks, std::vector<std::size_t> ends, int helpers)
      : tasks_(tasks), ends_(std::move(ends)), done_(helpers > 0 ? tasks.size() : 0) {
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
      // A helper that wakes up late finds the end before it finds tasks, and takes none that is not open.
      end_.store(0, std::memory_order_release);
      next_.store(0, std::memory_order_release);
      left_.store(tasks_.size(), std::memory_order_relaxed);
      stage_ = 0, part_ = 0, ++move_;
      open();
    }
    wake_.notify_all();
  }
  bool done() const { return left_.load(std::memory_order_acquire) == 0; }
  /// Runs one task of this round; false when none can be taken.
  bool run_one() {
    if (done_.empty() && part_ > 0) {  // there are no helpers, and one task has been begun
      while (part_ > 0) run_part();
      return true;
    }
    std::size_t task = next_.load(std::memory_order_acquire);
    do {
      if (task >= end_.load(std::memory_order_acquire)) return false;
    } while (!next_.compare_exchange_weak(task, task + 1, std::memory_order_acq_rel, std::memory_order_acquire));
    tasks_[task].run();
    if (!done_.empty()) done_[task].store(move_, std::memory_order_release);
    complete();
    return true;
  }
  /// Where there are no helpers: runs one part of a task; false when there is none.
  bool run_part() {
    const std::size_t task = next_.load(std::memory_order_relaxed);
    if (task >= end_.load(std::memory_order_relaxed)) return false;
    tasks_[task].run(part_);
    if (++part_ < tasks_[task].parts()) return true;
    part_ = 0, next_.store(task + 1, std::memory_order_relaxed);
    complete();
    return true;
  }
  /// No task from here on has been taken in this round; of those before, where there are helpers, is it done?
  std::size_t taken() const { return next_.load(std::memory_order_acquire); }
  bool done(std::size_t task) const { return done_[task].load(std::memory_order_acquire) == move_; }
  /// Of the task behind them, so many parts have been run.
  std::size_t parts() const { return part_; }
  void finish() {
    while (true) {
      while (run_one()) {
      }
      // The helpers' last tasks are short: to be woken up would often take longer.
      for (int i = 0; i < patient_looks && !done() && !any(); ++i) relax();
      std::unique_lock lock(mutex_);
      finished_.wait(lock, [this] { return any() || (done() && busy_ == 0); });
      if (done() && busy_ == 0) return;
    }
  }
  std::size_t helpers() const { return threads_.size(); }

 private:
  void complete() {
    const std::size_t left = left_.fetch_sub(1, std::memory_order_acq_rel) - 1;
    if (left + end_.load(std::memory_order_acquire) == tasks_.size()) {
      std::lock_guard lock(mutex_);
      if (left > 0) open();
      wake_.notify_all(), finished_.notify_all();
    }
  }
  bool any() const { return next_.load(std::memory_order_acquire) < end_.load(std::memory_order_acquire); }
  /// The next stage. Under the lock.
  void open() {
    if (stage_ == ends_.size()) return;
    end_.store(ends_[stage_++], std::memory_order_release);
    ++round_;
  }
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
  const std::vector<std::size_t> ends_;  ///< ascending, each once
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_, finished_;
  std::atomic<std::size_t> next_{0}, end_{0}, left_{0};  ///< those before the end of the open stage may be taken
  std::vector<std::atomic<std::uint64_t>> done_;         ///< by task, if there are helpers: the last move it is done in
  std::uint64_t move_ = 0;
  std::size_t part_ = 0;   ///< of the next task, if there are none: so many parts have been run
  std::size_t stage_ = 0;  ///< the next to be opened
  std::uint64_t round_ = 0;
  int busy_ = 0;  ///< helpers inside a round: none may touch `next_` when the next move begins
  bool leaving_ = false;
};

class TasksMover final : public Mover {
 public:
  TasksMover(StagesOfTasks stages, int threads, const MoveOptions& options, std::vector<BoundMemory> memory,
             Index shared_workspace_bytes)
      : Mover(std::move(memory)), workspace_(shared_workspace_bytes) {
    std::vector<std::size_t> ends;
    for (auto& stage : stages) {
      const std::size_t before = tasks_.size();
      for (auto& of_share : stage) {
        std::move(of_share.begin(), of_share.end(), std::back_inserter(tasks_));
        share_ends_.push_back(tasks_.size());
      }
      widest_ = std::max(widest_, tasks_.size() - before);
      if (tasks_.size() > before) ends.push_back(tasks_.size());
    }
    stages_ = ends.size();
    for (const auto& task : tasks_) moved_ += task.bytes, workspace_ += task.workspace_bytes();
    if (options.max_mem > 0 && workspace_ > options.max_mem)
      throw Error(ErrorKind::memory_limit, "this move needs " + std::to_string(workspace_) +
                                               " bytes beyond its arrays, " + "max_mem allows " +
                                               std::to_string(options.max_mem) + "; allow at least that much");
    const auto helpers = moved_ < least_threaded_bytes ? 0 : std::min<Index>(threads, Index(widest_)) - 1;
    pool_ = std::make_unique<ThreadPool>(tasks_, std::move(ends), int(std::max<Index>(helpers, 0)));
  }
  ~TasksMover() override {
    if (under_way()) pool_->finish();
  }

  Index workspace_bytes() const override { return workspace_ + kept_plans_bytes(); }
  Index moved_bytes() const override { return moved_; }
  std::string describe() const override {
    std::string text = "threads engine, " + std::to_string(pool_->helpers() + 1) + " threads, " +
                       std::to_string(tasks_.size()) + " tasks" +
                       (stages_ > 1 ? " in " + std::to_string(stages_) + " phases, a dimension at a time" : "");
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
  void begin() override {
    told_task_ = told_part_ = 0, told_.assign(told_.size(), false);
    pool_->begin();
  }
  bool advance() override {
    if (!pool_->done()) pool_->run_one();
    if (!pool_->done()) return false;
    pool_->finish();
    return true;
  }
  void finish() override { pool_->finish(); }

  bool expect(Arrivals& arrivals) override {
    if (pool_->helpers() > 0) told_.assign(tasks_.size(), false);
    for (std::size_t task = 0; task < tasks_.size(); ++task)
      for (std::size_t part = 0; part < tasks_[task].parts(); ++part)
        for (const auto motion : tasks_[task].motions(part)) arrivals.expect(share_of(task), motion);
    return true;
  }
  void tell(Arrivals& arrivals) override {
    const std::size_t taken = pool_->taken();
    auto tell_of = [&](std::size_t task, std::size_t parts) {
      for (; told_part_ < parts; ++told_part_)
        for (const auto motion : tasks_[task].motions(told_part_)) arrivals.land(share_of(task), motion);
    };
    if (pool_->helpers() == 0) {
      for (; told_task_ < taken; ++told_task_, told_part_ = 0) tell_of(told_task_, tasks_[told_task_].parts());
      tell_of(taken, pool_->parts());
      return;
    }
    for (std::size_t task = told_task_; task < taken; ++task)
      if (!told_[task] && pool_->done(task)) tell_of(task, tasks_[task].parts()), told_part_ = 0, told_[task] = true;
    while (told_task_ < taken && told_[told_task_]) ++told_task_;
  }
  bool advance_one_unit() override {
    if (!(pool_->helpers() == 0 ? pool_->run_part() : pool_->run_one())) sched_yield();
    return pool_->done() && (pool_->finish(), true);
  }
  std::size_t share_of(std::size_t task) const {
    return std::size_t(std::upper_bound(share_ends_.begin(), share_ends_.end(), task) - share_ends_.begin());
  }

  std::vector<CopyTask> tasks_;
  std::vector<std::size_t> share_ends_;        ///< among the tasks
  std::size_t told_task_ = 0, told_part_ = 0;  ///< all before it have been told of, and so many parts of it
  std::vector<bool> told_;                     ///< by task, if there are helpers
  std::size_t stages_ = 0, widest_ = 0;        ///< tasks of a stage at most
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

std::unique_ptr<Mover> make_tasks_mover(StagesOfTasks stages, int threads, const MoveOptions& options,
                                        std::vector<BoundMemory> memory, Index shared_workspace_bytes) {
  return std::make_unique<TasksMover>(std::move(stages), threads, options, std::move(memory), shared_workspace_bytes);
}

}  // namespace longshore

/// The `threads` engine: all ranks' arrays are in this process, and data goes straight from source to destination.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "longshore/movers/local_moves.hpp"
#include "longshore/movers/mover.hpp"

namespace longshore {

namespace {

/// Below this a second thread costs more than it gains.
constexpr Index least_threaded_bytes = 256 * 1024;
/// Tasks per thread, so that a thread that started late still finds its share.
constexpr Index tasks_per_thread = 8;

/// How often to look whether the helpers are done before sleeping until they are: some tens of microseconds.
constexpr int patient_looks = 2000;

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

int available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(CPU_COUNT(&set), 1);
  return std::max(int(std::thread::hardware_concurrency()), 1);
}

/// Threads that run one list of tasks each time they are told to, the caller of `finish` helping.
class Crew {
 public:
  Crew(const std::vector<CopyTask>& tasks, int helpers) : tasks_(tasks) {
    for (int i = 0; i < helpers; ++i) threads_.emplace_back([this] { serve(); });
  }
  ~Crew() {
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
      next_.store(0, std::memory_order_release);  // last: a helper still leaving the round before may take a task at once
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

void check_disjoint(const std::vector<LocalArray>& sources, const std::vector<LocalArray>& destinations,
                    const MotionPlan& plan) {
  struct Span {
    const std::byte *first, *last;
    bool destination;
    Index rank;
  };
  std::vector<Span> spans;
  auto add = [&](const std::vector<LocalArray>& arrays, const Layout& layout, bool destination) {
    for (Index p = 0; p < Index(arrays.size()); ++p) {
      const Index rank = layout.grid().world_rank(p);
      const Index bytes = layout.allocated_size(rank) * plan.element_bytes();
      if (bytes > 0) spans.push_back({arrays[p].data, arrays[p].data + bytes, destination, rank});
    }
  };
  add(sources, plan.source(), false);
  add(destinations, plan.destination(), true);
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.first < b.first; });
  // Sources may share memory with each other; nothing may share memory with a destination.
  const Span *reach = nullptr, *reach_destination = nullptr;
  for (const auto& span : spans) {
    const Span* before = span.destination ? reach : reach_destination;
    if (before && before->last > span.first) {
      auto name = [](const Span& s) {
        return std::string(s.destination ? "destination" : "source") + " array of rank " + std::to_string(s.rank);
      };
      throw Error(ErrorKind::buffer, "the " + name(*before) + " and the " + name(span) +
                                         " share memory; give the move destinations of their own");
    }
    if (!reach || span.last > reach->last) reach = &span;
    if (span.destination && (!reach_destination || span.last > reach_destination->last)) reach_destination = &span;
  }
}

class ThreadsMover final : public Mover {
 public:
  ThreadsMover(const MotionPlan& plan, std::vector<LocalArray> sources, std::vector<LocalArray> destinations,
               const MoveOptions& options)
      : sources_(std::move(sources)), destinations_(std::move(destinations)) {
    check(plan, sources_, plan.source(), "source");
    check(plan, destinations_, plan.destination(), "destination");
    check_disjoint(sources_, destinations_, plan);
    if (options.threads < 0)
      throw Error(ErrorKind::argument, "threads is " + std::to_string(options.threads) + "; it must be 0 (as many as there are) or more");
    if (options.max_mem < 0)
      throw Error(ErrorKind::argument, "max_mem is " + std::to_string(options.max_mem) + " bytes; it must not be negative");

    auto visible = [](const std::vector<LocalArray>& arrays, const Layout& layout) {
      std::vector<VisiblePart> parts;
      for (Index p = 0; p < Index(arrays.size()); ++p) parts.push_back({layout.grid().world_rank(p), arrays[p].data});
      return parts;
    };
    const auto from = visible(sources_, plan.source()), to = visible(destinations_, plan.destination());
    const int threads = options.threads > 0 ? options.threads : available_processors();
    const Index total = checked_mul(plan.destination().size(), plan.element_bytes());
    CopyTaskOptions how{options.combine, INT64_MAX};
    if (threads > 1 && total >= least_threaded_bytes)
      how.task_bytes = std::max<Index>(total / (threads * tasks_per_thread), least_threaded_bytes / 2);
    tasks_ = copy_tasks(plan, from, to, preferred_direction(plan), how);
    for (const auto& task : tasks_) moved_ += task.bytes, workspace_ += task.workspace_bytes();
    if (options.max_mem > 0 && workspace_ > options.max_mem)
      throw Error(ErrorKind::memory_limit, "this move needs " + std::to_string(workspace_) + " bytes beyond its arrays, max_mem allows " +
                                               std::to_string(options.max_mem) + "; allow at least that much");
    const auto helpers = total < least_threaded_bytes ? 0 : std::min<Index>(threads, Index(tasks_.size())) - 1;
    crew_ = std::make_unique<Crew>(tasks_, int(std::max<Index>(helpers, 0)));
  }

  void start() override {
    if (running_) throw Error(ErrorKind::argument, "start() was called again before wait()");
    running_ = true;
    crew_->begin();
  }
  bool test() override {
    if (running_ && !crew_->done()) crew_->run_one();
    return !running_ || crew_->done();
  }
  void wait() override {
    if (!running_) return;
    crew_->finish();
    running_ = false;
  }
  Index workspace_bytes() const override { return workspace_; }
  Index moved_bytes() const override { return moved_; }
  std::string describe() const override {
    std::string text = "threads engine, " + std::to_string(crew_->helpers() + 1) + " threads, " + std::to_string(tasks_.size()) + " tasks";
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

  ~ThreadsMover() override { wait(); }

 private:
  static void check(const MotionPlan& plan, const std::vector<LocalArray>& arrays, const Layout& layout, const char* what) {
    if (Index(arrays.size()) != layout.processes())
      throw Error(ErrorKind::argument, std::to_string(arrays.size()) + " " + what + " arrays, the layout " + layout.to_string() +
                                           " has " + std::to_string(layout.processes()) + " ranks");
    for (Index p = 0; p < layout.processes(); ++p)
      check_local_array(arrays[p], layout, layout.grid().world_rank(p), plan.element_bytes(), what);
  }

  std::vector<LocalArray> sources_, destinations_;
  std::vector<CopyTask> tasks_;
  Index moved_ = 0, workspace_ = 0;
  std::unique_ptr<Crew> crew_;
  bool running_ = false;
};

}  // namespace

std::unique_ptr<Mover> bind_threads(const MotionPlan& plan, std::vector<LocalArray> sources,
                                    std::vector<LocalArray> destinations, const MoveOptions& options) {
  return std::make_unique<ThreadsMover>(plan, std::move(sources), std::move(destinations), options);
}

}  // namespace longshore

#include "engines/threads/tasks_mover.hpp"

#include <sched.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "movers/arrivals.hpp"
#include "movers/helpers.hpp"
#include "movers/task_queue.hpp"

namespace longshore {

namespace {

class TasksMover final : public Mover {
 public:
  TasksMover(StagesOfTasks stages, int threads, const MoveOptions& options, std::vector<BoundMemory> memory,
             Index shared_workspace_bytes, const MemoryNodes& nodes)
      : Mover(std::move(memory)), workspace_(shared_workspace_bytes) {
    std::size_t all = 0;
    for (const auto& stage : stages)
      for (const auto& of_share : stage) all += of_share.size();
    tasks_.reserve(all);
    for (auto& stage : stages) {
      const std::size_t before = tasks_.size();
      for (auto& of_share : stage) {
        std::move(of_share.begin(), of_share.end(), std::back_inserter(tasks_));
        share_ends_.push_back(tasks_.size());
      }
      widest_ = std::max(widest_, tasks_.size() - before);
      if (tasks_.size() > before) ends_.push_back(tasks_.size());
    }

    for (const auto& task : tasks_) moved_ += task.bytes, workspace_ += task.workspace_bytes();
    if (options.max_mem > 0 && workspace_ > options.max_mem)
      throw Error(ErrorKind::memory_limit, "this move needs " + std::to_string(workspace_) +
                                               " bytes beyond its arrays, " + "max_mem allows " +
                                               std::to_string(options.max_mem) + "; allow at least that much");
    const auto helpers = moved_ < least_threaded_bytes ? 0 : std::min<Index>(threads, Index(widest_)) - 1;
    std::vector<const CopyTask*> tasks;
    if (helpers > 0)
      for (const auto& task : tasks_) tasks.push_back(&task);
    queue_.emplace(helpers > 0 ? nodes_of(tasks, nodes) : std::vector<int>(tasks_.size()), nodes);
    if (helpers > 0) helpers_.start(int(helpers));
  }
  ~TasksMover() override {
    if (under_way()) run_all();
  }

  Index workspace_bytes() const override { return workspace_ + kept_plans_bytes(); }
  Index moved_bytes() const override { return moved_; }
  std::string describe() const override {
    std::string text =
        "threads engine, " + std::to_string(helpers_.count() + 1) + " threads, " + std::to_string(tasks_.size()) +
        " tasks" + (ends_.size() > 1 ? " in " + std::to_string(ends_.size()) + " phases, a dimension at a time" : "");
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
    std::fill(told_.begin(), told_.end(), 0), told_places_.assign(queue_->queues(), 0);
    part_ = 0, stage_ = 0, left_.store(tasks_.size());
    queue_->restart();
    open();
  }
  bool advance() override {
    run_one();
    return is_done();
  }
  void finish() override {
    if (!run_all()) throw_lost();
  }
  bool done() const { return left_.load(std::memory_order_acquire) == 0; }
  bool is_done() const {
    if (helpers_.gone() && !done() && !queue_->any()) throw_lost();
    return done();
  }
  [[noreturn]] static void throw_lost() {
    throw Error(ErrorKind::transport,
                "this process was forked while the move was under way, and what threads of the other process had begun "
                "is not done here: wait for moves before fork(), or start this one again");
  }

  /// The next stage. By one thread: nobody is done with the stage before, but this one.
  void open() {
    if (stage_ == ends_.size()) return;
    const std::size_t first = opened_of(stage_), end = ends_[stage_++];
    opened_.store(end, std::memory_order_release);
    for (std::size_t task = first; task < end; ++task) queue_->add(task);
    if (helpers_.count() > 0) helpers_.call();
  }
  std::size_t opened_of(std::size_t stage) const { return stage > 0 ? ends_[stage - 1] : 0; }
  void complete(std::size_t task) {
    queue_->complete(task);
    const std::size_t left = left_.fetch_sub(1, std::memory_order_acq_rel) - 1;
    const bool last_of_stage = left + opened_.load(std::memory_order_acquire) == tasks_.size();
    if (left > 0 && last_of_stage) open();
    if (last_of_stage) helpers_.tell();
  }
  /// By the helpers, too. False where none may be taken now.
  bool run_next() {
    const auto task = queue_->take();
    if (!task) return false;
    tasks_[*task].run();
    complete(*task);
    return true;
  }
  bool run_one() {
    if (part_ == 0) return run_next();
    while (part_ > 0) run_part();
    return true;
  }
  /// Where there are no helpers: runs one part of a task.
  bool run_part() {
    if (part_ == 0) {
      const auto task = queue_->take();
      if (!task) return false;
      current_ = *task;
    }
    tasks_[current_].run(part_);
    if (++part_ < tasks_[current_].parts()) return true;
    part_ = 0;
    complete(current_);
    return true;
  }
  /// False where that cannot be.
  bool run_all() {
    while (true) {
      while (run_one()) {
      }
      if (done()) return true;
      if (!helpers_.wait([this] { return done() || queue_->any(); })) return false;
    }
  }

  bool expect(Arrivals& arrivals) override {
    told_.assign(tasks_.size(), 0);
    for (std::size_t task = 0; task < tasks_.size(); ++task)
      for (std::size_t part = 0; part < tasks_[task].parts(); ++part)
        for (const auto motion : tasks_[task].motions(part)) arrivals.expect(share_of(task), motion);
    return true;
  }
  void tell(Arrivals& arrivals) override {
    for (std::size_t q = 0; q < told_places_.size(); ++q)
      for (std::size_t place = told_places_[q], taken = queue_->taken(q); place < taken; ++place) {
        const std::size_t task = queue_->task(q, place);
        // One that is not done may have been begun, if there are no helpers: it is the last that was taken.
        for (const auto parts = queue_->done(task) ? tasks_[task].parts() : part_; told_[task] < parts; ++told_[task])
          for (const auto motion : tasks_[task].motions(told_[task])) arrivals.land(share_of(task), motion);
        if (place == told_places_[q] && told_[task] == tasks_[task].parts()) ++told_places_[q];
      }
  }
  bool advance_one_unit() override {
    if (!(helpers_.count() > 0 ? run_one() : run_part())) sched_yield();
    return is_done();
  }
  std::size_t share_of(std::size_t task) const {
    return std::size_t(std::upper_bound(share_ends_.begin(), share_ends_.end(), task) - share_ends_.begin());
  }

  std::vector<CopyTask> tasks_;
  std::vector<std::size_t> share_ends_, ends_;  ///< among the tasks: those of shares, and of stages
  std::size_t widest_ = 0;                      ///< tasks of a stage at most
  Index moved_ = 0, workspace_;
  std::optional<TaskQueue> queue_;
  std::atomic<std::size_t> left_ = 0, opened_ = 0;  ///< tasks to be done, and those of all stages that are open
  std::size_t stage_ = 0;                           ///< the next to be opened
  std::size_t part_ = 0, current_ = 0;  ///< where there are no helpers: so many parts have been run of a task; 0: none
  std::vector<std::size_t> told_;       ///< parts by task, where arrivals are asked for
  std::vector<std::size_t> told_places_;            ///< by queue: all before it have been told of
  Helpers helpers_{[this] { return run_next(); }};  ///< last: they use the others
};

}  // namespace

std::unique_ptr<Mover> make_tasks_mover(StagesOfTasks stages, int threads, const MoveOptions& options,
                                        std::vector<BoundMemory> memory, Index shared_workspace_bytes,
                                        const MemoryNodes& nodes) {
  return std::make_unique<TasksMover>(std::move(stages), threads, options, std::move(memory), shared_workspace_bytes,
                                      nodes);
}

}  // namespace longshore

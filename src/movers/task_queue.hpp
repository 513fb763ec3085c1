/// movers: which task is the next, for several threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/memory_nodes.hpp"
#include "longshore/movers/local_moves.hpp"

namespace longshore {

/// The node of the machine's memory that each task writes to; all 0 where there is one. What nobody has touched yet, or
/// nobody tells, is dealt out evenly, in order: it comes to the node of whoever writes it first, who will write it ever
/// after.
std::vector<int> nodes_of(const std::vector<const CopyTask*>& tasks, const MemoryNodes& nodes);

/// Tasks by their numbers, which several threads take and run, each once a round. Where the machine's memory has
/// several nodes there is a queue for each: threads take tasks of their own node as long as there are some.
class TaskQueue {
 public:
  /// `nodes`: by task, see nodes_of(). `memory` must outlive it.
  TaskQueue(const std::vector<int>& nodes, const MemoryNodes& memory);

  /// A round begins, and none may be taken yet. All of the last one are done, or have been given up.
  void restart();
  /// This one may be taken from now on. By one thread at a time.
  void add(std::size_t task);
  /// No more are taken in this round; waits until those that have been are done.
  void close();
  /// Whether one may be taken now.
  bool any() const;
  /// One that nobody else has taken; it has to be run, and completed.
  std::optional<std::size_t> take();
  void complete(std::size_t task) { done_[task].store(round_, std::memory_order_release); }
  /// Whether it has been completed in this round; what it wrote is seen then.
  bool done(std::size_t task) const { return done_[task].load(std::memory_order_acquire) == round_; }

  /// What has been taken in this round, queue by queue, in order.
  std::size_t queues() const { return lines_.size(); }
  std::size_t taken(std::size_t queue) const;
  std::size_t task(std::size_t queue, std::size_t place) const { return lines_[queue].order[place]; }

 private:
  /// Places have the round in their upper half, so that whoever comes late, from an earlier one, takes nothing.
  struct alignas(64) Line {
    std::vector<std::uint32_t> order;
    std::atomic<std::uint64_t> next = 0, end = 0;
  };

  const MemoryNodes& memory_;
  const std::vector<int> nodes_;
  std::vector<Line> lines_;
  std::uint64_t round_ = 0;
  std::vector<std::atomic<std::uint64_t>> done_;  ///< the last round
};

}  // namespace longshore

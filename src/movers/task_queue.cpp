#include "movers/task_queue.hpp"

#include <sched.h>

#include <algorithm>

namespace longshore {

namespace {

constexpr int round_shift = 32;
constexpr std::uint64_t place_mask = (std::uint64_t(1) << round_shift) - 1;
constexpr std::uint64_t closed = ~std::uint64_t(0);  ///< behind all places

}  // namespace

std::vector<int> nodes_of(const std::vector<const CopyTask*>& tasks, const MemoryNodes& nodes) {
  if (nodes.count <= 1) return std::vector<int>(tasks.size(), 0);
  std::vector<const std::byte*> written;
  for (const auto* task : tasks) written.push_back(task->written());
  auto found = nodes.of(written);
  auto unknown = [&](std::size_t task) { return found[task] < 0 || found[task] >= nodes.count; };
  Wide bytes = 0, before = 0;
  for (std::size_t task = 0; task < tasks.size(); ++task)
    if (unknown(task)) bytes += tasks[task]->bytes;
  for (std::size_t task = 0; task < tasks.size(); ++task)
    if (unknown(task)) {
      found[task] = bytes == 0 ? 0 : int(before * nodes.count / bytes);
      before += tasks[task]->bytes;
    }
  return found;
}

TaskQueue::TaskQueue(const std::vector<int>& nodes, const MemoryNodes& memory)
    : memory_(memory), nodes_(nodes), lines_(std::size_t(std::max(memory.count, 1))), done_(nodes.size()) {
  std::vector<std::size_t> sizes(lines_.size());
  for (const int node : nodes_) ++sizes[std::size_t(node)];
  for (std::size_t k = 0; k < lines_.size(); ++k) lines_[k].order.resize(sizes[k]);
}

void TaskQueue::restart() {
  const std::uint64_t first = ++round_ << round_shift;
  for (auto& line : lines_) line.next.store(first), line.end.store(first);
}

void TaskQueue::add(std::size_t task) {
  auto& line = lines_[std::size_t(nodes_[task])];
  const auto end = line.end.load(std::memory_order_relaxed);
  line.order[end & place_mask] = std::uint32_t(task);
  line.end.store(end + 1);
}

void TaskQueue::close() {
  for (auto& line : lines_) {
    const auto next = line.next.exchange(closed);
    for (std::size_t place = 0; next != closed && place < (next & place_mask); ++place)
      while (!done(line.order[place])) sched_yield();
  }
}

bool TaskQueue::any() const {
  return std::any_of(lines_.begin(), lines_.end(), [](const Line& line) { return line.next.load() < line.end.load(); });
}

std::optional<std::size_t> TaskQueue::take() {
  const std::size_t n = lines_.size(), mine = n > 1 ? std::size_t(memory_.here()) : 0;
  for (std::size_t k = 0; k < n; ++k) {
    auto& line = lines_[(mine + k) % n];
    auto place = line.next.load();
    while (place < line.end.load())
      if (line.next.compare_exchange_weak(place, place + 1)) return line.order[place & place_mask];
  }
  return {};
}

std::size_t TaskQueue::taken(std::size_t queue) const { return lines_[queue].next.load() & place_mask; }

}  // namespace longshore

/// The `threads` engine for layouts: all ranks' arrays are in this process, and data goes straight from source to destination.
#include <algorithm>

#include "longshore/movers/local_moves.hpp"
#include "movers/threads/tasks_mover.hpp"

namespace longshore {

namespace {

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

void check(const MotionPlan& plan, const std::vector<LocalArray>& arrays, const Layout& layout, const char* what) {
  if (Index(arrays.size()) != layout.processes())
    throw Error(ErrorKind::argument, std::to_string(arrays.size()) + " " + what + " arrays, the layout " + layout.to_string() +
                                         " has " + std::to_string(layout.processes()) + " ranks");
  for (Index p = 0; p < layout.processes(); ++p)
    check_local_array(arrays[p], layout, layout.grid().world_rank(p), plan.element_bytes(), what);
}

std::vector<VisiblePart> visible(const std::vector<LocalArray>& arrays, const Layout& layout) {
  std::vector<VisiblePart> parts;
  for (Index p = 0; p < Index(arrays.size()); ++p) parts.push_back({layout.grid().world_rank(p), arrays[p].data});
  return parts;
}

}  // namespace

std::unique_ptr<Mover> bind_threads(const MotionPlan& plan, std::vector<LocalArray> sources,
                                    std::vector<LocalArray> destinations, const MoveOptions& options) {
  check(plan, sources, plan.source(), "source");
  check(plan, destinations, plan.destination(), "destination");
  check_disjoint(sources, destinations, plan);
  const int threads = threads_of(options);
  const Index total = checked_mul(plan.destination().size(), plan.element_bytes());
  auto tasks = copy_tasks(plan, visible(sources, plan.source()), visible(destinations, plan.destination()),
                          preferred_direction(plan), {options.combine, task_bytes(total, threads)});
  std::vector<BoundMemory> memory;
  auto hold = [&memory](const std::vector<LocalArray>& arrays, const Layout& layout, const char* what) {
    for (std::size_t p = 0; p < arrays.size(); ++p)
      memory.push_back({arrays[p].keeper, what, layout.grid().world_rank(Index(p))});
  };
  hold(sources, plan.source(), "source array of rank"), hold(destinations, plan.destination(), "destination array of rank");
  return make_tasks_mover(std::move(tasks), threads, options, std::move(memory));
}

}  // namespace longshore

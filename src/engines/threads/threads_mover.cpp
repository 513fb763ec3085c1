/// The `threads` engine for layouts: all ranks' arrays are in this
/// process, and data goes straight from source to destination.
#include "engines/threads/tasks_mover.hpp"
#include "longshore/movers/local_moves.hpp"
#include "movers/apart.hpp"

namespace longshore {

namespace {

void check(const MotionPlan& plan, const std::vector<LocalArray>& arrays, const Layout& layout, const char* what) {
  if (Index(arrays.size()) != layout.processes())
    throw Error(ErrorKind::argument, std::to_string(arrays.size()) + " " + what + " arrays, the layout " +
                                         layout.to_string() + " has " + std::to_string(layout.processes()) + " ranks");
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
  Apart apart;
  std::vector<BoundMemory> memory;
  auto take = [&](const std::vector<LocalArray>& arrays, const Layout& layout, bool written, const char* what) {
    for (std::size_t p = 0; p < arrays.size(); ++p) {
      const Index rank = layout.grid().world_rank(Index(p));
      apart.add(arrays[p], layout, rank, plan.element_bytes(), written);
      memory.push_back({arrays[p].keeper, what, rank});
    }
  };
  take(sources, plan.source(), false, "source array of rank");
  take(destinations, plan.destination(), true, "destination array of rank");
  apart.check();
  const int threads = threads_of(options);
  const Index total = checked_mul(plan.destination().size(), plan.element_bytes());
  auto tasks = copy_tasks(plan, visible(sources, plan.source()), visible(destinations, plan.destination()),
                          preferred_direction(plan), {options.combine, task_bytes(total, threads)});
  return make_tasks_mover(std::move(tasks), threads, options, std::move(memory));
}

}  // namespace longshore

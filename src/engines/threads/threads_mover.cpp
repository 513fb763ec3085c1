/// The `threads` engine: all ranks' arrays are in this process, and data goes straight from source to destination.
#include "engines/threads/tasks_mover.hpp"
#include "movers/checked_mover.hpp"
#include "movers/helpers.hpp"
#include "movers/proxy_mover.hpp"
#include "movers/share.hpp"

namespace longshore {

namespace {

std::vector<Part> parts_of(std::vector<LocalArray> arrays, const Layout& layout, const char* what) {
  if (Index(arrays.size()) != layout.processes())
    throw Error(ErrorKind::argument, std::to_string(arrays.size()) + " " + what + " arrays, the layout " +
                                         layout.to_string() + " has " + std::to_string(layout.processes()) + " ranks");
  std::vector<Part> parts;
  for (std::size_t p = 0; p < arrays.size(); ++p)
    parts.push_back({layout.grid().world_rank(Index(p)), std::move(arrays[p])});
  return parts;
}

}  // namespace

std::unique_ptr<Mover> bind_threads(const std::vector<Field>& fields, const MoveOptions& options) {
  const auto stages = stages_of(fields, options.checked, options.max_mem > 0);
  // Combining transfers that meet in a point keep the plan's order, so that results do not depend on the threads.
  int threads = threads_of(options);
  OverlapCheck overlaps;
  resolve(stages, {.wrap = true, .world = "the process", .checked = options.checked}, 0, overlaps);
  overlaps.check();
  Index total = 0, programs = 0;
  for (const auto& stage : stages)
    for (const auto& share : stage) {
      total = checked_add(total, moved_bytes(share->transfers()));
      if (share->in_order()) threads = 1;
    }

  StagesOfTasks tasks(stages.size());
  std::vector<BoundMemory> memory;
  CheckedTransfers checked;
  for (std::size_t k = 0; k < stages.size(); ++k)
    for (const auto& share : stages[k]) {
      std::vector<const Transfer*> transfers;
      transfers.reserve(share->transfers().local.size());
      for (const auto& transfer : share->transfers().local) transfers.push_back(&transfer);
      auto seen = [&share](const Transfer& transfer) {
        return Seen{share->data(Side::source, transfer), share->data(Side::destination, transfer)};
      };
      tasks[k].push_back(share->copies(transfers, seen, share->direction(), task_bytes(total, threads), threads));
      programs = checked_add(programs, share->programs_bytes());
      if (k > 0) continue;
      for (auto& bound : share->memory()) memory.push_back(std::move(bound));
      if (options.checked) checked.add(*share);
    }
  auto mover = make_tasks_mover(std::move(tasks), threads, options, std::move(memory), programs);
  if (options.proxy) mover = make_proxy_mover(std::move(mover));
  if (options.checked) mover = make_checked_mover(std::move(mover), std::move(checked));
  Arrivals::follow(*mover, stages, 0);
  return mover;
}

std::unique_ptr<Mover> bind_threads(const MotionPlan& plan, std::vector<LocalArray> sources,
                                    std::vector<LocalArray> destinations, const MoveOptions& options) {
  return bind_threads({Field(plan, parts_of(std::move(sources), plan.source(), "source"),
                             parts_of(std::move(destinations), plan.destination(), "destination"), options.update)},
                      options);
}

std::unique_ptr<Mover> bind_threads(const BlockPlan& plan, XArray source, XArray destination,
                                    const MoveOptions& options) {
  return bind_threads(
      {Field(plan, std::move(source), std::move(destination), options.update, options.visit, {}, options.phases)},
      options);
}

}  // namespace longshore

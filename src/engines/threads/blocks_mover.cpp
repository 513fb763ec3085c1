/// The `threads` engine for blocks: motions become stretches of programs, and stretches tasks.
#include "engines/threads/tasks_mover.hpp"
#include "longshore/plans/block_algebra.hpp"
#include "movers/block_copies.hpp"
#include "movers/checked_mover.hpp"
#include "movers/proxy_mover.hpp"

namespace longshore {

std::unique_ptr<Mover> bind_threads(const BlockPlan& plan, XArray source, XArray destination,
                                    const BlockOptions& options) {
  if (plan.rank())
    throw Error(ErrorKind::argument, "the plan is rank " + std::to_string(*plan.rank()) +
                                         "'s; the threads engine has every rank's blocks and needs everybody's plan");
  for (const auto* array : {&source, &destination})
    if (array->rank())
      throw Error(ErrorKind::argument, "an array has storage for the blocks of rank " + std::to_string(*array->rank()) +
                                           " alone; the threads engine needs all of them");
  check_arrays(plan, source, destination, options);
  check_races(plan, source.same_storage(destination), !options.reduction.is_replace());
  check_apart(source, destination);

  BlockCopies copies(options.visit, source.format().order, options.reduction);
  std::vector<Stretch> stretches;
  Index total = 0;
  const auto motions = plan.motions();
  for (const auto& motion : copies.woven(motions, source)) {
    stretches.push_back(copies.direct(motion, source.grid(motion.source), destination.grid(motion.destination)));
    total = checked_add(total, checked_mul(stretches.back().last, source.element_bytes()));
  }
  // Combining motions that meet in a point keep the plan's order, so that results do not depend on the threads.
  const int threads = options.reduction.is_replace() ? threads_of({{}, options.threads, 0}) : 1;
  auto mover =
      make_tasks_mover(batch(stretches, task_bytes(total, threads)), threads, {{}, options.threads, options.max_mem},
                       bound_memory(source, destination), copies.workspace_bytes());
  if (options.proxy) mover = make_proxy_mover(std::move(mover));
  if (options.checked) mover = make_checked_mover(std::move(mover), {motions, motions, source, destination, options});
  return mover;
}

}  // namespace longshore

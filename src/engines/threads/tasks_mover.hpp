/// Tasks carried out by threads: what every plan bound to the `threads` engine ends in.
#pragma once

#include <memory>

#include "longshore/movers/local_moves.hpp"
#include "longshore/movers/mover.hpp"

namespace longshore {

/// Below this a second thread costs more than it gains.
inline constexpr Index least_threaded_bytes = 256 * 1024;

/// How many threads `options.threads` means here: 0 is as many as the process
/// may run on. Throws `Error(argument)` for options that mean nothing.
int threads_of(const MoveOptions& options);
/// About how many bytes a task should have, so that a thread that started
/// late still finds its share; all of them where one thread does the work.
Index task_bytes(Index total, int threads);

/// By stage and by its shares.
using StagesOfTasks = std::vector<std::vector<std::vector<CopyTask>>>;

/// A mover that runs tasks on so many threads, the caller's among them, those of a stage when all before are done.
/// `shared_workspace_bytes` is what the tasks have in common. Throws `Error(memory_limit)` where the tasks take more
/// memory than the options allow.
std::unique_ptr<Mover> make_tasks_mover(StagesOfTasks stages, int threads, const MoveOptions& options,
                                        std::vector<BoundMemory> memory, Index shared_workspace_bytes = 0);

}  // namespace longshore

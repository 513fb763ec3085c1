/// Tasks carried out by threads: what every plan bound to the `threads` engine ends in.
#pragma once

#include <memory>

#include "core/memory_nodes.hpp"
#include "longshore/movers/local_moves.hpp"
#include "longshore/movers/mover.hpp"

namespace longshore {

/// By stage and by its shares.
using StagesOfTasks = std::vector<std::vector<std::vector<CopyTask>>>;

/// A mover that runs tasks on so many threads, the caller's among them, those of a stage when all before are done.
/// `shared_workspace_bytes` is what the tasks have in common. Throws `Error(memory_limit)` where the tasks take more
/// memory than the options allow. `nodes` must outlive it.
std::unique_ptr<Mover> make_tasks_mover(StagesOfTasks stages, int threads, const MoveOptions& options,
                                        std::vector<BoundMemory> memory, Index shared_workspace_bytes = 0,
                                        const MemoryNodes& nodes = memory_nodes());

}  // namespace longshore

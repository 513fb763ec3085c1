/// model: what it costs to have the processes of a layout on other ranks.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "longshore/model/machine_profile.hpp"
#include "longshore/plans/motion_plan.hpp"

namespace longshore {

/// What so many bytes cost that go from one rank to another.
using MessageCost = std::function<Index(Index bytes)>;

/// What is sent to each process of a plan's destination were it on each of these distinct ranks, row by row, a row a
/// process: nothing for what that rank has, `within` or `across` nodes of so many consecutive ranks (0: one node) for
/// what each other rank has. Sources stay where they are, so that processes on other ranks cost the sum of their
/// entries: which are the best is a linear assignment problem.
std::vector<Index> placement_costs(const MotionPlan& plan, std::span<const Index> ranks, const MessageCost& within,
                                   const MessageCost& across, Index ranks_per_node);
/// In bytes that go to other ranks.
std::vector<Index> placement_bytes(const MotionPlan& plan, std::span<const Index> ranks);
/// In nanoseconds that messages take, within a node in the fastest way there is. Throws `Error(argument)` where the
/// profile does not say what these are.
std::vector<Index> placement_nanoseconds(const MotionPlan& plan, std::span<const Index> ranks,
                                         const MachineProfile& profile, Index ranks_per_node);

}  // namespace longshore

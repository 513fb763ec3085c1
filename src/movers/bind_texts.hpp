/// What ranks say to each other when they bind: who was given what, and what of it cannot be. All engines say it alike.
#pragma once

#include <string>

#include "core/disagreement.hpp"
#include "longshore/movers/mover.hpp"

namespace longshore {

/// What is to be moved; `element` says what an element is ("<f8"), if that is known. `lists`: see `BlockPlan::facts`.
Facts block_facts(const BlockPlan& plan, const XArray& source, const XArray& destination, const BlockOptions& options,
                  const std::string& element, bool lists);
Facts layout_facts(const MotionPlan& plan, const Combine& combine, const std::string& element = {});

/// Throws `Error(argument)` where the plan needs more ranks than there are, or plan or arrays belong to another rank
/// than this one. `world`: what the ranks are of, "the communicator".
void check_owner(const BlockPlan& plan, const XArray& source, const XArray& destination, Index rank, Index ranks,
                 const char* world);
/// Throws `Error(argument)` and `Error(type)` where options do not suit the plan.
void check_layout_options(const MotionPlan& plan, const Combine& combine, Index max_mem);

}  // namespace longshore

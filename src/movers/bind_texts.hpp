/// What ranks say to each other when they bind: who was given what. All engines say it alike.
#pragma once

#include <string>

#include "core/disagreement.hpp"
#include "longshore/movers/mover.hpp"

namespace longshore {

/// What is to be moved; `element` says what an element is ("<f8"), if that is known.
Facts block_facts(const BlockPlan& plan, const XArray& source, const XArray& destination, const Update& update,
                  Order visit, const std::string& element);
Facts layout_facts(const MotionPlan& plan, const Update& update, const std::string& element = {});

}  // namespace longshore

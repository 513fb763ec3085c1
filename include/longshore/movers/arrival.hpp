/// `Arrival`: a piece of a destination that a move has completed, and what may be done with it while the rest moves.
#pragma once

#include <vector>

#include "longshore/regions/point_list.hpp"
#include "longshore/sequences/runs.hpp"

namespace longshore {

/// What one rank of a plan has brought to another, or to itself, of one field. Between layouts it is all that the one
/// has for the other; between blocks it is one motion.
struct Arrival {
  Index field = 0;        ///< which of those that were bound together
  Index source_rank = 0;  ///< of the plan, as is
  Index destination_rank = 0;
  // Between blocks.
  Index block = -1;    ///< of the destination; -1 between layouts
  Region region{};     ///< of it, ghost cells or not
  PointList points{};  ///< which points of the region, where the motion is a list; else none: all
  // Between layouts: indices of each destination dimension, of the array and of the destination rank's local one. The
  // piece is their product.
  std::vector<Runs> global_indices{}, local_indices{};
};

}  // namespace longshore

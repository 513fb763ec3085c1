/// plans: intersections that are not wanted whole.
#pragma once

#include "longshore/plans/motion_plan.hpp"

namespace longshore {

/// What `intersect` finds, but where more than so many blocks would have to be looked at, only the beginning of it.
PairedRuns beginning_of_intersection(const Distribution& source, Index source_coordinate,
                                     const Distribution& destination, Index destination_coordinate, Index blocks);

}  // namespace longshore

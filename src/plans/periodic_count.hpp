/// plans: how much a progression of intervals has in common with a periodic set, in closed form.
#pragma once

#include "longshore/core/checked.hpp"

namespace longshore {

/// `count` intervals of `length`, `step` apart; the first begins at `first`, at least 0.
struct IntervalsInStep {
  Wide first, step;
  Index length, count;
};

/// The numbers in these intervals whose remainder modulo `cycle` is below `block`, with 0 < block < cycle. Numbers that
/// are in several intervals count several times. It takes as long as Euclid's algorithm. What is given and what is
/// found must be below 2^63.
Index periodic_count(const IntervalsInStep& intervals, Index cycle, Index block);

}  // namespace longshore

/// `Interval`: the integers from one on and before another; and whether positions are within a sequence.
#pragma once

#include "longshore/core/checked.hpp"

namespace longshore {

/// The integers [first, last); where there are none, `first` is `last`.
struct Interval {
  Index first = 0, last = 0;
  Index size() const { return last - first; }
  bool empty() const { return first >= last; }
  bool operator==(const Interval&) const = default;
};

[[noreturn]] void refuse_position(Index position, Index size);
[[noreturn]] void refuse_positions(Interval positions, Index size);

/// Throw `Error(argument)` where a position, or positions [first, last), are outside [0, size).
inline void check_position(Index position, Index size) {
  if (position < 0 || position >= size) refuse_position(position, size);
}
inline void check_positions(Index first, Index last, Index size) {
  if (first < 0 || last > size || first > last) refuse_positions({first, last}, size);
}

}  // namespace longshore

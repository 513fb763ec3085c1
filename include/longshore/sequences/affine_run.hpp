/// Integers in step: a loop, and a loop that begins somewhere.
#pragma once

#include "longshore/core/checked.hpp"

namespace longshore {

/// `count` things, `stride` apart.
struct Loop {
  Index count = 1, stride = 0;
  bool operator==(const Loop&) const = default;
};

/// `count` integers from `first` on, `step` apart.
struct AffineRun {
  Index first = 0, step = 1, count = 0;
  Index last() const { return first + step * (count - 1); }
  Index lowest() const { return step < 0 ? last() : first; }
  Index highest() const { return step < 0 ? first : last(); }
  bool operator==(const AffineRun&) const = default;
};

}  // namespace longshore

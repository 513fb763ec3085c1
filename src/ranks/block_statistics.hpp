/// What the analysis asks of each 128 members, in a few instructions a member.
#pragma once

#include "longshore/core/checked.hpp"

namespace longshore::ranks {

/// Of n values x[0, n) and the two before them; steps are x[k] - x[k - 1].
struct BlockStatistics {
  Index least_step, largest_step;
  Index lowest, highest;
  Index breaks;    ///< steps other than the one before
  Index ones;      ///< steps of one
  Index descents;  ///< steps that are not upwards
  int width;       ///< bits of what is left over along the better of two lines: level, and from end to end
};

constexpr Index block_members = 128;

/// Values as numbers that arithmetic is fast with on every machine: ranks are below 2^52, so nothing is rounded.
struct BlockValues {
  static constexpr Index before = 8;  ///< room for the two values before, so that x[0] is aligned
  alignas(64) double x[before + block_members];
  /// False where a value is negative or beyond 2^52.
  bool load(const Index* values, Index n);
  /// Makes the last two values those before the next block.
  void advance() { x[before - 2] = x[before + block_members - 2], x[before - 1] = x[before + block_members - 1]; }
};

/// In vectors as wide as this machine has them.
BlockStatistics block_statistics(BlockValues& values, Index n);
/// The twin, a value at a time.
BlockStatistics plain_block_statistics(const BlockValues& values, Index n);

}  // namespace longshore::ranks

/// Space-filling curves: one number for many coordinates, near for what is near.
#pragma once

#include <cstdint>
#include <vector>

#include "longshore/core/checked.hpp"

namespace longshore {

/// The curves through the points of a box, at 64 bits in all: where the box is wider, points share a number.
class CurveKeys {
 public:
  /// Points p with lower <= p <= upper.
  CurveKeys(std::vector<Index> lower, const std::vector<Index>& upper);
  std::uint64_t morton(const Index* point) const;
  /// Hilbert's, by Skilling's transposed form: neighbours on the curve are neighbours in space.
  std::uint64_t hilbert(const Index* point) const;

 private:
  std::uint64_t cell(const Index* point, std::size_t d) const {
    return (std::uint64_t(point[d]) - std::uint64_t(lower_[d])) >> shift_[d];
  }
  static std::uint64_t interleave(const std::uint64_t* cells, std::size_t dims, int bits);

  std::vector<Index> lower_;
  std::size_t dims_;  ///< that count: one bit of each at least
  int bits_;          ///< of each
  std::vector<int> shift_;
};

}  // namespace longshore

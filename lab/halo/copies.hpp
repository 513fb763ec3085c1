/// The copy loops that one writes by hand for the faces of boxes.
#pragma once

#include <vector>

#include <longshore/layouts/grid.hpp>

namespace longshore::bench {

/// Doubles in runs, in three loops, the innermost first.
struct RunsCopy {
  struct Loop {
    Index count = 1, to = 0, from = 0;
    bool operator==(const Loop&) const = default;
  };
  double* to = nullptr;
  const double* from = nullptr;
  Index run = 0;
  Loop loops[3];
};

/// The cells of a region in a grid whose first dimension is contiguous.
struct Cells {
  double* first = nullptr;
  Index extents[3] = {}, strides[3] = {};

  Cells(const Grid& grid, const Region& region);
  /// The same cells lying densely, at a place of a message.
  Cells dense(double* at) const;
  Index size() const { return extents[0] * extents[1] * extents[2]; }
  bool contiguous() const;
};

RunsCopy copy_of(const Cells& to, const Cells& from);
/// Neighbours in the list that have short runs and differ in nothing but their places are joined: the two ends of a row
/// share a cache line with the next row's, so both x faces are visited in one sweep.
std::vector<RunsCopy> joined(const std::vector<RunsCopy>& copies);
void carry_out(const std::vector<RunsCopy>& copies);

}  // namespace longshore::bench

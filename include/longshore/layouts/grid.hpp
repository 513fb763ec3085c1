/// `Grid`: an array over a region in one address space (the Data Mover, section 2).
#pragma once

#include "longshore/regions/region.hpp"

namespace longshore {

/// Where the elements of a region lie, ghost cells included. A view: the memory is somebody else's.
struct Grid {
  Region region;              ///< what there are elements for
  std::byte* data = nullptr;  ///< the element at region.lower()
  Point strides;              ///< bytes, one a dimension, of any sign
  Index element_bytes = 0;

  /// Bytes from `data` to a point's element. Throws `Error(argument)` for points outside the region.
  Index offset_of(const Point& point) const;
};

}  // namespace longshore

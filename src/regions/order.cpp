#include "longshore/regions/order.hpp"

#include <algorithm>

namespace longshore {

Point dense_strides(std::span<const Index> extents, Order order, Index element_bytes) {
  const std::size_t dims = extents.size();
  Point strides(dims);
  Index stride = element_bytes;
  for (std::size_t k = 0; k < dims; ++k) {
    const std::size_t d = order == Order::C ? dims - 1 - k : k;
    strides[d] = stride;
    stride = checked_mul(stride, std::max<Index>(1, extents[d]));
  }
  return strides;
}

}  // namespace longshore

#include "longshore/layouts/grid.hpp"

namespace longshore {

Index Grid::offset_of(const Point& point) const {
  if (!region.contains(point))
    throw Error(ErrorKind::argument,
                "point " + point.to_string() + " is not in the grid's region " + region.to_string());
  Index offset = 0;
  for (std::size_t d = 0; d < point.dims(); ++d)
    offset = checked_add(offset, checked_mul(point[d] - region.lower()[d], strides[d]));
  return offset;
}

std::vector<Index> Grid::dense_strides(const Region& region, Order order, Index element_bytes) {
  const std::size_t dims = region.dims();
  std::vector<Index> strides(dims);
  Index stride = element_bytes;
  for (std::size_t k = 0; k < dims; ++k) {
    const std::size_t d = order == Order::C ? dims - 1 - k : k;
    strides[d] = stride;
    stride = checked_mul(stride, std::max<Index>(1, region.extent(d)));
  }
  return strides;
}

}  // namespace longshore

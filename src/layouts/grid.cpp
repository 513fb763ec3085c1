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

}  // namespace longshore

/// In which order the points of a box are visited, and the elements of an array lie.
#pragma once

#include <span>

#include "longshore/regions/point.hpp"

namespace longshore {

/// C: the last index varies fastest. F (column-major, the Data Mover's order): the first.
enum class Order : char { C = 'C', F = 'F' };

/// The strides of a dense array of these extents, in bytes; extents of 0 count as 1.
Point dense_strides(std::span<const Index> extents, Order order, Index element_bytes);

}  // namespace longshore

/// In which order the points of a box are visited, and the elements of an array lie.
#pragma once

namespace longshore {

/// C: the last index varies fastest. F (column-major, the Data Mover's order): the first.
enum class Order : char { C = 'C', F = 'F' };

}  // namespace longshore

/// Arrays of one layout, as Python gives them, until a field takes them.
#pragma once

#include <vector>

#include "longshore/movers/mover.hpp"

namespace longshore::python {

struct Parts {
  std::vector<Part> parts;
};

}  // namespace longshore::python

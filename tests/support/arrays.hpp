/// Memory for all local arrays of a layout.
#pragma once

#include "longshore/movers/mover.hpp"
#include "support/dense.hpp"

namespace longshore::test {

struct Arrays {
  Layout layout;
  Index element_bytes;
  std::vector<Bytes> memory;  ///< by process

  Arrays(Layout layout_, Index element_bytes_) : layout(std::move(layout_)), element_bytes(element_bytes_) {
    for (Index p = 0; p < layout.processes(); ++p)
      memory.emplace_back(std::size_t(layout.allocated_size(rank(p)) * element_bytes), untouched);
  }

  Index rank(Index process) const { return layout.grid().world_rank(process); }
  void clear() {
    for (auto& part : memory) std::fill(part.begin(), part.end(), untouched);
  }
  std::vector<LocalArray> local() {
    std::vector<LocalArray> result;
    for (Index p = 0; p < layout.processes(); ++p)
      result.push_back({memory[std::size_t(p)].data(), layout.local_shape(rank(p)),
                        layout.local_strides(rank(p), element_bytes), false, nullptr});
    return result;
  }
};

}  // namespace longshore::test

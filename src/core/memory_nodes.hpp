/// core: the nodes of a machine's memory, which threads and pages are near to.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace longshore {

/// Asked of the machine, or told by tests.
struct MemoryNodes {
  int count = 1;
  /// The node of the processor that the calling thread is on. Not called where there is one node.
  std::function<int()> here{};
  /// Of the pages that these addresses are in; -1: nobody has touched it yet, or the system does not tell. Not called
  /// where there is one node.
  std::function<std::vector<int>(std::span<const std::byte* const>)> of{};
};

/// Those of this machine; one where it does not say.
const MemoryNodes& memory_nodes();

}  // namespace longshore

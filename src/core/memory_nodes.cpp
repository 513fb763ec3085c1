#include "core/memory_nodes.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace longshore {

namespace {

/// One more than the last of a list such as "0-1,4".
int count_nodes() {
  std::ifstream file("/sys/devices/system/node/has_memory");
  std::string list;
  if (!std::getline(file, list)) return 1;
  const auto last = list.find_last_of("-,");
  return std::atoi(list.c_str() + (last == std::string::npos ? 0 : last + 1)) + 1;
}

int node_here() {
  unsigned processor = 0, node = 0;
  return syscall(SYS_getcpu, &processor, &node, nullptr) == 0 ? int(node) : 0;
}

std::vector<int> nodes_of(std::span<const std::byte* const> addresses) {
  std::vector<int> nodes(addresses.size(), -1);
  // Where no nodes are given, pages stay where they are and it is told where that is, or why nobody knows: less than 0.
  if (syscall(SYS_move_pages, 0, addresses.size(), addresses.data(), nullptr, nodes.data(), 0) != 0)
    nodes.assign(addresses.size(), -1);
  for (int& node : nodes)
    if (node < 0) node = -1;
  return nodes;
}

}  // namespace

const MemoryNodes& memory_nodes() {
  static const MemoryNodes nodes{count_nodes(), node_here, nodes_of};
  return nodes;
}

}  // namespace longshore

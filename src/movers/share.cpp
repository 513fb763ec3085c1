#include "movers/share.hpp"

#include <algorithm>

namespace longshore {

Index moved_bytes(const Transfers& transfers) {
  Index bytes = 0;
  for (const auto* list : {&transfers.incoming, &transfers.local})
    for (const auto& transfer : *list) bytes = checked_add(bytes, transfer.bytes);
  return bytes;
}

void sort_by_peers(std::vector<Transfer>& transfers) {
  std::stable_sort(transfers.begin(), transfers.end(),
                   [](const Transfer& a, const Transfer& b) { return a.peer < b.peer; });
}

}  // namespace longshore

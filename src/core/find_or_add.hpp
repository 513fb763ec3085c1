/// core: what is equal among the last few of a list. Motions, strides and runs that follow each other are mostly of a
/// few kinds, and to look at all that were ever different would take too long.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace longshore {

/// The place of the one among the last few that `equal` says is it; else of what `make` gives, which is added.
template <class T, class Equal, class Make>
std::size_t find_or_add(std::vector<T>& known, Equal&& equal, Make&& make) {
  constexpr std::size_t looked_at = 8;
  for (std::size_t k = known.size(); k-- > 0 && known.size() - k <= looked_at;)
    if (equal(known[k])) return k;
  known.push_back(make());
  return known.size() - 1;
}

}  // namespace longshore

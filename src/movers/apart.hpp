/// Finds arrays that share memory where one of them is written.
#pragma once

#include <vector>

#include "longshore/movers/mover.hpp"

namespace longshore {

class Apart {
 public:
  /// A block's grid; with `rank` it is named too.
  void add(const Grid& grid, bool written, Index block, Index rank = nobody);
  /// A rank's array of a layout.
  void add(const LocalArray& array, const Layout& layout, Index rank, Index element_bytes, bool written);
  /// Throws `Error(buffer)` that names two arrays which should have been apart. `same`: sources are the destinations.
  void check(bool same = false);

 private:
  static constexpr Index nobody = -1, no_block = -1;
  struct Span {
    const std::byte *first, *last;
    bool written;
    Index block, rank;
    std::string name(bool same) const;
  };
  std::vector<Span> spans_;
};

}  // namespace longshore

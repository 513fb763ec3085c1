/// Finds arrays that share memory where one of them is written.
#pragma once

#include <vector>

#include "longshore/movers/mover.hpp"

namespace longshore {

class OverlapCheck {
 public:
  enum class Role { source, destination, both };
  static constexpr Index nobody = -1;

  /// A block's grid; with `rank` it is named too.
  void add(const Grid& grid, Role role, Index block, Index rank = nobody);
  /// All grids of an array, which lie in one memory that is its own. It must outlive check().
  void add(const XArray& array, Role role);
  /// A rank's array of a layout.
  void add(const LocalArray& array, const Layout& layout, Index rank, Index element_bytes, Role role);
  /// Throws `Error(buffer)` that names two arrays which should have been apart.
  void check();

 private:
  static constexpr Index no_block = -1;
  struct Span {
    const std::byte *first, *last;
    Role role;
    Index block, rank;
    const XArray* array = nullptr;  ///< all of whose grids these are
    bool written() const { return role != Role::source; }
    /// Of what shares memory with another.
    std::string name(const Span& other) const;
  };
  std::vector<Span> spans_;
};

}  // namespace longshore

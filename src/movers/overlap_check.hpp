/// Finds arrays that share memory where one of them is written.
#pragma once

#include <vector>

#include "longshore/movers/mover.hpp"

namespace longshore {

class OverlapCheck {
 public:
  /// What an array is called: "destination ", or nothing where it is both.
  static constexpr const char *source = "source ", *destination = "destination ", *both = "";
  static constexpr Index nobody = -1;

  /// A block's grid; with `rank` it is named too.
  void add(const Grid& grid, const char* role, Index block, Index rank = nobody);
  /// All grids of an array, which lie in one memory that is its own. It must outlive check().
  void add(const XArray& array, const char* role);
  /// A rank's array of a layout.
  void add(const LocalArray& array, const Layout& layout, Index rank, Index element_bytes, const char* role);
  /// Throws `Error(buffer)` that names two arrays which should have been apart.
  void check();

 private:
  static constexpr Index no_block = -1;
  struct Span {
    const std::byte *first, *last;
    const char* role;
    Index block, rank;
    const XArray* array = nullptr;  ///< all of whose grids these are
    bool written() const { return role != source; }
    /// Of what shares memory with another.
    std::string name(const Span& other) const;
  };
  std::vector<Span> spans_;
};

}  // namespace longshore

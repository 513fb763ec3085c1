/// layouts: who owns which indices and where they lie. `Distribution` is one dimension of a layout, in HPF's words.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "longshore/sequences/interval.hpp"
#include "longshore/sequences/runs.hpp"

namespace longshore {

/// How the indices [0, extent) of one array dimension are dealt
/// to the coordinates [0, coordinates) of one grid dimension.
///
/// Block-cyclic kinds deal blocks of a *template*: cell t = index + origin lies in block t / block, and block k belongs
/// to coordinate (k + source) mod coordinates. Within a coordinate, indices are stored densely in ascending order.
class Distribution {
 public:
  enum class Kind {
    collapsed,      ///< `*`: one coordinate owns everything
    block,          ///< `BLOCK` or `BLOCK(b)`: at most one block a coordinate
    cyclic,         ///< `CYCLIC(b)`
    general_block,  ///< `GEN_BLOCK(n0, n1, ...)`: one block of given size a coordinate
  };

  static Distribution collapsed(Index extent);
  /// block < 0: HPF's ceil(extent / coordinates). An explicit
  /// block must satisfy block * coordinates >= extent + origin.
  static Distribution block(Index extent, Index coordinates, Index block = -1, Index source = 0, Index origin = 0);
  static Distribution cyclic(Index extent, Index coordinates, Index block = 1, Index source = 0, Index origin = 0);
  /// sizes must add up to extent.
  static Distribution general_block(Index extent, std::vector<Index> sizes);

  Kind kind() const { return kind_; }
  Index extent() const { return extent_; }
  Index coordinates() const { return coordinates_; }
  Index block() const { return block_; }  ///< block size; the extent for `collapsed`, 0 for `general_block`
  Index source() const { return source_; }
  Index origin() const { return origin_; }
  const std::vector<Index>& sizes() const& { return sizes_; }
  std::vector<Index> sizes() && { return std::move(sizes_); }
  /// True when every coordinate owns at most one interval.
  bool intervals() const;

  Index count(Index coordinate) const;                ///< indices owned
  Index largest_count() const;                        ///< by any coordinate
  Index owner(Index index) const;                     ///< coordinate
  Index local(Index index) const;                     ///< position of an index in its owner's storage
  Index global(Index coordinate, Index local) const;  ///< inverse of `local`
  /// The number of indices below `index` that `coordinate` owns:
  /// where the window starting at `index` begins in its storage.
  Index count_below(Index coordinate, Index index) const;
  Runs owned(Index coordinate) const;  ///< in closed form
  /// The single interval of a coordinate; requires `intervals()`.
  Interval interval(Index coordinate) const;
  /// The same dealing seen by the sub-array [first, last).
  Distribution window(Index first, Index last) const;

  std::string to_string() const;  ///< HPF's words: "CYCLIC(64)"
  bool operator==(const Distribution&) const = default;

 private:
  Distribution() = default;
  Kind kind_ = Kind::collapsed;
  Index extent_ = 0, coordinates_ = 1, block_ = 0, source_ = 0, origin_ = 0;
  bool explicit_block_ = false;  ///< BLOCK(b) rather than BLOCK: only for printing
  std::vector<Index> sizes_;
  std::vector<Index> starts_;  ///< prefix sums of sizes_
  Index template_coordinate(Index coordinate) const;
};

}  // namespace longshore

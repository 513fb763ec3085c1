/// `Layout`: which rank owns which global indices of an array and where they sit in that rank's memory.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "longshore/layouts/distribution.hpp"
#include "longshore/ranks/rank_map.hpp"
#include "longshore/regions/order.hpp"

namespace longshore {

/// The process grid of a layout: extents, which of them hold
/// replicas, how ranks number it, and which world ranks they are.
struct ProcessGrid {
  std::vector<Index> extents;
  std::vector<bool> replicated;  ///< same length; such a dimension distributes nothing: its coordinates hold copies
  Order rank_order = Order::C;   ///< C: row-major numbering (BLACS 'R')
  RankMap ranks;                 ///< world rank of each process; of nobody: 0, 1, ...

  Index size() const;  ///< processes
  /// Of the grid of a layout, whose `ranks` are there.
  Index world_rank(Index process) const { return ranks.select(process); }
  std::vector<Index> coordinates(Index process) const;
  Index coordinate(Index process, std::size_t dimension) const;  ///< one of them
  bool operator==(const ProcessGrid&) const = default;
};

/// World ranks of processes from a list. Throws `Error(layout)` where one is negative, too large or given twice.
RankMap process_ranks(std::span<const Index> ranks);

/// A distributed array's layout. A value: immutable, comparable, printable as text that parses back. Copies share what
/// they say.
class Layout {
 public:
  /// What may be said beside the text; each overrides the text's own option.
  struct Options {
    std::optional<Order> order, rank_order;
    std::optional<std::vector<Index>> source, origin;
    std::optional<RankMap> ranks;
    std::optional<Index> ld;
  };
  /// HPF's notation, e.g. "(BLOCK, *) on 4" or "(CYCLIC(64), CYCLIC(64)) on 2x2, order=F, source=1x0, ranks=4:8".
  /// Throws `Error(layout)` with a caret under the place.
  static Layout parse(std::string_view text, std::vector<Index> shape, const Options& options);
  static Layout parse(std::string_view text, std::vector<Index> shape);

  /// `dimensions` in array order; the grid's non-replicated extents belong, in order, to those that are not collapsed.
  /// ld: allocated extent of the fastest dimension of every local array, or 0 for dense.
  Layout(std::vector<Distribution> dimensions, ProcessGrid grid, Order order = Order::C, Index ld = 0);
  Layout(const Layout&) = default;  // and nothing is ever moved out of one
  Layout& operator=(const Layout&) = default;

  std::size_t rank_of_array() const { return dimensions().size(); }  ///< number of dimensions
  const std::vector<Index>& shape() const& { return given_->shape; }
  std::vector<Index> shape() && { return given_->shape; }
  Index size() const { return given_->size; }  ///< elements of the whole array
  const std::vector<Distribution>& dimensions() const& { return given_->dimensions; }
  std::vector<Distribution> dimensions() && { return given_->dimensions; }
  const ProcessGrid& grid() const& { return given_->grid; }
  ProcessGrid grid() && { return given_->grid; }
  Order order() const { return given_->order; }
  Index ld() const { return given_->ld; }
  std::string to_string() const;

  Index processes() const { return grid().size(); }
  Index world_size() const { return given_->world_size; }  ///< one more than the largest world rank
  Index replicas() const { return given_->replicas; }

  /// The process with a world rank, if it takes part. Constant or logarithmic time;
  /// of a list of ranks, after an index has been made for the first who asks.
  std::optional<Index> process_of(Index rank) const;
  /// The grid coordinate of a process along array dimension d (0 if collapsed), for every d.
  Point owner_coordinates(Index process) const;
  /// Which replica a process is, in [0, replicas()).
  Index replica(Index process) const;
  /// The process that has these owner coordinates (one per array dimension) in replica r.
  Index process_at(std::span<const Index> owner_coordinates, Index replica) const;

  // By world rank; a rank that takes no part owns nothing.
  Point local_shape(Index rank) const;
  Index local_size(Index rank) const;                                ///< elements owned
  Index allocated_size(Index rank) const;                            ///< elements of memory, `ld` counted
  Point local_strides(Index rank, Index element_bytes) const;        ///< bytes
  std::vector<Runs> owned(Index rank) const;                         ///< global indices, a dimension each
  std::vector<Index> owners(const std::vector<Index>& index) const;  ///< world ranks, first replica first
  struct Place {
    Index rank;
    std::vector<Index> local;
  };
  Place global_to_local(const std::vector<Index>& index) const;  ///< in the first replica
  std::vector<Index> local_to_global(Index rank, const std::vector<Index>& local) const;
  /// Where the window starting at `first` begins in a rank's local array.
  std::vector<Index> local_start(Index rank, const std::vector<Index>& first) const;
  /// The layout of the sub-array [first, last): same owners, dense local arrays.
  Layout window(const std::vector<Index>& first, const std::vector<Index>& last) const;

  /// A 64-bit digest of everything that matters, equal on all machines: ranks compare it before they communicate.
  std::uint64_t digest() const;
  bool operator==(const Layout& other) const { return given_ == other.given_ || *given_ == *other.given_; }

 private:
  static constexpr std::size_t no_grid_dimension = std::size_t(-1);
  Point allocated_shape(Index rank) const;
  Index owner_coordinate(Index process, std::size_t dimension) const {
    const std::size_t g = given_->grid_dimension[dimension];
    return g == no_grid_dimension ? 0 : grid().coordinate(process, g);
  }
  /// What it was made of, and what follows from that at once.
  struct Given {
    std::vector<Distribution> dimensions;
    ProcessGrid grid;
    Order order;
    Index ld;
    std::vector<Index> shape{};
    Index size = 0, replicas = 1, world_size = 0;
    std::vector<std::size_t> grid_dimension{};  ///< per array dimension: its grid dimension, if any
    bool operator==(const Given&) const = default;
  };
  std::shared_ptr<const Given> given_;
};

/// ScaLAPACK's array descriptor: DTYPE_, CTXT_, M_, N_, MB_, NB_, RSRC_, CSRC_, LLD_.
using Descriptor = std::array<Index, 9>;
/// The layout of a descriptor's matrix on a grid of rows x
/// columns. Throws `Error(layout)` naming the entry that is wrong.
Layout layout_from_descriptor(const Descriptor& descriptor, Index rows, Index columns, Order rank_order = Order::C);
/// The descriptor of a 2-D block-cyclic layout as `rank` must give
/// it. Throws `Error(layout)` for what a descriptor cannot say.
Descriptor descriptor_of(const Layout& layout, Index rank, Index context = 0);

}  // namespace longshore

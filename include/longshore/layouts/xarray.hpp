/// `XArray`: a distributed array of grids, one for each block of a floor plan (the Data Mover, section 2).
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "longshore/core/memory.hpp"
#include "longshore/layouts/floor_plan.hpp"
#include "longshore/layouts/grid.hpp"

namespace longshore {

/// What every grid of an XArray has in common.
struct GridFormat {
  Index element_bytes = 0;
  GhostWidths ghost;       ///< ghost cells; of no dimensions: none
  Order order = Order::C;  ///< the memory order of a grid
  bool operator==(const GridFormat&) const = default;
};

/// Grids in one stretch of memory: a pure function of the floor plan, so that ranks know where each other's grids lie.
/// Every grid begins a cache line, and none of them all begin at the same place of a page.
struct GridPlaces {
  std::vector<Index> blocks;   ///< which have storage, ascending
  std::vector<Index> offsets;  ///< bytes, of the first element of each
  Index bytes = 0;             ///< in all
};

/// Where a block is in an ascending list of blocks, most of which are in step, or would be.
std::size_t position_of(const std::vector<Index>& blocks, Index block);

/// One array of elements over each block's region grown by the ghost cells. A handle: copies mean the same
/// memory. An XArray that belongs to a rank has storage for the blocks which that rank owns; one that belongs
/// to nobody, for all of them. Making one is not collective.
class XArray {
 public:
  XArray() = default;
  /// In ordinary memory, all zeros. Throws `Error(shape)` where the ghost cells have other dimensions,
  /// `Error(argument)` where there is a negative number of them or of bytes.
  XArray(FloorPlan blocks, std::optional<Index> rank, GridFormat format);
  /// In memory that is given. Throws `Error(buffer)` where it is too small, naming both sizes.
  XArray(FloorPlan blocks, std::optional<Index> rank, GridFormat format, std::shared_ptr<Memory> memory);
  /// Over arrays that somebody else keeps: `grids` of the rank's blocks, in their order, each over its
  /// region grown by the ghost cells, with any strides. `memory_owners`: none, or one a grid. Throws
  /// `Error(shape)` and `Error(buffer)` that name the block.
  static XArray over(FloorPlan blocks, std::optional<Index> rank, GridFormat format, std::vector<Grid> grids,
                     std::vector<std::shared_ptr<const MemoryOwner>> memory_owners = {});

  const FloorPlan& blocks() const& { return blocks_; }
  FloorPlan blocks() && { return std::move(blocks_); }
  std::optional<Index> rank() const { return rank_; }
  const GridFormat& format() const& { return format_; }
  GridFormat format() && { return std::move(format_); }
  Index element_bytes() const { return format_.element_bytes; }
  const std::vector<Index>& owned() const&;  ///< the blocks with storage, ascending
  std::vector<Index> owned() && { return std::as_const(*this).owned(); }
  /// Throws `Error(argument)` where the block has no storage here, naming its owner.
  const Grid& grid(Index block) const&;
  const Grid& grid(Index block) && = delete;  // its memory may go with the array
  const std::vector<Grid>& grids() const&;    ///< of `owned()`
  const std::vector<Grid>& grids() && = delete;
  /// The memory, where all grids lie at `places` of one; null where somebody else keeps them.
  std::shared_ptr<Memory> memory() const { return memory_; }
  /// Who keeps the grids, in the order of `grids()`; one for all of them where they lie in one memory.
  const std::vector<std::shared_ptr<const MemoryOwner>>& memory_owners() const&;
  std::vector<std::shared_ptr<const MemoryOwner>> memory_owners() && { return std::as_const(*this).memory_owners(); }
  bool same_storage(const XArray& other) const { return grids_ && grids_ == other.grids_; }

  static GridPlaces places(const FloorPlan& blocks, std::optional<Index> rank, const GridFormat& format);

 private:
  FloorPlan blocks_;
  std::optional<Index> rank_;
  GridFormat format_;
  std::shared_ptr<Memory> memory_;
  struct Grids {
    std::vector<Index> owned;
    std::vector<Grid> grids;
    std::vector<std::shared_ptr<const MemoryOwner>> memory_owners;
  };
  std::shared_ptr<const Grids> grids_;
};

/// A grid's elements by their global indices: `u(i, j, k)`. Not checked; `Grid::offset_of` is.
template <class T, std::size_t D>
class View {
 public:
  View() = default;
  /// Throws `Error(type)` and `Error(shape)` where the grid's elements or dimensions are others.
  explicit View(const Grid& grid) : data_(reinterpret_cast<T*>(grid.data)) {
    if (grid.element_bytes != Index(sizeof(T)))
      throw Error(ErrorKind::type, "a view of elements of " + std::to_string(sizeof(T)) +
                                       " bytes on a grid of elements of " + std::to_string(grid.element_bytes));
    check_same_dims(grid.region.dims(), D, "a grid and a view of it");
    for (std::size_t d = 0; d < D; ++d) {
      lower_[d] = grid.region.lower()[d], upper_[d] = grid.region.upper()[d];
      strides_[d] = grid.strides[d] / Index(sizeof(T));
      first_ += lower_[d] * strides_[d];
    }
  }
  template <class... I>
  requires(sizeof...(I) == D) T& operator()(I... index) const {
    std::size_t d = 0;
    Index place = -first_;
    ((place += Index(index) * strides_[d++]), ...);
    return data_[place];
  }
  Index lower(std::size_t d) const { return lower_[d]; }  ///< ghost cells included
  Index upper(std::size_t d) const { return upper_[d]; }
  Index stride(std::size_t d) const { return strides_[d]; }  ///< elements

 private:
  T* data_ = nullptr;
  Index first_ = 0;  ///< the lower corner's place, were the element at 0 the first
  std::array<Index, D> lower_{}, upper_{}, strides_{};
};

}  // namespace longshore

#include "longshore/layouts/xarray.hpp"

#include <algorithm>
#include <numeric>

namespace longshore {

namespace {

constexpr Index line_bytes = 64;

void check(const FloorPlan& blocks, GridFormat& format) {
  if (format.element_bytes <= 0)
    throw Error(ErrorKind::argument,
                "elements of " + std::to_string(format.element_bytes) + " bytes; they need at least one");
  if (format.ghost == GhostWidths()) format.ghost = Point(blocks.dims());
  for (const auto* widths : {&format.ghost.below, &format.ghost.above}) {
    check_same_dims(blocks.dims(), widths->dims(), "the blocks and the numbers of ghost cells");
    for (std::size_t d = 0; d < widths->dims(); ++d)
      if ((*widths)[d] < 0)
        throw Error(ErrorKind::argument, std::to_string((*widths)[d]) + " ghost cells in dimension " +
                                             std::to_string(d) + "; give none or more");
  }
}

/// What there is storage for of a block.
Region stored(const FloorPlan& blocks, Index block, const GridFormat& format) {
  return blocks.region(block).grow(format.ghost.below, format.ghost.above);
}

std::vector<Index> blocks_of(const FloorPlan& blocks, std::optional<Index> rank) {
  if (rank) return blocks.owned_by(*rank);
  std::vector<Index> all(std::size_t(blocks.size()));
  std::iota(all.begin(), all.end(), Index{0});
  return all;
}

}  // namespace

std::size_t position_of(const std::vector<Index>& blocks, Index block) {
  if (blocks.empty() || block < blocks.front() || block > blocks.back())
    return std::size_t(std::lower_bound(blocks.begin(), blocks.end(), block) - blocks.begin());
  const double along = double(block - blocks.front()) / double(std::max<Index>(1, blocks.back() - blocks.front()));
  const auto guess = std::size_t(along * double(blocks.size() - 1) + 0.5);
  if (blocks[guess] == block) return guess;
  return std::size_t(std::lower_bound(blocks.begin(), blocks.end(), block) - blocks.begin());
}

GridPlaces XArray::places(const FloorPlan& blocks, std::optional<Index> rank, const GridFormat& format) {
  GridPlaces places;
  places.blocks = blocks_of(blocks, rank);
  for (const Index k : places.blocks) {
    places.offsets.push_back(places.bytes);
    const Index bytes = checked_mul(stored(blocks, k, format).size(), format.element_bytes);
    // A line more, lest grids of whole pages all compete for the same sets of the cache.
    if (bytes > 0) places.bytes = checked_add(places.bytes, checked_mul(ceil_div(bytes, line_bytes) + 1, line_bytes));
  }
  return places;
}

XArray::XArray(FloorPlan blocks, std::optional<Index> rank, GridFormat format) {
  check(blocks, format);
  const Index bytes = places(blocks, rank, format).bytes;
  *this = XArray(std::move(blocks), rank, std::move(format), Memory::ordinary(bytes));
}

XArray::XArray(FloorPlan blocks, std::optional<Index> rank, GridFormat format, std::shared_ptr<Memory> memory)
    : blocks_(std::move(blocks)), rank_(rank), format_(std::move(format)), memory_(std::move(memory)) {
  check(blocks_, format_);
  auto where = places(blocks_, rank_, format_);
  if (!memory_ || memory_->bytes() < where.bytes)
    throw Error(ErrorKind::buffer, "the grids" + (rank_ ? " of rank " + std::to_string(*rank_) : std::string()) +
                                       " take " + std::to_string(where.bytes) + " bytes, the memory given has " +
                                       std::to_string(memory_ ? memory_->bytes() : 0));
  auto grids = std::make_shared<Grids>();
  for (std::size_t i = 0; i < where.blocks.size(); ++i) {
    const Region region = stored(blocks_, where.blocks[i], format_);
    grids->grids.push_back({region, region.empty() ? nullptr : memory_->data() + where.offsets[i],
                            dense_strides(region.shape(), format_.order, format_.element_bytes),
                            format_.element_bytes});
  }
  grids->owned = std::move(where.blocks);
  grids->memory_owners = {memory_};
  grids_ = std::move(grids);
}

XArray XArray::over(FloorPlan blocks, std::optional<Index> rank, GridFormat format, std::vector<Grid> grids,
                    std::vector<std::shared_ptr<const MemoryOwner>> memory_owners) {
  XArray array;
  check(blocks, format);
  auto made = std::make_shared<Grids>();
  made->owned = blocks_of(blocks, rank);
  if (made->owned.size() != grids.size())
    throw Error(ErrorKind::argument,
                std::to_string(grids.size()) + " arrays for " + std::to_string(made->owned.size()) + " blocks");
  for (std::size_t i = 0; i < grids.size(); ++i) {
    const Region region = stored(blocks, made->owned[i], format);
    const auto who = [&] { return "the array of block " + std::to_string(made->owned[i]) + " "; };
    if (!(grids[i].region == region))
      throw Error(ErrorKind::shape, who() + "is over " + grids[i].region.to_string() +
                                        ", its region with ghost cells is " + region.to_string());
    if (grids[i].element_bytes != format.element_bytes)
      throw Error(ErrorKind::type, who() + "has elements of " + std::to_string(grids[i].element_bytes) +
                                       " bytes, not of " + std::to_string(format.element_bytes));
    if (!region.empty() && !grids[i].data) throw Error(ErrorKind::buffer, who() + "has no memory");
  }
  made->grids = std::move(grids), made->memory_owners = std::move(memory_owners);
  array.blocks_ = std::move(blocks), array.rank_ = rank, array.format_ = std::move(format);
  array.grids_ = std::move(made);
  return array;
}

const std::vector<Index>& XArray::owned() const& {
  static const std::vector<Index> none;
  return grids_ ? grids_->owned : none;
}

const std::vector<Grid>& XArray::grids() const& {
  static const std::vector<Grid> none;
  return grids_ ? grids_->grids : none;
}

const std::vector<std::shared_ptr<const MemoryOwner>>& XArray::memory_owners() const& {
  static const std::vector<std::shared_ptr<const MemoryOwner>> none;
  return grids_ ? grids_->memory_owners : none;
}

const Grid& XArray::grid(Index block) const& {
  const auto place = position_of(owned(), block);
  if (place < owned().size() && owned()[place] == block) return grids_->grids[place];
  const Index owner = blocks_.owner(block);  // throws where there is no such block
  throw Error(ErrorKind::argument, "block " + std::to_string(block) + " belongs to rank " + std::to_string(owner) +
                                       "; the array of rank " + std::to_string(*rank_) + " has no storage for it");
}

}  // namespace longshore

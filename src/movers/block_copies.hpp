/// Motions between grids as stretches of programs. Motions of like shape
/// share a program: a halo of a hundred thousand motions has a few dozen.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "longshore/layouts/xarray.hpp"
#include "longshore/movers/local_moves.hpp"
#include "longshore/movers/mover.hpp"
#include "longshore/plans/footprint.hpp"

namespace longshore {

using Stretch = CopyTask::Batch::Stretch;

class BlockCopies {
 public:
  /// Regions of different shape are paired in the order `visit`. Where shapes are equal the order makes no difference,
  /// and `memory`, which should be that of the grids, is the fastest. Both ends of a message must be given the same.
  BlockCopies(Order visit, Order memory, Update update) : visit_(visit), memory_(memory), update_(std::move(update)) {}

  /// The motions in the order in which they are best carried out. Those of short runs that meet in a block,
  /// as the x faces of a row of boxes do, touch the same cache lines: they are cut and take turns, some
  /// hundred runs at a time, so that memory sees one sweep instead of one for each. Depends on nothing but
  /// motions and format: both ends of a message weave alike.
  std::vector<BlockMotion> woven(std::vector<BlockMotion> motions, const XArray& source) const;
  /// Throw what footprints throw.
  Stretch direct(const BlockMotion& motion, const Grid& source, const Grid& destination);
  /// A grid's part to and from a dense message, `first byte of the message` being added by whoever runs it.
  Stretch assembly(const BlockMotion& motion, const Grid& source);
  Stretch disassembly(const BlockMotion& motion, const Grid& destination);
  /// What a motion has brought, as the message that brought it.
  Stretch arrival(const BlockMotion& motion, const Grid& destination);
  Index workspace_bytes() const;  ///< of all programs that stretches hold

 private:
  using Key = std::vector<Index>;
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  Order order_of(const BlockMotion& motion) const;
  Stretch packed(const BlockMotion& motion, const Footprint& from, const Grid& grid);
  std::shared_ptr<const RelationProgram> program(Footprint from, Footprint to, Order order, bool updates);

  Order visit_, memory_;
  Update update_;
  std::unordered_map<Key, std::shared_ptr<const RelationProgram>, Hash> programs_;
  std::vector<std::weak_ptr<const RelationProgram>> others_;  ///< that are not among these
  Key key_;
};

/// How many bytes of a region lie together in a grid of this format, over `grid`.
Index run_bytes(const Region& region, const Region& grid, const GridFormat& format);
/// Shorter runs than this share their cache lines with something else.
inline constexpr Index short_run_bytes = 64;

/// Stretches as tasks of about so many bytes.
std::vector<CopyTask> batch(const std::vector<Stretch>& stretches, Index task_bytes);

}  // namespace longshore

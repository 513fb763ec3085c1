/// Motions between grids as stretches of programs. Motions of like shape
/// share a program: a halo of a hundred thousand motions has a few dozen.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "longshore/layouts/xarray.hpp"
#include "longshore/movers/local_moves.hpp"
#include "longshore/movers/mover.hpp"
#include "longshore/plans/footprint.hpp"
#include "movers/share.hpp"

namespace longshore {

using Stretch = CopyTask::Batch::Stretch;

/// A motion as movers keep it, in an eighth of the memory: where it begins in either grid, and the rest, which many
/// have in common, by a number.
struct KeptMotion {
  std::uint32_t source = 0, destination = 0;  ///< blocks
  std::uint32_t shape = 0;                    ///< one of its `BlockCopies`
  std::uint32_t number = 0;                   ///< which one of its owner's
  Index from = 0, to = 0;                     ///< bytes from the grids' data to the first element
};

class BlockCopies {
 public:
  /// Regions of different shape are paired in the order `visit`. Where shapes are equal the order makes no difference,
  /// and `memory`, which should be that of the grids, is the fastest. Both ends of a message must be given the same.
  BlockCopies(Order visit, Order memory, Update update) : visit_(visit), memory_(memory), update_(std::move(update)) {}

  /// A motion between two grids, whose data may be elsewhere; `format` is that of the sources. Throws what footprints
  /// throw.
  KeptMotion keep(const BlockMotion& motion, const Grid& source, const Grid& destination, const GridFormat& format,
                  std::uint32_t number);
  Index points(const KeptMotion& motion) const { return shapes_[motion.shape].points; }
  /// Bytes that lie together in the source; of lists, none.
  Index run_bytes(const KeptMotion& motion) const { return shapes_[motion.shape].run; }
  /// Whether it is more than two boxes of one shape, and has to be given whole grids below.
  bool is_whole(const KeptMotion& motion) const { return shapes_[motion.shape].whole >= 0; }
  /// Calls f with motions in the order in which they are best carried out. Those of short runs that meet in a block, as
  /// the x faces of a row of boxes do, touch the same cache lines: they are cut and take turns, some hundred runs at a
  /// time, so that memory sees one sweep instead of one for each. Depends on nothing but motions and format: both ends
  /// of a message weave alike.
  void for_each_woven(std::span<const KeptMotion> motions, Order order,
                      const std::function<void(const KeptMotion&)>& f);
  /// Of boxes of one shape, only the grids' data is looked at.
  Stretch direct(const KeptMotion& motion, const Grid& source, const Grid& destination);
  Stretch message(const KeptMotion& motion, const Grid& grid, MessageEnd end);

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
  struct Prepared {
    const std::shared_ptr<const RelationProgram>* program = nullptr;  ///< null: nobody has asked yet
    bool in_order = false;
  };
  /// What motions between boxes have in common: extents, and what is a step in either grid.
  struct Shape {
    Key key;  ///< run, loops, then the extents, the strides of the source and those of the destination
    Index points = 0, run = 0;
    Index length = 0;  ///< bytes of a run as weaving sees them, 0 where it has nothing to say
    Index whole = -1;  ///< one of whole_
    Prepared direct, ends[3];
  };
  std::uint32_t shape_of_key();
  std::uint32_t slab(std::uint32_t shape, std::size_t d, Index extent);
  Footprint footprint(const Shape& shape, Side side) const;
  Order order_of(const BlockMotion& motion) const;
  Stretch packed(const BlockMotion& motion, const Footprint& from, const Grid& grid);
  std::shared_ptr<const RelationProgram> made(const Footprint& from, const Footprint& to, Order order,
                                              bool updates) const;
  const std::shared_ptr<const RelationProgram>& known(Footprint from, Footprint to, Order order, bool updates);
  std::shared_ptr<const RelationProgram> program(Footprint from, Footprint to, Order order, bool updates);

  Order visit_, memory_;
  Update update_;
  std::unordered_map<Key, std::shared_ptr<const RelationProgram>, Hash> programs_;
  std::vector<std::weak_ptr<const RelationProgram>> others_;  ///< that are not among these
  Key key_, shape_key_;
  Index element_bytes_ = 1;
  std::vector<Shape> shapes_;
  std::vector<std::uint32_t> shape_table_;  ///< numbers of shapes plus 1, at their hashes or behind them; 0: none
  std::vector<BlockMotion> whole_;
};

/// How many bytes of a region lie together in a grid of this format, over `grid`.
Index run_bytes(const Region& region, const Region& grid, const GridFormat& format);
/// Shorter runs than this share their cache lines with something else.
inline constexpr Index short_run_bytes = 64;

/// Stretches as tasks of about so many bytes.
class Batches {
 public:
  explicit Batches(Index task_bytes) : task_bytes_(task_bytes) {}
  void add(Stretch stretch);
  std::vector<CopyTask> take();

 private:
  void flush();
  Index task_bytes_, bytes_ = 0;
  std::vector<Stretch> open_;
  std::vector<CopyTask> tasks_;
};

}  // namespace longshore

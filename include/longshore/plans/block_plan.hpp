/// `BlockPlan`: what moves between the blocks of two floor plans (the Data Mover's MotionPlan, section 2).
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "longshore/core/facts.hpp"
#include "longshore/core/list.hpp"
#include "longshore/layouts/floor_plan.hpp"
#include "longshore/regions/point_list.hpp"

namespace longshore {

/// (D(destination) on destination_region) <= (S(source) on source_region): as many points on
/// both sides, visited in the same order, though their shapes may differ. Or lists: point k of
/// the one to point k of the other, and the regions contain them.
struct BlockMotion {
  Index source = 0, destination = 0;  ///< which block of its floor plan
  Region source_region, destination_region;
  Axes axes{};  ///< by which the source's dimensions are permuted on the way; none: they stay as they are
  PointList source_points{}, destination_points{};  ///< nothing where the regions say it all

  bool is_list() const { return !source_points.empty(); }
  Index points() const { return is_list() ? source_points.size() : source_region.size(); }
  /// "block 2 [0:4] -> block 0 [4:8]", "17 points of block 2 [0:40] -> block 0 [40:57]", "..., axes 1, 0"
  std::string to_string() const;
  /// What brings it back.
  BlockMotion reverse() const;
  bool operator==(const BlockMotion&) const = default;
};

/// Ghost cells to be filled from the neighbours that own them.
struct Halo {
  Halo() = default;
  Halo(std::size_t dims, Index width) : below(dims, width), above(dims, width) {}
  Halo(std::size_t dims, Index width, Region domain, std::vector<bool> periodic)
      : below(dims, width), above(dims, width), domain(std::move(domain)), periodic(std::move(periodic)) {}

  Point below, above;          ///< ghost cells beyond the lower and the upper side of every dimension
  Region domain;               ///< what is periodic; needed where anything is
  std::vector<bool> periodic;  ///< a flag a dimension, or none
  bool corners = true;         ///< false: only what lies beyond one face, as 5- and 7-point stencils want
  bool operator==(const Halo&) const = default;
};

/// Motions from the blocks of one floor plan to those of another (or the same). What
/// neighbours share is not written down but worked out from the two floor plans whenever it is
/// asked for: a halo costs six bytes for each pair of neighbours.
///
/// A plan may be one rank's: then it holds only the motions that rank takes part in, and building it costs no more than
/// looking up the rank's neighbours. Its digest is that of the whole plan, so ranks can tell whether they mean the
/// same. A value; not collective. Regions may lie outside their block: ghost cells do. Movers check that the storage is
/// there. Ranks are not negative, or `Error(argument)` is thrown.
class BlockPlan {
 public:
  /// A plan without motions, to be filled by `copy`. With axes, dimension d of a destination is dimension
  /// axes[d] of a source, as in NumPy's transpose. Throws `Error(shape)` where the blocks' dimensions
  /// differ, `Error(argument)` for axes that are no permutation.
  BlockPlan(FloorPlan source, FloorPlan destination, Axes axes = {});
  /// Every point of a destination block from the source blocks that have it. Where source blocks
  /// overlap, that is a race. What lies outside a periodic domain comes from its images. Throws
  /// `Error(argument)` for sources outside a periodic domain.
  static BlockPlan copy_between(FloorPlan source, FloorPlan destination, std::optional<Index> rank = {},
                                Region domain = {}, std::vector<bool> periodic = {});
  /// The same with permuted dimensions: point p goes to the point q with q[d] = p[axes[d]].
  static BlockPlan transpose(FloorPlan source, FloorPlan destination, Axes axes, std::optional<Index> rank = {});
  /// Throws `Error(argument)` for negative widths, and where something is periodic that the domain does not say.
  static BlockPlan halo(FloorPlan blocks, Halo halo, std::optional<Index> rank = {});

  // Copies between floor plans that are derived from those given;
  // `source()` and `destination()` are what arrays are made for.

  /// Restriction: what fine blocks have worked out on the coarse mesh, `fine.coarsen(ratio)`, to the
  /// coarse blocks; from outside a periodic domain, which is the coarse mesh's, to where it is an
  /// image of. Fine blocks that share a coarse cell race for it.
  static BlockPlan coarsen_fine(const FloorPlan& fine, FloorPlan coarse, const Point& ratio,
                                std::optional<Index> rank = {}, Region domain = {}, std::vector<bool> periodic = {});
  /// Prolongation: the coarse cells under every fine block and `width` around it, `fine.coarsen(ratio).grow(width)`,
  /// from the coarse blocks. The domain is the coarse mesh's. Throws `Error(argument)` for negative widths.
  static BlockPlan refine_coarse(FloorPlan coarse, const FloorPlan& fine, const Point& ratio, const Point& width,
                                 std::optional<Index> rank = {}, Region domain = {}, std::vector<bool> periodic = {});
  /// Of SUMMA: to every block, the panel [first, last) of one dimension over its own extent in the
  /// others, `blocks.with_range(dim, first, last)`. Throws `Error(argument)` where there is no such
  /// dimension, and where nobody has a part of a panel, naming both.
  static BlockPlan broadcast(FloorPlan blocks, std::size_t dim, Index first, Index last,
                             std::optional<Index> rank = {});
  static BlockPlan broadcast_rows(FloorPlan blocks, Index first, Index last, std::optional<Index> rank = {});
  static BlockPlan broadcast_columns(FloorPlan blocks, Index first, Index last, std::optional<Index> rank = {});

  /// The halo of a mesh of finite elements: blocks of one dimension own ranges of vertices, and block k wants the
  /// vertices needed[k] of others, too. They land behind its own in the order in which they are listed: both floor
  /// plans of the plan are the blocks, each so much longer. Reversed and combining, it adds what was worked out for
  /// ghosts to their owners. Throws `Error(shape)` for other dimensions and another number of lists, `Error(argument)`
  /// where blocks overlap, or nobody has a vertex.
  static BlockPlan gather_points(const FloorPlan& blocks, std::span<const std::vector<Index>> needed,
                                 std::optional<Index> rank = {});

  /// One motion more, by hand. Throws `Error(argument)` where there is no such block and `Error(shape)` where the
  /// regions do not have the same number of points (with axes, not the same shape), naming both. Ranks that share a
  /// plan add the same motions, whoever takes part in them.
  void copy(const Region& destination_region, Index destination, const Region& source_region, Index source);
  /// The same for points: the first listed source to the first listed destination, and so on, whatever the axes.
  void copy_points(PointList destination_points, Index destination, PointList source_points, Index source);

  const FloorPlan& source() const& { return reversed_ ? destination_ : source_; }
  FloorPlan source() && { return std::as_const(*this).source(); }
  const FloorPlan& destination() const& { return reversed_ ? source_ : destination_; }
  FloorPlan destination() && { return std::as_const(*this).destination(); }
  const Axes& axes() const& { return reversed_ ? axes_back_ : axes_; }  ///< none: dimensions are not permuted
  Axes axes() && { return std::as_const(*this).axes(); }
  std::optional<Index> rank() const { return rank_; }  ///< whose motions these are; none: everybody's
  Index world_size() const { return std::max(source_.world_size(), destination_.world_size()); }

  /// All motions that the plan holds, none of them empty, in any order but with those copied by hand last, in theirs.
  void for_each(const std::function<void(const BlockMotion&)>& f) const;
  /// The same in an order that sender and receiver have in common:
  /// by destination, source and where in them, then those by hand.
  List<BlockMotion> motions() const;
  /// Those to (from) blocks that a rank owns, in that order. Throw `Error(argument)` where the plan is another rank's.
  List<BlockMotion> receives(Index rank) const;
  List<BlockMotion> sends(Index rank) const;

  /// What one rank sends to another (or keeps), by ascending ranks.
  struct Volume {
    Index source_rank = 0, destination_rank = 0, motions = 0, points = 0;
    bool operator==(const Volume&) const = default;
  };
  List<Volume> volumes() const;
  /// Throws `Error(argument)` naming two motions that write the same point, if there are any; for a plan whose sources
  /// and destinations are the same arrays (an endogenous copy), also two of which one reads what the other writes.
  /// Where a motion combines what it brings with what is there, several may write one point.
  void check_races(bool endogenous = false, bool combining = false) const;
  /// The plan that brings everything back: sources and destinations exchanged.
  BlockPlan reverse() const;
  /// First this plan, then `next`: motions from this one's sources straight to the other's destinations that carry what
  /// goes all the way, a plan by hand. Throws `Error(argument)` where `next` begins with other blocks than those this
  /// plan ends with, where a plan is one rank's, and for motions between regions of different shape, which it names.
  BlockPlan compose(const BlockPlan& next) const;

  std::uint64_t digest() const;
  /// How it was made, in words: plans whose facts are the same have as a rule the same digest. `lists`: the blocks and
  /// the motions by hand too, the first of them.
  Facts facts(bool lists) const;
  bool operator==(const BlockPlan& other) const;
  Index workspace_bytes() const;  ///< the two floor plans not counted
  std::string to_string(Index most = 8) const;

  /// As many pairs of neighbours as a plan may hold.
  static constexpr Index all_pairs = std::numeric_limits<std::uint32_t>::max();
  /// A file's bytes: a header with a version, bit-packed lists, a checksum; the same on every machine. What neighbours
  /// share is worked out again by whoever reads them.
  std::vector<std::byte> to_bytes() const;
  /// What `to_bytes` wrote, of 64 dimensions at most. Throws `Error(argument)` saying what is wrong; never trusts a
  /// number. Few bytes may stand for any number of blocks, pairs of neighbours and motions by hand: bytes from
  /// strangers are given a bound, which holds for each of them, and time and memory with it.
  static BlockPlan from_bytes(std::span<const std::byte> bytes, Index most_pairs = all_pairs);

 private:
  /// How a block's neighbours were looked for.
  enum class Kind { by_hand, between, halo };
  /// Lists of neighbours: of block blocks[k], others[starts[k] ... starts[k + 1]), each moved by shifts[...].
  struct Neighbours {
    std::vector<std::uint32_t> blocks, starts{0}, others;
    std::vector<std::uint16_t> shifts;
  };
  /// Everybody's motions by hand, whosever are kept: how many, and
  /// digests of them as they are before the plan is reversed, and after.
  struct ByHand {
    Index motions = 0;
    std::uint64_t digest = 0, digest_back = 0;
    bool operator==(const ByHand&) const = default;
  };
  /// How the image of a source block lies to a block of a halo that reaches it.
  struct Place {
    std::size_t beside = 0;  ///< in how many dimensions it is beside the block; 0: they overlap
    bool beyond = false;     ///< whether it sticks out of the block, into its ghost cells
  };
  using Each = std::function<void(const BlockMotion&)>;

  void find_neighbours(Kind kind, Halo halo, std::optional<Index> rank, Index most_pairs = all_pairs);
  void check_halo();
  void look_up(Index most_pairs);
  std::size_t dims_or(std::size_t otherwise) const;
  void set_rank(std::optional<Index> rank);
  Region image(Index source, const Point& shift) const;
  std::vector<Region> pieces(Index destination, Index source, const Point& shift) const;
  Place place(Index destination, Index source, const Point& shift) const;
  std::uint16_t shift_number(const Point& shift) const;
  void emit(Index destination, Index source, std::uint16_t shift, const Each& f) const;
  void for_each_shared(const Each& f) const;
  void for_each_by_hand(const Each& f) const;
  void check_motion(const BlockMotion& motion) const;
  void add_by_hand(BlockMotion motion);
  template <class F>
  List<BlockMotion> in_order(F&& wanted) const;
  void check_rank(Index rank) const;

  FloorPlan source_, destination_;  ///< as they were before a plan was reversed
  Axes axes_, axes_back_;           ///< the same, and their inverse
  Kind kind_ = Kind::by_hand;
  bool reversed_ = false;
  std::optional<Index> rank_;
  Halo halo_;
  std::vector<Point> shifts_;   ///< to all images that anybody meets, by periods of the domain, ascending
  Neighbours received_, sent_;  ///< by destination; by source, what is not received here
  ByHand everybodys_;
  std::vector<BlockMotion> by_hand_;  ///< this rank's
};

}  // namespace longshore

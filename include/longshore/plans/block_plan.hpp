/// `BlockPlan`: what moves between the blocks of two floor plans (the Data Mover's MotionPlan, section 2).
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
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
  /// By destination, source and where in them: the order of what neighbours share.
  static bool before(const BlockMotion& a, const BlockMotion& b);
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

class Neighbours;

/// Motions from the blocks of one floor plan to those of another (or the same). What
/// neighbours share is not written down but worked out from the two floor plans whenever it is
/// asked for: a halo costs six bytes for each pair of neighbours.
///
/// A plan may be one rank's: then it holds only the motions that rank takes part in, and building it costs no more than
/// looking up the rank's neighbours. Its digest is that of the whole plan, so ranks can tell whether they mean the
/// same. A value; not collective. Regions may lie outside their block: ghost cells do. Movers check that the storage is
/// there. Ranks are not negative, or `Error(argument)` is thrown.
///
/// `block_builders.hpp` makes plans, `block_algebra.hpp` composes and checks them.
class BlockPlan {
 public:
  /// Which points neighbours share: none, there are only motions by hand; those that a source block and a destination
  /// block both have; or those of a source block among the ghost cells of a destination block.
  enum class Kind { by_hand, between, halo };
  /// As many pairs of neighbours as a plan may hold.
  static constexpr Index all_pairs = std::numeric_limits<std::uint32_t>::max();

  /// A plan without motions, to be filled by `copy`. With axes, dimension d of a destination is dimension
  /// axes[d] of a source, as in NumPy's transpose. Throws `Error(shape)` where the blocks' dimensions
  /// differ, `Error(argument)` for axes that are no permutation.
  BlockPlan(FloorPlan source, FloorPlan destination, Axes axes = {}, std::optional<Index> rank = {});
  /// A plan of what neighbours share. Of a copy between blocks, the halo says what is periodic and has no widths.
  /// Throws `Error(argument)` for negative widths and for sources outside a periodic domain, `Error(memory_limit)`
  /// where there are more than `most_pairs` neighbours, or they take too long to find.
  BlockPlan(Kind kind, FloorPlan source, FloorPlan destination, Axes axes, Halo halo, std::optional<Index> rank,
            Index most_pairs = all_pairs);

  /// Everybody's motions by hand, whosever are kept: how many, and digests of them, each with its number among them, as
  /// they are before the plan is reversed, and after. Sums: ranks that know some of the motions add up to all.
  struct ByHand {
    Index motions = 0;
    std::uint64_t digest = 0, digest_back = 0;
    void add(const BlockMotion& motion, Index number);
    bool operator==(const ByHand&) const = default;
  };
  /// One rank's share of a plan of which nobody holds the whole: all motions that it takes part in, as `copy` and
  /// `copy_points` make them, in an order that is everybody's. Throws as those do, and `Error(argument)` where a
  /// motion is not this rank's.
  static BlockPlan of_rank(FloorPlan source, FloorPlan destination, Index rank, std::vector<BlockMotion> motions,
                           const ByHand& everybodys);

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
  Kind kind() const { return kind_; }
  /// Widths and what is periodic, for the plan that `reverse` turned round where it did.
  const Halo& halo() const&;
  Halo halo() && { return std::as_const(*this).halo(); }
  bool reversed() const { return reversed_; }
  bool has_by_hand() const { return everybodys_.motions > 0; }  ///< anybody's
  /// Of a phase of a halo (see `phases`): the dimensions of the phases so far, its own the last; else none.
  const Axes& swept() const&;
  Axes swept() && { return std::as_const(*this).swept(); }

  /// All motions that the plan holds, none of them empty, in any order; but those from one block to another follow each
  /// other as in `motions`, and those copied by hand come last, in their order. What f is given is used again.
  void for_each(const std::function<void(const BlockMotion&)>& f) const;
  void for_each_shared(const std::function<void(const BlockMotion&)>& f) const;   ///< of these, what neighbours share,
  void for_each_by_hand(const std::function<void(const BlockMotion&)>& f) const;  ///< and the others
  /// The same in an order that sender and receiver have in common:
  /// by destination, source and where in them, then those by hand.
  List<BlockMotion> motions() const;
  /// Those to (from) blocks that a rank owns, in that order. Throw `Error(argument)` where the plan is another rank's.
  List<BlockMotion> receives(Index rank) const;
  List<BlockMotion> sends(Index rank) const;
  /// The plan that brings everything back: sources and destinations exchanged.
  BlockPlan reverse() const;

  /// Whether `check_races` (see there) finds nothing, told from how the plan was made: true only where no motion is by
  /// hand and blocks that are read do not overlap; false says nothing.
  bool never_races(bool endogenous, bool combining) const;

  std::uint64_t digest() const;
  /// How it was made, in words: plans whose facts are the same have as a rule the same digest. `lists`: the blocks and
  /// the motions by hand too, the first of them.
  Facts facts(bool lists) const;
  bool operator==(const BlockPlan& other) const;
  Index workspace_bytes() const;  ///< the two floor plans not counted
  std::string to_string(Index most = 8) const;

  /// A file's bytes: a header with a version, bit-packed lists, a checksum; the same on every machine. What neighbours
  /// share is worked out again by whoever reads them. Throws `Error(argument)` for a phase: the whole plan is stored.
  std::vector<std::byte> to_bytes() const;
  /// What `to_bytes` wrote, of 64 dimensions at most. Throws `Error(argument)` saying what is wrong; never trusts a
  /// number. Few bytes may stand for any number of blocks, pairs of neighbours and motions by hand: bytes from
  /// strangers are given a bound, which holds for each of them, and time and memory with it.
  static BlockPlan from_bytes(std::span<const std::byte> bytes, Index most_pairs = all_pairs);

 private:
  friend std::vector<BlockPlan> phases(const BlockPlan& plan, Order order);
  using Each = std::function<void(const BlockMotion&)>;

  void check_motion(const BlockMotion& motion) const;
  bool takes_part(const BlockMotion& motion) const;
  void add_by_hand(BlockMotion motion);
  const std::vector<BlockMotion>& by_hand() const;
  template <class F>
  List<BlockMotion> in_order(F&& wanted) const;
  void check_rank(Index rank) const;

  FloorPlan source_, destination_;  ///< as they were before a plan was reversed
  Axes axes_, axes_back_;           ///< the same, and their inverse
  std::optional<Index> rank_;
  Kind kind_ = Kind::by_hand;
  bool reversed_ = false;
  std::shared_ptr<const Neighbours> neighbours_;  ///< null: none share anything
  ByHand everybodys_;
  /// This rank's, null: none. Copies of a plan share them until motions are added to one of them.
  std::shared_ptr<std::vector<BlockMotion>> by_hand_;
};

}  // namespace longshore

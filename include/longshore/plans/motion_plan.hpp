/// plans: what moves from whom to whom. `MotionPlan` between two
/// layouts, a pure function of them: no communicator needed.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "longshore/core/list.hpp"
#include "longshore/layouts/layout.hpp"
#include "longshore/regions/point.hpp"
#include "longshore/relations/loop_nest.hpp"

namespace longshore {

/// The pairs of one dimension that `source`'s coordinate owns and `destination`'s coordinate wants, in closed form
/// (families of line segments with the lcm of the two cycles as period). Time and memory follow the number of segments
/// of one period. Both distributions have the same extent. Throws `Error(memory_limit)` where more than 2^25 blocks
/// would have to be looked at.
PairedRuns intersect(const Distribution& source, Index source_coordinate, const Distribution& destination,
                     Index destination_coordinate);
/// How many pairs that are, without a look at the segments.
Index common_indices(const Distribution& source, Index source_coordinate, const Distribution& destination,
                     Index destination_coordinate);
/// The coordinates of `b`, ascending, that share an index with `coordinate` of `a`.
std::vector<Index> partners(const Distribution& a, Index coordinate, const Distribution& b);

/// Everything that one rank sends to another (or keeps: source == destination) in a redistribution.
struct Motion {
  Index source = 0, destination = 0;  ///< world ranks
  Index elements = 0;                 ///< > 0
  Point source_coordinates;           ///< per source array dimension
  Point destination_coordinates;      ///< per destination array dimension
  bool operator==(const Motion&) const = default;
};

/// The plan that brings an array from one layout to another, optionally permuting its axes: destination dimension d is
/// source dimension axes[d], as in NumPy's transpose. A value: immutable, comparable, serialisable, and copies share
/// what they say. Motions are derived on demand, so the plan of one rank among millions costs only that rank's motions.
class MotionPlan {
 public:
  /// Throws `Error(shape)` naming the dimension where the two layouts disagree.
  MotionPlan(Layout source, Layout destination, Index element_bytes, std::vector<std::size_t> axes = {});

  const Layout& source() const& { return source_; }
  Layout source() && { return std::move(source_); }
  const Layout& destination() const& { return destination_; }
  Layout destination() && { return std::move(destination_); }
  const std::vector<std::size_t>& axes() const& { return axes_; }
  std::vector<std::size_t> axes() && { return std::move(axes_); }
  Index element_bytes() const { return element_bytes_; }
  Index world_size() const;  ///< ranks [0, world_size()) may take part

  /// The motions whose source (destination) is `rank`, the one to itself included, by
  /// ascending peer coordinates. Every destination element is written exactly once, also from
  /// replicated sources: a rank that holds a replica itself keeps it.
  void for_each_send(Index rank, const std::function<void(const Motion&)>& f) const;
  void for_each_receive(Index rank, const std::function<void(const Motion&)>& f) const;
  List<Motion> sends(Index rank) const;
  List<Motion> receives(Index rank) const;

  /// The motion as a relation between the two ranks' local arrays (byte offsets into them), in the destination's memory
  /// order, canonical. Sender and receiver compute the same.
  LoopNest relation(const Motion& motion) const;
  /// The same pairs with one axis a dimension, in the destination's memory order, nothing merged or dropped: what
  /// several motions that are carried out together have in common shows only so.
  LoopNest relation_by_dimension(const Motion& motion) const;
  /// What the motion's relation is like, from the origin: of one with very many runs only the beginning.
  LoopNest typical_relation(const Motion& motion) const;

  std::uint64_t digest() const;
  /// The plan in words that say everything: equal plans have equal texts, and a text names its layouts as they parse.
  std::string to_string() const;
  bool operator==(const MotionPlan&) const = default;

 private:
  Layout source_, destination_;
  Index element_bytes_;
  std::vector<std::size_t> axes_;
};

/// Who carries a motion between two visible memories, so that each is carried once.
enum class Direction {
  pull,  ///< the destination's owner: best where several sources share the destination's cache lines
  push,  ///< the source's owner: best where several destinations share the source's cache lines
};

/// The better direction for a whole plan: a pure function, so that all ranks choose alike.
Direction preferred_direction(const MotionPlan& plan);

}  // namespace longshore

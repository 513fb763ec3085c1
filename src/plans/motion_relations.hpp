/// plans: the relations of many motions of one plan. What two coordinates of a dimension have in common is found once,
/// and motions whose relations differ in where they begin only are told to be of one shape.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "longshore/plans/motion_plan.hpp"

namespace longshore {

class MotionRelations {
 public:
  enum class Extent {
    whole,
    typical,  ///< the beginning of those that are very long: their nests tell what they are like
  };
  /// The plan must outlive this.
  explicit MotionRelations(const MotionPlan& plan, Extent extent = Extent::whole)
      : plan_(plan), extent_(extent), dimensions_(plan.axes().size()) {}

  /// A motion's relation: that of its shape, so many bytes further on.
  struct Placed {
    std::size_t shape = 0;
    Index source = 0, destination = 0;
  };
  Placed place(const Motion& motion);
  /// Canonical, its first pair at (0, 0).
  const LoopNest& nest(std::size_t shape) const& { return shapes_[shape].nest; }
  std::size_t shapes() const { return shapes_.size(); }

 private:
  /// What a coordinate of the source and one of the destination have in common: runs from the origin, and how far on.
  struct Meeting {
    std::size_t runs = 0;
    Index source = 0, destination = 0;
  };
  struct Dimension {
    std::map<std::pair<Index, Index>, Meeting> meetings;
    std::vector<PairedRuns> runs;
  };
  /// The strides of the arrays of one side.
  struct Strides {
    std::map<Index, std::size_t> of_rank;
    std::vector<Point> different;
  };
  struct Shape {
    std::vector<std::size_t> key;  ///< runs of each dimension, strides of both sides
    LoopNest nest;
  };

  const Meeting& meeting(std::size_t dimension, const Motion& motion);
  std::size_t strides(Strides& side, const Layout& layout, Index rank) const;

  const MotionPlan& plan_;
  const Extent extent_;
  std::vector<Dimension> dimensions_;  ///< of the destination
  Strides source_, destination_;
  std::vector<Shape> shapes_;
  std::vector<std::size_t> key_;
};

}  // namespace longshore

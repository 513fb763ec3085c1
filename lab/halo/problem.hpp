/// What the halo bench exchanges: boxes on a lattice, their cells and what belongs in the cells around them.
#pragma once

#include <string>
#include <vector>

#include <longshore/layouts/xarray.hpp>
#include <longshore/plans/block_plan.hpp>

namespace longshore::bench {

/// Ranks side by side along one dimension. Each has a cube of cells, cut into
/// as many boxes along every dimension; the domain is periodic in all three.
struct HaloProblem {
  Index ranks = 1;
  Index split = 0;  ///< the dimension along which the ranks lie
  Index cells = 0;  ///< of a rank, along each dimension
  Index boxes = 1;  ///< of a rank, along each dimension; they divide the cells
  Index width = 1;  ///< ghost cells on every side
  bool corners = true;

  /// Throws `Error(argument)` where that is no problem, or where boxes are narrower than their ghost cells.
  void check() const;
  Region domain() const;
  Index rank_boxes() const { return boxes * boxes * boxes; }
  Region box(const Point& at) const;  ///< by its place on the lattice of all boxes
  Point place(Index k) const;  ///< the place of box k: one rank's boxes after the other's, the last dimension's fastest
  Index number(const Point& at) const;
  Point lattice() const;  ///< how many boxes there are
  FloorPlan blocks() const;
  Halo halo() const { return with_corners(Halo(3, width, domain(), {true, true, true})); }
  GridFormat format() const { return {Index(sizeof(double)), Point(3, width), Order::F}; }

 private:
  Halo with_corners(Halo halo) const {
    halo.corners = corners;
    return halo;
  }
};

/// One rank's boxes in memory.
class Boxes {
 public:
  /// In ordinary memory.
  Boxes(const HaloProblem& problem, Index rank)
      : Boxes(problem, rank, XArray(problem.blocks(), rank, problem.format())) {}
  /// Throws `Error(argument)` unless the array has the problem's blocks and format.
  Boxes(const HaloProblem& problem, Index rank, XArray array);

  const HaloProblem& problem() const { return problem_; }
  Index rank() const { return rank_; }
  const XArray& array() const { return array_; }
  View<double, 3> view(Index box) const { return View<double, 3>(array_.grid(box)); }
  Index ghost_bytes() const;  ///< what one exchange has to write here

  /// The owner writes all of its cells anew, with values that no cell has had before.
  void fill();
  /// Nothing is left in the ghost cells.
  void spoil();
  /// What is wrong, in words: own cells must be as `fill` left them, ghost cells as their
  /// owners' are after as many fills. Empty where nothing is. Worked out cell by cell from
  /// global indices, without any of the exchanges' geometry.
  std::string check() const;

 private:
  double value(Index x, Index y, Index z) const;
  template <class F>
  void for_each_row(F&& f) const;

  HaloProblem problem_;
  Index rank_;
  XArray array_;
  Region domain_;
  Index fills_ = 0;
};

}  // namespace longshore::bench

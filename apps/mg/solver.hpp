/// NAS-MG's algorithm, whoever communicates.
///
/// A `Communication` owns the meshes: `mesh(field, level)` with a ghost cell on every side,
/// `right_hand_side()` of the finest level with none. `refresh(field, level, computable, compute)` fills the
/// ghost cells of a mesh and computes what needs them: `computable` says what can be computed where the mesh
/// is known in a region, and `compute` is called for parts of that, each point once, as soon as the ghost
/// cells that they need are there. `phases` has the seconds of communication.
#pragma once

#include <cmath>

#include "apps/app.hpp"
#include "apps/mg/kernels.hpp"

namespace longshore::apps::mg {

enum class Field { solution, residual };

/// The blocks of every level, those of the coarsest (of 2 points in every dimension) first; each rank has one of every
/// level. Throws `Error(argument)` where that cannot be.
std::vector<FloorPlan> levels_of(Index points, Index ranks);
/// The charges on one rank's part of the finest level. Collective.
void place_charges(MPI_Comm comm, const Mesh& v, const Region& part, Index points);

// What can be computed where a mesh is known: operators of 27 points, coarse points, cells to be interpolated in.
inline Region stencil_points(const Region& known) { return known.grow(-1); }
inline Region coarse_points(const Region& known) { return known.grow({-1, -1, -1}, {-2, -2, -2}).coarsen(2); }
inline Region cells(const Region& known) { return known.grow({0, 0, 0}, {-1, -1, -1}); }

template <class Communication>
class Solver {
 public:
  Solver(MPI_Comm comm, const Problem& problem, const std::vector<FloorPlan>& levels, Communication& communication)
      : comm_(comm), problem_(problem), finest_(levels.size() - 1), communication_(communication) {
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    for (const FloorPlan& blocks : levels) blocks_.push_back(blocks.region(rank));
    place_charges(comm, communication.right_hand_side(), blocks_[finest_], problem.points);
  }

  Result run() {
    // As the benchmark prescribes: once without the clock, then all over again.
    iterate(1);
    communication_.phases = {};
    const double norm = iterate(problem_.iterations);
    const Phases phases = slowest(communication_.phases, comm_);
    Result result;
    result.verification = "the norm of the last residual and the benchmark's";
    result.error = std::abs(norm - problem_.norm) / problem_.norm;
    result.tolerance = 1e-8;
    result.verified = result.error <= result.tolerance;
    result.total_s = phases.total_s, result.communication_s = phases.communication_s;
    result.payload_bytes = phases.payload_bytes;
    result.flops = 58.0 * problem_.iterations * std::pow(double(problem_.points), 3);
    return result;
  }

 private:
  Mesh u(std::size_t level) const { return communication_.mesh(Field::solution, level); }
  Mesh r(std::size_t level) const { return communication_.mesh(Field::residual, level); }

  /// The norm of the residual after so many cycles from nothing; clearing the solution is not timed.
  double iterate(int cycles) {
    clear(u(finest_));
    MPI_Barrier(comm_);
    Stopwatch total(communication_.phases.total_s);
    subtract_solution();
    for (int n = 0; n < cycles; ++n) cycle();
    return residual_norm();
  }

  template <class Computable, class Compute>
  void refresh(Field field, std::size_t level, Computable&& computable, Compute&& compute) {
    communication_.refresh(field, level, computable, compute);
    const Region& block = blocks_[level];
    Point whole(3);  // dimensions that are not cut have ghost cells of the rank's own
    for (std::size_t d = 0; d < 3; ++d) whole[d] = block.extent(d) == Index{2} << level;
    communication_.phases.payload_bytes += (block.grow(1).size() - block.grow(whole).size()) * Index(sizeof(double));
  }

  /// r = v - A u on the finest level.
  void subtract_solution() {
    refresh(Field::solution, finest_, stencil_points, [&](const Region& part) {
      subtract_operator(u(finest_), communication_.right_hand_side(), r(finest_), problem_.residual, part);
    });
  }

  /// u += C r
  void smooth_solution(std::size_t level) {
    refresh(Field::residual, level, stencil_points,
            [&](const Region& part) { smooth(r(level), u(level), problem_.smoother, part); });
  }

  /// Corrects the solution by the next coarser one, and smoothes it.
  void correct(std::size_t level, const Mesh& right_hand_side) {
    refresh(Field::solution, level - 1, cells,
            [&](const Region& part) { add_interpolated(u(level - 1), u(level), part); });
    // What was interpolated has reached the ghost cells too.
    subtract_operator(u(level), right_hand_side, r(level), problem_.residual, blocks_[level]);
    smooth_solution(level);
  }

  /// A V cycle, and what it has left.
  void cycle() {
    for (std::size_t level = finest_; level > 0; --level)
      refresh(Field::residual, level, coarse_points,
              [&](const Region& part) { restrict_mesh(r(level), r(level - 1), part); });
    clear(u(0));
    smooth_solution(0);
    for (std::size_t level = 1; level < finest_; ++level) {
      clear(u(level));
      correct(level, r(level));
    }
    correct(finest_, communication_.right_hand_side());
    subtract_solution();
  }

  double residual_norm() {
    double sum = sum_of_squares(r(finest_), blocks_[finest_]);
    Stopwatch communication(communication_.phases.communication_s);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, comm_);
    return std::sqrt(sum / std::pow(double(problem_.points), 3));
  }

  MPI_Comm comm_;
  Problem problem_;
  std::size_t finest_;
  Communication& communication_;
  std::vector<Region> blocks_;  ///< this rank's, of every level
};

}  // namespace longshore::apps::mg

/// The arithmetic of NAS-MG: 27-point operators on parts of periodic
/// meshes, the charges, the norm. Nothing here communicates.
///
/// Meshes are indexed (i, j, k), k fastest. Level l has 2^l points in every dimension; point J of one level is point 2J
/// + 1 of the next finer one. Every operator says by a region for which points (or cells) it is applied.
#pragma once

#include <array>
#include <vector>

#include "longshore/layouts/xarray.hpp"

namespace longshore::apps::mg {

using Mesh = View<double, 3>;

/// What a class of the benchmark prescribes.
struct Problem {
  Index points = 0;  ///< in every dimension
  int iterations = 0;
  std::array<double, 4> residual{}, smoother{};  ///< the operators a and c: centre, faces, edges, corners
  double norm = 0;                               ///< of the last residual, as published
};

/// Throws `Error(argument)` for other letters than S, W, A, B and C.
Problem problem_of(char problem_class);

/// r = v - A u at the points of `part`. `v` and `r` may be the same. A has no faces, as the benchmark has it.
void subtract_operator(const Mesh& u, const Mesh& v, const Mesh& r, const std::array<double, 4>& a, const Region& part);
/// u += C r at the points of `part`. C has no corners.
void smooth(const Mesh& r, const Mesh& u, const std::array<double, 4>& c, const Region& part);
/// The full-weighted averages of `fine` at the points of `part`, which are coarse.
void restrict_mesh(const Mesh& fine, const Mesh& coarse, const Region& part);
/// Adds what is linear between the points of `coarse` to `fine`. `part` are cells of the coarse mesh: between its
/// points (i, j, k) and (i + 1, j + 1, k + 1), and they cover the fine points from (2i + 1, ...) to (2i + 2, ...).
void add_interpolated(const Mesh& coarse, const Mesh& fine, const Region& part);

/// Zeros, in the ghost cells too.
void clear(const Mesh& mesh);
double sum_of_squares(const Mesh& mesh, const Region& part);

/// A point of the random field that charges are placed by.
struct Candidate {
  double value = 0;
  Index place = 0;  ///< of the point among all, k fastest
};
constexpr std::size_t charges = 10;  ///< of either sign

/// Keeps the largest values, and the smallest ones after them, descending, `charges` of either. As many there must be.
void keep_extremes(std::vector<Candidate>& candidates);
/// Those of the random field on `part` of a mesh with `points` in every dimension.
std::vector<Candidate> extremes(const Region& part, Index points);
/// 1 where the random field is largest, -1 where it is smallest, 0 elsewhere on `part`.
void place_charges(const Mesh& v, const std::vector<Candidate>& extremes, const Region& part, Index points);

}  // namespace longshore::apps::mg

/// The arithmetic of Redblack3D: Gauss-Seidel sweeps over every second point for Poisson's equation on the unit cube,
/// seven points, values given on the boundary. Nothing here communicates.
#pragma once

#include "longshore/layouts/xarray.hpp"

namespace longshore::apps::redblack3d {

using Mesh = View<double, 3>;  ///< indices (i, j, k), k fastest; n points between the boundaries, which are at -1 and n

enum class Colour { red, black };  ///< points where i + j + k is even, and odd

/// Gauss-Seidel at the points of one colour in `part`. `scaled_source` is h^2 times the equation's right-hand side.
void sweep(const Mesh& u, const Mesh& scaled_source, Colour colour, const Region& part);

/// What the iteration starts from on a block of the n^3 points: the boundary values around it, nothing in it, and the
/// source. The equation's solution is x^2 y + y^2 z + z^2 x, which seven points get exactly.
void begin(const Mesh& u, const Mesh& scaled_source, const Region& block, Index n);

/// The same iteration by plain loops over all points, for comparison. Point
/// (i, j, k) is ((i + 1)(n + 2) + j + 1)(n + 2) + k + 1 of the result.
std::vector<double> reference(Index n, int iterations);

}  // namespace longshore::apps::redblack3d

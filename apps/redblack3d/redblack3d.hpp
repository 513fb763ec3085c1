/// Redblack3D: red-black Gauss-Seidel for Poisson's equation in three dimensions, on a 7-point stencil.
#pragma once

#include "apps/app.hpp"

namespace longshore::apps::redblack3d {

/// So many iterations on n^3 points, compared bit by bit with the same iterations by one process. Collective, on any
/// number of ranks that leaves each of them a point. Throws `Error(argument)`.
Result run(MPI_Comm comm, Index n, int iterations, Variant variant);

}  // namespace longshore::apps::redblack3d

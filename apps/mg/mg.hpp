/// NAS-MG: V cycles of multigrid for a periodic Poisson equation.
#pragma once

#include "apps/app.hpp"

namespace longshore::apps::mg {

/// Runs a class of the benchmark (S, W, A, B, C) and compares the norm of its residual with the
/// published one. Collective, on 1, 2, 4 or 8 ranks: the coarsest level has 2 points in every dimension,
/// and each rank needs one of them. `parts`: the strips that a share of ghost cells is got in, from windows. Throws
/// `Error(argument)`.
Result run(MPI_Comm comm, char problem_class, Variant variant, Index parts);

}  // namespace longshore::apps::mg

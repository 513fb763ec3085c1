/// NAS-FT: a 3-D equation solved in Fourier space, on slabs that are transposed for every transform.
#pragma once

#include "apps/app.hpp"

namespace longshore::apps::ft {

/// Runs class S, W, A or B. Collective. Throws `Error(argument)` on
/// all ranks for other classes and where there are too many ranks.
Result run(MPI_Comm comm, char problem_class, Variant variant);

}  // namespace longshore::apps::ft

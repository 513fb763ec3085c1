/// SUMMA: a product of two matrices by broadcasts of panels along process rows and columns.
#pragma once

#include "apps/app.hpp"

namespace longshore::apps::summa {

/// C = A B of n x n doubles, `panel` columns of A and rows of B
/// at a time. Collective. Throws `Error(argument)` on all ranks.
Result run(MPI_Comm comm, Index n, Index panel, Variant variant);

}  // namespace longshore::apps::summa

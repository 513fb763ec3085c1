/// movers/mpi/profile: the summaries of all processes become one, on the way up a tree.
#pragma once

#include "movers/mpi/profile/running_mpi.hpp"
#include "movers/profile/usage.hpp"

namespace longshore::profile {

/// Collective. What it returns holds everybody's in the first process, and part of them in others.
Summary gather(Summary own, MPI_Comm comm);

}  // namespace longshore::profile

/// profile: the summaries of all processes become one, on the way up a tree.
#pragma once

#include "profile/preload/running_mpi.hpp"
#include "profile/usage.hpp"

namespace longshore::profile {

/// Collective. Afterwards that of the first process holds everybody's, and others part of them. A process whose memory
/// is short goes on, for others wait for it: what it cannot send or read counts as unread.
void gather(Summary& own, MPI_Comm comm) noexcept;

}  // namespace longshore::profile

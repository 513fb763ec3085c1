/// mpi: MPI_Comm_split with messages between members only:
/// what each wants goes up a tree, where its map is comes down.
#pragma once

#include "mpi/subgroup.hpp"

namespace longshore::mpi {

/// The positions of the members of this colour, by key and then by position; nobody's where it is
/// negative. Collective over the members. The first has everybody's colour and key for a moment; a map is
/// sent to one of its members and goes on among them, so that it is sent once a member. What goes wrong
/// at the first, and `no_number` at any, is an error at all.
RankMap split_along(const Subgroup& group, Index colour, Index key);

}  // namespace longshore::mpi

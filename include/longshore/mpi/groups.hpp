/// mpi: MPI's groups and communicators as rank maps, and rank maps as groups and communicators.
///
/// What is worked out of groups is worked out on the maps, here; MPI is called once, with ranges where there are some.
/// Its own union, difference, comparison and translation look at every pair of members in the libraries that there are.
#pragma once

#include <limits>

#include "longshore/mpi/communicator.hpp"
#include "longshore/ranks/rank_groups.hpp"

namespace longshore::mpi {

using GroupHandle = Handle<struct GroupTag>;

/// The group of the map's members, in its order; world ranks of the map are ranks of `parent`. Not collective. The
/// caller frees it with MPI_Group_free. Throws `Error(argument)` where the map's world is not of the size of `parent`.
GroupHandle to_group(const RankMap& map, CommHandle parent);

/// A communicator of the map's members, in its order. Collective over the members only, each with the same `tag`, which
/// tells apart those that several threads make at a time; others get MPI_COMM_NULL at once, if they call. The caller
/// frees it with MPI_Comm_free. It has the error handler of `parent`. Throws as `to_group`.
CommHandle create_communicator(const RankMap& map, CommHandle parent, int tag = 0);

/// Which ranks of `parent` the processes of a communicator are. Collective over `comm`: its rank 0 has the list for a
/// moment, all others get the map. What is wrong at one process is an error at all of them.
RankMap rank_map_of(CommHandle comm, CommHandle parent);

/// Which ranks of `parent` the members of a group are. Not collective. MPI tells by translation only, for which the
/// libraries compare each member with each rank of the parent at worst: where that would be more than `most`
/// comparisons, `Error(argument)` names the form above. Throws that too where a member is not in `parent`. What is
/// taken if nothing is said, a tenth of a second, is 8,192 members of as many ranks.
RankMap rank_map_of_group(GroupHandle group, CommHandle parent, Index most = Index{1} << 26);

/// A colour or a key in a split that its caller has found to be none: an error of all, who would wait otherwise.
inline constexpr Index no_number = std::numeric_limits<Index>::min();

/// MPI_Comm_split with no communicator made: which ranks of `parent` are those of this colour, by
/// key and then by rank. Nobody's where `colour` is negative. Collective over `parent`. Its rank
/// 0 makes the maps, and each travels among its own members.
RankMap split_ranks(CommHandle parent, Index colour, Index key);

/// `node_order` of the processes of a communicator, each node known by its lowest rank. Collective over `comm`.
RankMap node_aware_order(CommHandle comm);

}  // namespace longshore::mpi

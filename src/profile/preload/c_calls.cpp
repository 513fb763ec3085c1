// The calls that are intercepted: each lets MPI do its work and tells the profile what came of it.
#include "longshore/ranks/rank_groups.hpp"
#include "profile/preload/profile.hpp"

// Declared by mpi.h without a visibility of their own, and to be found before those of the library.
#define LONGSHORE_INTERCEPT extern "C" __attribute__((visibility("default")))

using longshore::Index;
using longshore::RankMap;
using longshore::RankRange;
using longshore::profile::mpi;
using longshore::profile::profile;

namespace {

int made(const char* call, MPI_Comm parent, const MPI_Comm* comm, int code) {
  if (code == MPI_SUCCESS) profile().communicator(call, parent, *comm);
  return code;
}

int duplicated(const char* call, MPI_Comm parent, int code) {
  if (code == MPI_SUCCESS) profile().duplicate(call, parent);
  return code;
}

template <class Derive>
int grouped(const char* call, const MPI_Group* group, int code, const Derive& derive) {
  if (code == MPI_SUCCESS) profile().group(call, *group, std::cref(derive));
  return code;
}

RankMap members(MPI_Group group) { return profile().members(group); }

std::vector<Index> positions(int n, const int* ranks) { return std::vector<Index>(ranks, ranks + n); }

std::vector<RankRange> ranges(int n, const int (*triplets)[3]) {
  std::vector<RankRange> list;
  for (int i = 0; i < n; ++i) list.push_back({triplets[i][0], triplets[i][1], triplets[i][2]});
  return list;
}

}  // namespace

LONGSHORE_INTERCEPT int MPI_Init(int* argc, char*** argv) {
  const int code = mpi().Init(argc, argv);
  if (code == MPI_SUCCESS) profile().start();
  return code;
}

LONGSHORE_INTERCEPT int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int code = mpi().Init_thread(argc, argv, required, provided);
  if (code == MPI_SUCCESS) profile().start();
  return code;
}

LONGSHORE_INTERCEPT int MPI_Finalize() {
  profile().finish();
  return mpi().Finalize();
}

LONGSHORE_INTERCEPT int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* newcomm) {
  return made("MPI_Comm_create", comm, newcomm, mpi().Comm_create(comm, group, newcomm));
}

LONGSHORE_INTERCEPT int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* newcomm) {
  return made("MPI_Comm_create_group", comm, newcomm, mpi().Comm_create_group(comm, group, tag, newcomm));
}

LONGSHORE_INTERCEPT int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* newcomm) {
  return duplicated("MPI_Comm_dup", comm, mpi().Comm_dup(comm, newcomm));
}

LONGSHORE_INTERCEPT int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm) {
  return duplicated("MPI_Comm_dup_with_info", comm, mpi().Comm_dup_with_info(comm, info, newcomm));
}

LONGSHORE_INTERCEPT int MPI_Comm_idup(MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request) {
  return duplicated("MPI_Comm_idup", comm, mpi().Comm_idup(comm, newcomm, request));
}

#define LONGSHORE_IDUP_WITH_INFO(name)                                                                        \
  LONGSHORE_INTERCEPT int MPI_##name(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm, MPI_Request* request) { \
    return duplicated("MPI_" #name, comm, mpi().name(comm, info, newcomm, request));                          \
  }
LONGSHORE_PROFILED_SINCE_4(LONGSHORE_IDUP_WITH_INFO)

LONGSHORE_INTERCEPT int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* newcomm) {
  return made("MPI_Comm_split", comm, newcomm, mpi().Comm_split(comm, color, key, newcomm));
}

LONGSHORE_INTERCEPT int MPI_Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm* newcomm) {
  return made("MPI_Comm_split_type", comm, newcomm, mpi().Comm_split_type(comm, split_type, key, info, newcomm));
}

LONGSHORE_INTERCEPT int MPI_Cart_create(MPI_Comm comm, int ndims, const int dims[], const int periods[], int reorder,
                                        MPI_Comm* newcomm) {
  return made("MPI_Cart_create", comm, newcomm, mpi().Cart_create(comm, ndims, dims, periods, reorder, newcomm));
}

LONGSHORE_INTERCEPT int MPI_Cart_sub(MPI_Comm comm, const int remain_dims[], MPI_Comm* newcomm) {
  return made("MPI_Cart_sub", comm, newcomm, mpi().Cart_sub(comm, remain_dims, newcomm));
}

LONGSHORE_INTERCEPT int MPI_Graph_create(MPI_Comm comm, int nnodes, const int index[], const int edges[], int reorder,
                                         MPI_Comm* newcomm) {
  return made("MPI_Graph_create", comm, newcomm, mpi().Graph_create(comm, nnodes, index, edges, reorder, newcomm));
}

LONGSHORE_INTERCEPT int MPI_Dist_graph_create(MPI_Comm comm, int n, const int nodes[], const int degrees[],
                                              const int targets[], const int weights[], MPI_Info info, int reorder,
                                              MPI_Comm* newcomm) {
  return made("MPI_Dist_graph_create", comm, newcomm,
              mpi().Dist_graph_create(comm, n, nodes, degrees, targets, weights, info, reorder, newcomm));
}

LONGSHORE_INTERCEPT int MPI_Dist_graph_create_adjacent(MPI_Comm comm, int indegree, const int sources[],
                                                       const int sourceweights[], int outdegree,
                                                       const int destinations[], const int destweights[], MPI_Info info,
                                                       int reorder, MPI_Comm* newcomm) {
  return made("MPI_Dist_graph_create_adjacent", comm, newcomm,
              mpi().Dist_graph_create_adjacent(comm, indegree, sources, sourceweights, outdegree, destinations,
                                               destweights, info, reorder, newcomm));
}

LONGSHORE_INTERCEPT int MPI_Intercomm_create(MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm,
                                             int remote_leader, int tag, MPI_Comm* newcomm) {
  return made("MPI_Intercomm_create", local_comm, newcomm,
              mpi().Intercomm_create(local_comm, local_leader, peer_comm, remote_leader, tag, newcomm));
}

LONGSHORE_INTERCEPT int MPI_Intercomm_merge(MPI_Comm intercomm, int high, MPI_Comm* newcomm) {
  return made("MPI_Intercomm_merge", intercomm, newcomm, mpi().Intercomm_merge(intercomm, high, newcomm));
}

LONGSHORE_INTERCEPT int MPI_Comm_group(MPI_Comm comm, MPI_Group* group) {
  const int code = mpi().Comm_group(comm, group);
  if (code == MPI_SUCCESS) profile().group_of("MPI_Comm_group", comm, false, *group);
  return code;
}

LONGSHORE_INTERCEPT int MPI_Comm_remote_group(MPI_Comm comm, MPI_Group* group) {
  const int code = mpi().Comm_remote_group(comm, group);
  if (code == MPI_SUCCESS) profile().group_of("MPI_Comm_remote_group", comm, true, *group);
  return code;
}

LONGSHORE_INTERCEPT int MPI_Group_union(MPI_Group a, MPI_Group b, MPI_Group* group) {
  return grouped("MPI_Group_union", group, mpi().Group_union(a, b, group),
                 [&] { return longshore::group_union(members(a), members(b)); });
}

LONGSHORE_INTERCEPT int MPI_Group_intersection(MPI_Group a, MPI_Group b, MPI_Group* group) {
  return grouped("MPI_Group_intersection", group, mpi().Group_intersection(a, b, group),
                 [&] { return longshore::group_intersection(members(a), members(b)); });
}

LONGSHORE_INTERCEPT int MPI_Group_difference(MPI_Group a, MPI_Group b, MPI_Group* group) {
  return grouped("MPI_Group_difference", group, mpi().Group_difference(a, b, group),
                 [&] { return longshore::group_difference(members(a), members(b)); });
}

LONGSHORE_INTERCEPT int MPI_Group_incl(MPI_Group of, int n, const int ranks[], MPI_Group* group) {
  return grouped("MPI_Group_incl", group, mpi().Group_incl(of, n, ranks, group),
                 [&] { return longshore::group_incl(members(of), positions(n, ranks)); });
}

LONGSHORE_INTERCEPT int MPI_Group_excl(MPI_Group of, int n, const int ranks[], MPI_Group* group) {
  return grouped("MPI_Group_excl", group, mpi().Group_excl(of, n, ranks, group),
                 [&] { return longshore::group_excl(members(of), positions(n, ranks)); });
}

LONGSHORE_INTERCEPT int MPI_Group_range_incl(MPI_Group of, int n, int triplets[][3], MPI_Group* group) {
  return grouped("MPI_Group_range_incl", group, mpi().Group_range_incl(of, n, triplets, group),
                 [&] { return longshore::group_range_incl(members(of), ranges(n, triplets)); });
}

LONGSHORE_INTERCEPT int MPI_Group_range_excl(MPI_Group of, int n, int triplets[][3], MPI_Group* group) {
  return grouped("MPI_Group_range_excl", group, mpi().Group_range_excl(of, n, triplets, group),
                 [&] { return longshore::group_range_excl(members(of), ranges(n, triplets)); });
}

LONGSHORE_INTERCEPT int MPI_Group_free(MPI_Group* group) {
  if (group != nullptr) profile().forget(*group);  // before another thread gets its handle
  return mpi().Group_free(group);
}

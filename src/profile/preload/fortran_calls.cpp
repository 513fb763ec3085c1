// The same for Fortran, where the Fortran part of an MPI does not come through the names of C: all
// of Open MPI's, and of MPICH's the module mpi_f08. Type(MPI_Comm) and its like are the integers
// of mpif.h in a structure; `error` may be absent in mpi_f08.
#include <algorithm>

#include "profile/preload/profile.hpp"

#if !defined(LONGSHORE_MPI_FAMILY_ABI)  // which has no MPI_Fint

using longshore::profile::mpi;
using longshore::profile::profile;

using Integer = MPI_Fint;
static_assert(sizeof(Integer) == sizeof(int), "arrays of Fortran's integers are handed to C as they are");

#define LONGSHORE_NAMED(fortran, name, parameters) \
  extern "C" __attribute__((visibility("default"), alias("longshore_" #name))) void fortran parameters;
#if defined(LONGSHORE_MPI_FAMILY_OPENMPI)
#define LONGSHORE_CLASSIC(name, parameters) LONGSHORE_NAMED(mpi_##name##_, name, parameters)
#else
#define LONGSHORE_CLASSIC(name, parameters)
#endif
/// A procedure under its names, of which the following block is the body.
#define LONGSHORE_FORTRAN(name, parameters)            \
  extern "C" void longshore_##name parameters;         \
  LONGSHORE_NAMED(mpi_##name##_f08_, name, parameters) \
  LONGSHORE_CLASSIC(name, parameters)                  \
  void longshore_##name parameters

namespace {

void tell(Integer* error, int code) {
  if (error != nullptr) *error = code;
}

#if defined(LONGSHORE_MPI_FAMILY_OPENMPI)
MPI_Comm comm_of(const Integer* comm) { return mpi().Comm_f2c(*comm); }
MPI_Group group_of(const Integer* group) { return mpi().Group_f2c(*group); }
MPI_Info info_of(const Integer* info) { return mpi().Info_f2c(*info); }
Integer fortrans(MPI_Comm comm) { return mpi().Comm_c2f(comm); }
Integer fortrans(MPI_Group group) { return mpi().Group_c2f(group); }
#else
int comm_of(const Integer* comm) { return *comm; }
int group_of(const Integer* group) { return *group; }
int info_of(const Integer* info) { return *info; }
Integer fortrans(int handle) { return handle; }
#endif
int truth(const Integer* logical) { return *logical != 0; }
std::vector<int> truths(const Integer* logicals, Integer n) {
  std::vector<int> list(logicals, logicals + std::max(n, 0));  // a count that is none is MPI's to refuse
  for (int& one : list) one = one != 0;
  return list;
}

/// Calls C's procedure for a new communicator, and gives it to Fortran.
template <class Call>
void make_comm(Integer* made, Integer* error, const Call& call) {
  MPI_Comm comm = mpi().comm_null;
  const int code = call(&comm);
  if (code == MPI_SUCCESS) *made = fortrans(comm);
  tell(error, code);
}

template <class Call>
void make_group(Integer* made, Integer* error, const Call& call) {
  MPI_Group group = mpi().group_null;
  const int code = call(&group);
  if (code == MPI_SUCCESS) *made = fortrans(group);
  tell(error, code);
}

/// What Fortran's part of MPI has under this name, which knows constants that C does not; returns its error code.
template <class... Arguments>
Integer call_fortran(const char* name, Arguments*... arguments) {
  using Procedure = void(Arguments * ..., Integer*);
  auto* procedure = reinterpret_cast<Procedure*>(mpi().symbol(name));
  Integer code = MPI_ERR_OTHER;
  if (procedure != nullptr) procedure(arguments..., &code);
  return code;
}

#if defined(LONGSHORE_MPI_FAMILY_OPENMPI)
#define LONGSHORE_FORTRANS_OWN(name) "ompi_" #name "_f"
#else
#define LONGSHORE_FORTRANS_OWN(name) "mpi_" #name "_f08_"
#endif

}  // namespace

LONGSHORE_FORTRAN(init, (Integer * error)) {
  const Integer code = call_fortran(LONGSHORE_FORTRANS_OWN(init));
  if (code == MPI_SUCCESS) profile().start();
  tell(error, code);
}

LONGSHORE_FORTRAN(init_thread, (Integer * required, Integer* provided, Integer* error)) {
  const Integer code = call_fortran(LONGSHORE_FORTRANS_OWN(init_thread), required, provided);
  if (code == MPI_SUCCESS) profile().start();
  tell(error, code);
}

LONGSHORE_FORTRAN(finalize, (Integer * error)) {
  profile().finish();
  const Integer code = call_fortran(LONGSHORE_FORTRANS_OWN(finalize));
  tell(error, code);
}

LONGSHORE_FORTRAN(comm_create, (Integer * comm, Integer* group, Integer* made, Integer* error)) {
  make_comm(made, error, [&](MPI_Comm* c) { return MPI_Comm_create(comm_of(comm), group_of(group), c); });
}

LONGSHORE_FORTRAN(comm_create_group, (Integer * comm, Integer* group, Integer* tag, Integer* made, Integer* error)) {
  make_comm(made, error, [&](MPI_Comm* c) { return MPI_Comm_create_group(comm_of(comm), group_of(group), *tag, c); });
}

LONGSHORE_FORTRAN(comm_dup, (Integer * comm, Integer* made, Integer* error)) {
  make_comm(made, error, [&](MPI_Comm* c) { return MPI_Comm_dup(comm_of(comm), c); });
}

LONGSHORE_FORTRAN(comm_dup_with_info, (Integer * comm, Integer* info, Integer* made, Integer* error)) {
  make_comm(made, error, [&](MPI_Comm* c) { return MPI_Comm_dup_with_info(comm_of(comm), info_of(info), c); });
}

LONGSHORE_FORTRAN(comm_idup, (Integer * comm, Integer* made, Integer* request, Integer* error)) {
  const Integer code = call_fortran(LONGSHORE_FORTRANS_OWN(comm_idup), comm, made, request);
  if (code == MPI_SUCCESS) profile().duplicate("MPI_Comm_idup", comm_of(comm));
  tell(error, code);
}

LONGSHORE_FORTRAN(comm_split, (Integer * comm, Integer* color, Integer* key, Integer* made, Integer* error)) {
  make_comm(made, error, [&](MPI_Comm* c) { return MPI_Comm_split(comm_of(comm), *color, *key, c); });
}

LONGSHORE_FORTRAN(comm_split_type,
                  (Integer * comm, Integer* type, Integer* key, Integer* info, Integer* made, Integer* error)) {
  make_comm(made, error,
            [&](MPI_Comm* c) { return MPI_Comm_split_type(comm_of(comm), *type, *key, info_of(info), c); });
}

LONGSHORE_FORTRAN(cart_create, (Integer * comm, Integer* n, Integer* dims, Integer* periods, Integer* reorder,
                                Integer* made, Integer* error)) {
  const auto wraps = truths(periods, *n);
  make_comm(made, error,
            [&](MPI_Comm* c) { return MPI_Cart_create(comm_of(comm), *n, dims, wraps.data(), truth(reorder), c); });
}

LONGSHORE_FORTRAN(cart_sub, (Integer * comm, Integer* remain, Integer* made, Integer* error)) {
  Integer dimensions = 0;
  mpi().Cartdim_get(comm_of(comm), &dimensions);
  const auto kept = truths(remain, dimensions);
  make_comm(made, error, [&](MPI_Comm* c) { return MPI_Cart_sub(comm_of(comm), kept.data(), c); });
}

LONGSHORE_FORTRAN(graph_create, (Integer * comm, Integer* nodes, Integer* index, Integer* edges, Integer* reorder,
                                 Integer* made, Integer* error)) {
  make_comm(made, error,
            [&](MPI_Comm* c) { return MPI_Graph_create(comm_of(comm), *nodes, index, edges, truth(reorder), c); });
}

LONGSHORE_FORTRAN(dist_graph_create,
                  (Integer * comm, Integer* n, Integer* nodes, Integer* degrees, Integer* targets, Integer* weights,
                   Integer* info, Integer* reorder, Integer* made, Integer* error)) {
  const Integer code = call_fortran(LONGSHORE_FORTRANS_OWN(dist_graph_create), comm, n, nodes, degrees, targets,
                                    weights, info, reorder, made);
  if (code == MPI_SUCCESS) profile().communicator("MPI_Dist_graph_create", comm_of(comm), comm_of(made));
  tell(error, code);
}

LONGSHORE_FORTRAN(dist_graph_create_adjacent,
                  (Integer * comm, Integer* indegree, Integer* from, Integer* from_weights, Integer* outdegree,
                   Integer* to, Integer* to_weights, Integer* info, Integer* reorder, Integer* made, Integer* error)) {
  const Integer code = call_fortran(LONGSHORE_FORTRANS_OWN(dist_graph_create_adjacent), comm, indegree, from,
                                    from_weights, outdegree, to, to_weights, info, reorder, made);
  if (code == MPI_SUCCESS) profile().communicator("MPI_Dist_graph_create_adjacent", comm_of(comm), comm_of(made));
  tell(error, code);
}

LONGSHORE_FORTRAN(intercomm_create, (Integer * local, Integer* leader, Integer* peer, Integer* remote, Integer* tag,
                                     Integer* made, Integer* error)) {
  make_comm(made, error, [&](MPI_Comm* c) {
    return MPI_Intercomm_create(comm_of(local), *leader, comm_of(peer), *remote, *tag, c);
  });
}

LONGSHORE_FORTRAN(intercomm_merge, (Integer * comm, Integer* high, Integer* made, Integer* error)) {
  make_comm(made, error, [&](MPI_Comm* c) { return MPI_Intercomm_merge(comm_of(comm), truth(high), c); });
}

LONGSHORE_FORTRAN(comm_group, (Integer * comm, Integer* made, Integer* error)) {
  make_group(made, error, [&](MPI_Group* g) { return MPI_Comm_group(comm_of(comm), g); });
}

LONGSHORE_FORTRAN(comm_remote_group, (Integer * comm, Integer* made, Integer* error)) {
  make_group(made, error, [&](MPI_Group* g) { return MPI_Comm_remote_group(comm_of(comm), g); });
}

LONGSHORE_FORTRAN(group_union, (Integer * a, Integer* b, Integer* made, Integer* error)) {
  make_group(made, error, [&](MPI_Group* g) { return MPI_Group_union(group_of(a), group_of(b), g); });
}

LONGSHORE_FORTRAN(group_intersection, (Integer * a, Integer* b, Integer* made, Integer* error)) {
  make_group(made, error, [&](MPI_Group* g) { return MPI_Group_intersection(group_of(a), group_of(b), g); });
}

LONGSHORE_FORTRAN(group_difference, (Integer * a, Integer* b, Integer* made, Integer* error)) {
  make_group(made, error, [&](MPI_Group* g) { return MPI_Group_difference(group_of(a), group_of(b), g); });
}

LONGSHORE_FORTRAN(group_incl, (Integer * group, Integer* n, Integer* ranks, Integer* made, Integer* error)) {
  make_group(made, error, [&](MPI_Group* g) { return MPI_Group_incl(group_of(group), *n, ranks, g); });
}

LONGSHORE_FORTRAN(group_excl, (Integer * group, Integer* n, Integer* ranks, Integer* made, Integer* error)) {
  make_group(made, error, [&](MPI_Group* g) { return MPI_Group_excl(group_of(group), *n, ranks, g); });
}

LONGSHORE_FORTRAN(group_range_incl,
                  (Integer * group, Integer* n, Integer (*ranges)[3], Integer* made, Integer* error)) {
  make_group(made, error, [&](MPI_Group* g) { return MPI_Group_range_incl(group_of(group), *n, ranges, g); });
}

LONGSHORE_FORTRAN(group_range_excl,
                  (Integer * group, Integer* n, Integer (*ranges)[3], Integer* made, Integer* error)) {
  make_group(made, error, [&](MPI_Group* g) { return MPI_Group_range_excl(group_of(group), *n, ranges, g); });
}

LONGSHORE_FORTRAN(group_free, (Integer * group, Integer* error)) {
  MPI_Group freed = group_of(group);
  const int code = MPI_Group_free(&freed);
  if (code == MPI_SUCCESS) *group = fortrans(freed);
  tell(error, code);
}

#endif

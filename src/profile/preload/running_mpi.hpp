/// profile: the MPI library of this process, found at run time.
///
/// The profile is not linked with an MPI, so that it does no harm in processes that have
/// none, and works with one that Python loads for itself alone. What mpi.h makes of symbols
/// of the library (Open MPI's MPI_COMM_WORLD) is looked up, too.
#pragma once

#include "mpi/mpi_header.hpp"

// Those that every MPI has which the profile is for.
// clang-format off
#define LONGSHORE_PROFILED(X)                                                                              \
  X(Init) X(Init_thread) X(Finalize) X(Comm_rank) X(Comm_size) X(Comm_test_inter) X(Comm_create)           \
  X(Comm_create_group) X(Comm_dup) X(Comm_dup_with_info) X(Comm_idup) X(Comm_split) X(Comm_split_type)     \
  X(Cart_create) X(Cart_sub) X(Cartdim_get) X(Graph_create) X(Dist_graph_create)                           \
  X(Dist_graph_create_adjacent) X(Intercomm_create) X(Intercomm_merge) X(Comm_free) X(Comm_get_parent)     \
  X(Comm_create_keyval) X(Comm_get_attr) X(Comm_set_attr) X(Comm_group) X(Comm_remote_group) X(Group_size) \
  X(Group_union) X(Group_intersection) X(Group_difference) X(Group_incl) X(Group_excl) X(Group_range_incl) \
  X(Group_range_excl) X(Group_free) X(Group_translate_ranks) X(Allgather) X(Send) X(Recv)
// clang-format on

// A handle of MPICH's is Fortran's integer itself, and the standard ABI has left Fortran's handles to Fortran.
#if defined(LONGSHORE_MPI_FAMILY_OPENMPI)
#define LONGSHORE_PROFILED_HANDLES(X) X(Comm_f2c) X(Comm_c2f) X(Group_f2c) X(Group_c2f) X(Info_f2c)
#else
#define LONGSHORE_PROFILED_HANDLES(X)
#endif
#if MPI_VERSION >= 4 || defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5
#define LONGSHORE_PROFILED_SINCE_4(X) X(Comm_idup_with_info)
#else
#define LONGSHORE_PROFILED_SINCE_4(X)
#endif

#define LONGSHORE_TEXT_OF(word) #word
#define LONGSHORE_TEXT(word) LONGSHORE_TEXT_OF(word)

namespace longshore::profile {

struct RunningMpi {
  // What it has under its other names, which no profile intercepts.
#define LONGSHORE_FIELD(name) decltype(&PMPI_##name) name = nullptr;
  LONGSHORE_PROFILED(LONGSHORE_FIELD)
  LONGSHORE_PROFILED_HANDLES(LONGSHORE_FIELD)
  LONGSHORE_PROFILED_SINCE_4(LONGSHORE_FIELD)
#undef LONGSHORE_FIELD

  MPI_Comm comm_world, comm_self, comm_null;
  MPI_Group group_null, group_empty;
  MPI_Datatype byte;

  /// Ends the process with a message where there is no MPI, or one
  /// of another family: its handles would be taken for others.
  RunningMpi() noexcept;
  static constexpr const char* family = LONGSHORE_TEXT(LONGSHORE_MPI_FAMILY);
  /// Something else of that library, or of those that it or the program is linked with; null if there is none.
  void* symbol(const char* name) const;

 private:
  void* handle_;
};

/// Looked for when it is first asked for.
const RunningMpi& mpi();

}  // namespace longshore::profile

/// mpi: the one place that includes MPI. The build says which family:
/// MPICH and Open MPI have their own mpi.h, the standard ABI has mpi_abi.h.
#pragma once

// Only C functions are used; the C++ bindings that old headers pull in would add a library to link.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1

#if defined(LONGSHORE_MPI_FAMILY_ABI)
#include <mpi_abi.h>
#else
#include <mpi.h>
#endif

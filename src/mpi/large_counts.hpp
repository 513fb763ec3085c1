/// mpi: MPI-4's procedures with large counts. A library may be older than the header it is compiled with
/// (MPICH's ABI has one name for all of them), so these are weak: null where the library at hand has none.
#pragma once

#include "mpi/mpi_header.hpp"

#if MPI_VERSION >= 4
#pragma weak MPI_Type_get_envelope_c
#pragma weak MPI_Type_get_contents_c
#pragma weak MPI_Type_create_hvector_c
#define LONGSHORE_MPI_HAS_LARGE(procedure) ((procedure) != nullptr)
#endif

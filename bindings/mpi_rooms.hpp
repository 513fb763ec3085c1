/// What the modules of MPI families bind beside the engine.
#pragma once

#include <nanobind/nanobind.h>

namespace longshore::python {

void bind_mpi_ranks(nanobind::module_& module);
void bind_mpi_directory(nanobind::module_& module);
void bind_numpy_memory(nanobind::module_& module);

/// Has the kernels of this module go by the profile that `_core` has.
void take_kernel_choice(const nanobind::module_& core);

}  // namespace longshore::python

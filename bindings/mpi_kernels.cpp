// A module of an MPI family is linked with its own copy of what it needs of the core. A process has one profile of its
// copy kernels nevertheless: the one that `_core` chose.
#include "longshore/copies/kernel_profile.hpp"
#include "mpi_rooms.hpp"

namespace longshore {

namespace {
using Choose = const KernelChoice& (*)();
Choose choose_of_core = nullptr;
}  // namespace

const KernelChoice& kernel_choice() { return choose_of_core(); }

void python::take_kernel_choice(const nanobind::module_& core) {
  choose_of_core = *static_cast<const Choose*>(nanobind::capsule(core.attr("kernel_chooser")).data());
}

}  // namespace longshore

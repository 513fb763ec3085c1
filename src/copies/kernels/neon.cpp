// Kernels with 16-byte registers for aarch64, whose CPUs all have NEON.
#include "body_includes.hpp"

#if LONGSHORE_KERNELS_NEON

// The bodies come last, as in the files that raise the instruction set first.
#include "body.hpp"

namespace longshore {

const KernelTable neon_kernel_table = kernel_table<16>("neon");

}  // namespace longshore

#endif

// Kernels for the instruction set the whole library is built for.
#include "body_includes.hpp"

#if !LONGSHORE_KERNELS_NEON

// The bodies come last, as in the files that raise the instruction set first.
#include "body.hpp"

namespace longshore {

const KernelTable baseline_kernel_table = kernel_table<16>("baseline");

}  // namespace longshore

#endif

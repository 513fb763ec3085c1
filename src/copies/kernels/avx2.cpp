// Kernels with 32-byte registers.
// The instruction set is raised here, by pragma, so that the build needs no flags. prefetchw does nothing where a CPU
// does not have it.
#include "body_includes.hpp"

#if LONGSHORE_KERNELS_X86

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,prfchw"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,prfchw")
#endif

#include "body.hpp"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace longshore {

const KernelTable avx2_kernel_table = kernel_table<32>("avx2");

}  // namespace longshore

#endif

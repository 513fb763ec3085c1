// Kernels with 64-byte registers, which are whole cache lines, and masked stores.
// The instruction set is raised here, by pragma, so that the build needs no flags. prefetchw does nothing where a CPU
// does not have it.
#include "body_includes.hpp"

#if LONGSHORE_KERNELS_X86

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,popcnt,prfchw"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,popcnt,prfchw")
#endif

#include "body.hpp"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace longshore {

const KernelTable avx512_kernel_table = kernel_table<64>("avx512");

}  // namespace longshore

#endif

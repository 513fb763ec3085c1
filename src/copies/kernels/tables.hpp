/// The kernel tables of this build, one source file each.
#pragma once

#include "longshore/copies/kernels.hpp"

#if defined(__x86_64__) || defined(__i386__)
#define LONGSHORE_KERNELS_X86 1
#else
#define LONGSHORE_KERNELS_X86 0
#endif

namespace longshore {

/// 16-byte registers, what every CPU of the build's target has: SSE2 on x86, NEON on ARM.
extern const KernelTable baseline_kernel_table;

#if LONGSHORE_KERNELS_X86
extern const KernelTable avx2_kernel_table;
extern const KernelTable avx512_kernel_table;
#endif

}  // namespace longshore

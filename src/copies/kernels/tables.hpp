/// The kernel tables of this build, one source file each.
#pragma once

#include "longshore/copies/kernels.hpp"

#if defined(__x86_64__) || defined(__i386__)
#define LONGSHORE_KERNELS_X86 1
#else
#define LONGSHORE_KERNELS_X86 0
#endif
#if defined(__aarch64__)
#define LONGSHORE_KERNELS_NEON 1
#else
#define LONGSHORE_KERNELS_NEON 0
#endif

namespace longshore {

// Each architecture has a table that all its CPUs can run, with 16-byte registers.
#if LONGSHORE_KERNELS_NEON
extern const KernelTable neon_kernel_table;
#else
extern const KernelTable baseline_kernel_table;
#endif
#if LONGSHORE_KERNELS_X86
extern const KernelTable avx2_kernel_table;
extern const KernelTable avx512_kernel_table;
#endif

/// Memory of the calling thread's own, aligned to lines, for as long as a kernel runs. Null where there is none.
inline constexpr Index scratch_bytes = 2 * 256 * (256 + 64);
std::byte* kernel_scratch();
/// The same for who calls kernels: what they keep does not touch it.
inline constexpr Index tile_scratch_bytes = Index{56} << 10;
std::byte* tile_scratch();

/// Writes back what caches hold of it, and has them forget it.
void put_out_of_caches(const std::byte* data, Index n);

}  // namespace longshore

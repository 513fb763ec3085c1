// Memory that no cache holds.
#include "body_includes.hpp"

namespace longshore {

void put_out_of_caches(const std::byte* data, Index n) {
  for (Index at = 0; at < n; at += 64) {
#if LONGSHORE_KERNELS_X86
    _mm_clflush(data + at);
#elif LONGSHORE_KERNELS_NEON
    asm volatile("dc civac, %0" : : "r"(data + at) : "memory");
#endif
  }
#if LONGSHORE_KERNELS_X86
  _mm_mfence();
#elif LONGSHORE_KERNELS_NEON
  asm volatile("dsb ish" : : : "memory");
#endif
}

}  // namespace longshore

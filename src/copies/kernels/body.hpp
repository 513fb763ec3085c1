/// A kernel table from register width: the one body behind baseline, AVX2 and AVX-512.
///
/// Everything included here lives in an unnamed namespace, because each including file compiles it for another
/// instruction set: the linker must never merge the copies. For the same reason the bodies call nothing from the
/// standard library.
#pragma once

#include "blocks.hpp"
#include "copy.hpp"
#include "digest.hpp"
#include "lists.hpp"
#include "marks.hpp"
#include "merge.hpp"
#include "movers.hpp"
#include "transpose.hpp"
#include "vector.hpp"

namespace longshore {
namespace {

void fence_stores() {
#if LONGSHORE_KERNELS_X86
  _mm_sfence();
#else
  std::atomic_thread_fence(std::memory_order_release);
#endif
}

template <int W>
constexpr KernelTable kernel_table(const char* name) {
  return {name,
          &copy_bytes<W>,
          &copy_blocks<W>,
          &transpose_blocks<W>,
          &merge_lines<W>,
          expands<W>,
          &prepare_blocks<W>,
          &gather_list<W>,
          &scatter_list<W>,
          &relocate_list<W>,
          expand_kernel<W>(),
          &digest_loop<W>,
          &fence_stores};
}

}  // namespace
}  // namespace longshore

/// Memory of whole words for loops that are timed.
#pragma once

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include <longshore/core/checked.hpp>

namespace longshore::bench {

struct Free {
  void operator()(Index* words) const { std::free(words); }
};

/// Zeroed words, n > 0 of them. Large ones lie in huge pages where
/// the system gives those to who asks, as NumPy's arrays do.
using Words = std::unique_ptr<Index[], Free>;

inline Words zeroed_words(Index n) {
  constexpr Index huge_page = Index(1) << 21;
  const Index bytes = checked_mul(n, sizeof(Index)), alignment = bytes < huge_page ? 64 : huge_page;
  void* memory =
      std::aligned_alloc(std::size_t(alignment), std::size_t(checked_mul(ceil_div(bytes, alignment), alignment)));
  if (memory == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  if (bytes >= huge_page) (void)madvise(memory, std::size_t(bytes), MADV_HUGEPAGE);
#endif
  std::memset(memory, 0, std::size_t(bytes));
  return Words(static_cast<Index*>(memory));
}

}  // namespace longshore::bench

/// How to copy one block: by its size, which is a constant where that is known when compiling.
#pragma once

#include "copy.hpp"

namespace longshore {
namespace {

// Movers: how to copy one block of `least` bytes at least. `bytes` is a constant where the size is known when
// compiling.
template <int W, int N>
struct Exact {
  static constexpr Index least = N;
  static constexpr Index bytes(Index) { return N; }
  LONGSHORE_INLINE static void move(std::byte* d, const std::byte* s, Index) { copy_exact<W, N>(d, s); }
};
template <int P>
struct Overlapping {  // P to 2 P bytes
  static constexpr Index least = P;
  static constexpr Index bytes(Index block) { return block; }
  LONGSHORE_INLINE static void move(std::byte* d, const std::byte* s, Index n) { copy_overlapping<P>(d, s, n); }
};
template <int W>
struct Vectors {
  static constexpr Index least = W < 32 ? 32 : W;  // what is shorter overlaps
  static constexpr Index bytes(Index block) { return block; }
  LONGSHORE_INLINE static void move(std::byte* d, const std::byte* s, Index n) { copy_vectors<W>(d, s, n); }
};
struct Library {
  static constexpr Index least = library_bytes;
  static constexpr Index bytes(Index block) { return block; }
  LONGSHORE_INLINE static void move(std::byte* d, const std::byte* s, Index n) {
    __builtin_memcpy(d, s, static_cast<std::size_t>(n));
  }
};
/// How far ahead of the loads the source is prefetched where blocks follow each other in it; elsewhere what follows a
/// block is not wanted.
constexpr Index source_ahead = 1024;
template <int W, Index Ahead>
struct Streaming {
  static constexpr Index least = line_bytes;
  static constexpr Index bytes(Index block) { return block; }
  LONGSHORE_INLINE static void move(std::byte* d, const std::byte* s, Index n) { copy_streaming<W>(d, s, n, Ahead); }
};

/// What `use` gives for the mover of blocks of this size. Common sizes are constants of theirs: up to 64 bytes, and
/// with Long 128 and 256, too.
template <int W, bool Long = true, class Use>
auto with_mover(Index block, const Use& use) {
  if constexpr (Long) {
    if (block == 128) return use(Exact<W, 128>{});
    if (block == 256) return use(Exact<W, 256>{});
  }
  switch (block) {
#define LONGSHORE_EXACT(N) \
  case N: return use(Exact<W, N>{});
    LONGSHORE_EXACT(1)
    LONGSHORE_EXACT(2)
    LONGSHORE_EXACT(3)
    LONGSHORE_EXACT(4)
    LONGSHORE_EXACT(8)
    LONGSHORE_EXACT(12)
    LONGSHORE_EXACT(16)
    LONGSHORE_EXACT(24)
    LONGSHORE_EXACT(32)
    LONGSHORE_EXACT(64)
#undef LONGSHORE_EXACT
    default: break;
  }
  if (block < 8) return use(Overlapping<4>{});
  if (block < 16) return use(Overlapping<8>{});
  if (block < 32) return use(Overlapping<16>{});
  if constexpr (W >= 32)
    if (block < 64) return use(Overlapping<32>{});
  if constexpr (W >= 64)
    if (block < 128) return use(Overlapping<64>{});
  if (block < library_bytes) return use(Vectors<W>{});
  return use(Library{});
}

}  // namespace
}  // namespace longshore

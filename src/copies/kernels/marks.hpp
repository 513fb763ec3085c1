/// Elements of a message to marked places, a cache line of places
/// at a time, where the instruction set expands registers.
#pragma once

#include "vector.hpp"

namespace longshore {
namespace {

#if LONGSHORE_KERNELS_X86
/// How far ahead of the stores the destination's lines are claimed: enough to cover a memory access.
constexpr Index claim_ahead = 1024;

/// Elements to those of at most a register's places that are
/// marked. A whole register is read from s where that can be done.
template <int W, int E, bool Whole>
LONGSHORE_INLINE void expand_register(std::byte* places, const std::byte* s, std::uint32_t marked) {
  prefetch_write(places, claim_ahead);
  std::conditional_t<W == 64, __m512i, void> v;  // of W, so that tables without the instructions do not look at it
  if constexpr (Whole) {
    v = _mm512_loadu_si512(s);
    // A load of its own: one that expands leaves out what it does not need, and takes twice the time.
    __asm__("" : "+v"(v));
  }
  if constexpr (E == 4) {
    const auto m = static_cast<__mmask16>(marked);
    v = Whole ? _mm512_maskz_expand_epi32(m, v) : _mm512_maskz_expandloadu_epi32(m, s);
    _mm512_mask_storeu_epi32(places, m, v);
  } else {
    const auto m = static_cast<__mmask8>(marked);
    v = Whole ? _mm512_maskz_expand_epi64(m, v) : _mm512_maskz_expandloadu_epi64(m, s);
    _mm512_mask_storeu_epi64(places, m, v);
  }
}

/// A template so that only the tables which have the instructions compile it.
template <int W, int E>
void expand_elements(std::byte* d, const std::byte* s, const MarkedPlaces& to) {
  constexpr Index some = W / E, more = 32 / some;  // places a register, registers a word
  const std::byte* const end = s + to.marked * E;
  const Index last = to.last;
  Index k = to.first;
  const auto word = [marks = to.marks](Index place) {
    std::uint64_t bits;
    __builtin_memcpy(&bits, marks + (place >> 3), sizeof bits);
    return bits >> (place & 7);
  };
  const auto places = [&](Index n) {
    const auto marked = static_cast<std::uint32_t>(word(k)) & ((1u << n) - 1);
    expand_register<W, E, false>(d + k * E, s, marked);
    s += Index{__builtin_popcount(marked)} * E;
    k += n;
  };
  // Stores that cross lines take twice the time.
  const Index phase = line_phase(d + k * E);
  if (phase % E == 0 && phase != 0) places(lesser((line_bytes - phase) / E, last - k));
  for (; k + more * some <= last && s + more * W <= end; k += more * some) {
    std::uint64_t bits = word(k);
    for (Index j = 0; j < more; ++j, bits >>= some) {
      const auto marked = static_cast<std::uint32_t>(bits) & ((1u << some) - 1);
      expand_register<W, E, true>(d + (k + j * some) * E, s, marked);
      s += Index{__builtin_popcount(marked)} * E;
    }
  }
  while (k < last) places(lesser(some, last - k));
}

template <int W>
void expand_marked(std::byte* d, const std::byte* s, const MarkedPlaces& to) {
  if (to.first < to.last) (to.element == 4 ? &expand_elements<W, 4> : &expand_elements<W, 8>)(d, s, to);
}
#endif

template <int W>
constexpr auto expand_kernel() -> decltype(KernelTable::expand) {
#if LONGSHORE_KERNELS_X86
  if constexpr (W == 64) return &expand_marked<W>;
#endif
  return nullptr;
}

}  // namespace
}  // namespace longshore

/// Registers of W bytes: loads, stores of three kinds, and the few permutations the kernels are made of.
///
/// Written with the compilers' vector types, so that one text serves every instruction set; only what the language has
/// no word for (non-temporal and masked stores) names an instruction.
#pragma once

#include "body_includes.hpp"

namespace longshore {
namespace {

#define LONGSHORE_INLINE inline __attribute__((always_inline))

constexpr Index line_bytes = 64;

constexpr Index lesser(Index a, Index b) { return a < b ? a : b; }
constexpr Index magnitude(Index a) { return a < 0 ? -a : a; }
/// How far an address lies into its cache line.
LONGSHORE_INLINE Index line_phase(const std::byte* p) {
  return static_cast<Index>(reinterpret_cast<std::uintptr_t>(p) & static_cast<std::uintptr_t>(line_bytes - 1));
}
/// Where a pointer would be after `offset` bytes, as an address only: prefetches may run past the end of an array.
LONGSHORE_INLINE const void* address_after(const void* p, Index offset) {
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(p) + static_cast<std::uintptr_t>(offset));
}
LONGSHORE_INLINE void prefetch_read(const std::byte* p, Index offset) {
  __builtin_prefetch(address_after(p, offset), 0, 3);
}
/// Into the second-level cache: for lines of which more compete for a set than the first has room for.
LONGSHORE_INLINE void prefetch_nearby(const std::byte* p, Index offset) {
  __builtin_prefetch(address_after(p, offset), 0, 2);
}
LONGSHORE_INLINE void prefetch_write(const std::byte* p, Index offset) {
  __builtin_prefetch(address_after(p, offset), 1, 3);
}

template <int Bytes>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
  using type = std::uint8_t;
};
template <>
struct UnsignedOf<2> {
  using type = std::uint16_t;
};
template <>
struct UnsignedOf<4> {
  using type = std::uint32_t;
};
template <>
struct UnsignedOf<8> {
  using type = std::uint64_t;
};

/// A register of W bytes seen as elements of E bytes. Sixteen-byte elements are pairs of eight.
template <int W, int E>
struct ElementsOf {
  typedef typename UnsignedOf<E>::type type __attribute__((vector_size(W)));
};

template <int W>
struct Vector {
  using Type = typename ElementsOf<W, 8>::type;
};
/// Registers narrower than a vector.
template <>
struct Vector<1> {
  using Type = std::uint8_t;
};
template <>
struct Vector<2> {
  using Type = std::uint16_t;
};
template <>
struct Vector<4> {
  using Type = std::uint32_t;
};
template <>
struct Vector<8> {
  using Type = std::uint64_t;
};

template <int W>
using VectorType = typename Vector<W>::Type;

template <int W>
LONGSHORE_INLINE VectorType<W> load(const std::byte* p) {
  VectorType<W> v;
  __builtin_memcpy(&v, p, W);
  return v;
}

template <int W>
LONGSHORE_INLINE void store(std::byte* p, VectorType<W> v) {
  __builtin_memcpy(p, &v, W);
}

/// A store that goes past the cache; p is aligned to W.
template <int W>
LONGSHORE_INLINE void stream(std::byte* p, VectorType<W> v) {
#if LONGSHORE_KERNELS_X86
  if constexpr (W == 64) return _mm512_stream_si512(reinterpret_cast<__m512i*>(p), (__m512i)v);
  if constexpr (W == 32) return _mm256_stream_si256(reinterpret_cast<__m256i*>(p), (__m256i)v);
  if constexpr (W == 16) return _mm_stream_si128(reinterpret_cast<__m128i*>(p), (__m128i)v);
#else
  store<W>(p, v);
#endif
}

/// The registers of one line, past the cache; p is aligned to a line.
template <int W>
LONGSHORE_INLINE void stream_registers(std::byte* p, const VectorType<W> (&v)[line_bytes / W]) {
#if LONGSHORE_KERNELS_NEON
  // Such stores are of pairs of registers, and compilers have no word for them.
  __asm__("stnp %q1, %q2, [%5]\n\tstnp %q3, %q4, [%5, #32]"
          : "=m"(*reinterpret_cast<char(*)[line_bytes]>(p))
          : "w"(v[0]), "w"(v[1]), "w"(v[2]), "w"(v[3]), "r"(p));
#else
  for (int k = 0; k < line_bytes / W; ++k) stream<W>(p + k * W, v[k]);
#endif
}

/// A permutation of the elements of two registers, written as a rule: Rule::index(k) is the element (of a, then of b)
/// that comes k-th, or -1 where it does not matter.
template <int W, int E, class Rule, int... K>
LONGSHORE_INLINE VectorType<W> permute(VectorType<W> a, VectorType<W> b, std::integer_sequence<int, K...>) {
  using Elements = typename ElementsOf<W, E>::type;
  return (VectorType<W>)__builtin_shufflevector((Elements)a, (Elements)b, Rule::index(K)...);
}
template <int W, int E, class Rule>
LONGSHORE_INLINE VectorType<W> permute(VectorType<W> a, VectorType<W> b) {
  return permute<W, E, Rule>(a, b, std::make_integer_sequence<int, W / E>{});
}

/// Within each 16-byte lane, the low (or high) halves of a and b interleaved.
template <int E, bool High>
struct Interleave {
  static constexpr int per_lane = 16 / E;
  template <int W>
  struct In {
    static constexpr int index(int k) {
      const int lane = k / per_lane, place = k % per_lane;
      return (place % 2 ? W / E : 0) + lane * per_lane + place / 2 + (High ? per_lane / 2 : 0);
    }
  };
};

/// Lanes of 16 bytes, picked by number from a (0, 1, ...) and then b.
template <int... Lanes>
struct PickLanes {
  static constexpr int index(int k) {
    constexpr int lanes[] = {Lanes...};
    return lanes[k / 2] * 2 + k % 2;
  }
};

/// Transposes the lanes of W / 16 registers that lie `Step` apart.
template <int W, int Step>
LONGSHORE_INLINE void transpose_lanes(VectorType<W>* r) {
  if constexpr (W == 32) {
    const auto a = r[0], b = r[Step];
    r[0] = permute<W, 8, PickLanes<0, 2>>(a, b);
    r[Step] = permute<W, 8, PickLanes<1, 3>>(a, b);
  } else if constexpr (W == 64) {
    const auto a = permute<W, 8, PickLanes<0, 1, 4, 5>>(r[0], r[Step]);
    const auto b = permute<W, 8, PickLanes<2, 3, 6, 7>>(r[0], r[Step]);
    const auto c = permute<W, 8, PickLanes<0, 1, 4, 5>>(r[2 * Step], r[3 * Step]);
    const auto d = permute<W, 8, PickLanes<2, 3, 6, 7>>(r[2 * Step], r[3 * Step]);
    r[0] = permute<W, 8, PickLanes<0, 2, 4, 6>>(a, c);
    r[Step] = permute<W, 8, PickLanes<1, 3, 5, 7>>(a, c);
    r[2 * Step] = permute<W, 8, PickLanes<0, 2, 4, 6>>(b, d);
    r[3 * Step] = permute<W, 8, PickLanes<1, 3, 5, 7>>(b, d);
  }
}

/// Transposes W / E registers of W / E elements.
template <int W, int E>
LONGSHORE_INLINE void transpose_registers(VectorType<W> (&r)[W / E]) {
  constexpr int lanes = W / 16, per_lane = 16 / E;
  // Blocks of one lane square first, by riffles: log2 of them put every element in its place.
  for (int group = 0; group < lanes; ++group) {
    VectorType<W>* g = r + group * per_lane;
    for (int round = 1; round < per_lane; round *= 2) {
      VectorType<W> next[per_lane];
      for (int i = 0; i < per_lane / 2; ++i) {
        if constexpr (per_lane > 1) {
          next[2 * i] = permute<W, E, typename Interleave<E, false>::template In<W>>(g[i], g[i + per_lane / 2]);
          next[2 * i + 1] = permute<W, E, typename Interleave<E, true>::template In<W>>(g[i], g[i + per_lane / 2]);
        }
      }
      for (int i = 0; i < per_lane; ++i) g[i] = next[i];
    }
  }
  for (int k = 0; k < per_lane; ++k) transpose_lanes<W, per_lane>(r + k);
}

/// Every Ratio-th element of the flat array a ++ b, as far as it goes; then (second step) continued from c.
template <int W, int E, int Ratio>
struct Take {
  static constexpr int unit = E == 16 ? 8 : E;  // what is permuted
  static constexpr int pieces = E / unit;       // units an element
  static constexpr int count = W / unit;
  static constexpr int flat(int k) { return (k / pieces) * Ratio * pieces + k % pieces; }
  /// From registers 0 and 1.
  struct First {
    static constexpr int index(int k) { return flat(k) < 2 * count ? flat(k) : -1; }
  };
  /// What First gave, completed from register 2 (Ratio 3) or from the same permutation of registers 2 and 3 (Ratio 4).
  struct Second {
    static constexpr int index(int k) {
      if (flat(k) < 2 * count) return k;
      return Ratio == 3 ? count + flat(k) - 2 * count : count + k - count / 2;
    }
  };
};

/// The W / E elements that lie Ratio elements apart from p on. Reads Ratio * W bytes.
template <int W, int E, int Ratio>
LONGSHORE_INLINE VectorType<W> take(const std::byte* p) {
  using T = Take<W, E, Ratio>;
  const auto first = permute<W, T::unit, typename T::First>(load<W>(p), load<W>(p + W));
  if constexpr (Ratio == 2) return first;
  if constexpr (Ratio == 3) return permute<W, T::unit, typename T::Second>(first, load<W>(p + 2 * W));
  if constexpr (Ratio == 4) {
    const auto second = permute<W, T::unit, typename T::First>(load<W>(p + 2 * W), load<W>(p + 3 * W));
    return permute<W, T::unit, typename T::Second>(first, second);
  }
}
/// The registers in which the instruction set does a take in a few instructions; 0: none. NEON looks up any bytes of
/// two registers in one, AVX-512BW any words; with AVX2 whatever crosses lanes takes several, and lanes by themselves
/// do not.
template <int W, int E, int Ratio>
constexpr int take_width = LONGSHORE_KERNELS_NEON ? (E <= (Ratio == 2 ? 8 : 4) ? W : 0)
                           : (W == 64 && E >= 2) || (Ratio == 2 && (E == 4 || E == 8 || E * W == 512)) ? W
                           : W >= 32 && E < 16                                                         ? 16
                                                                                                       : 0;

/// Spreads the elements of v to places Ratio elements apart, leaving what lies between alone.
template <int W, int E, int Ratio>
constexpr bool can_spread = W == 64 && LONGSHORE_KERNELS_X86&& E >= 4;

template <int E, int Ratio, int Part>
struct Spread {
  static constexpr int unit = E == 16 ? 8 : E, pieces = E / unit, count = 64 / unit;
  static constexpr bool holds(int k) { return ((Part * count + k) / pieces) % Ratio == 0; }
  static constexpr int index(int k) {
    const int place = Part * count + k;
    return holds(k) ? place / pieces / Ratio * pieces + place % pieces : -1;
  }
  static constexpr unsigned mask() {
    unsigned m = 0;
    for (int k = 0; k < count; ++k) m |= static_cast<unsigned>(holds(k)) << k;
    return m;
  }
};

template <int W, int E, int Ratio, int Part = 0>
LONGSHORE_INLINE void spread(std::byte* p, VectorType<W> v) {
#if LONGSHORE_KERNELS_X86
  if constexpr (W == 64 && Part < Ratio) {
    using S = Spread<E, Ratio, Part>;
    const __m512i placed = (__m512i)permute<64, S::unit, S>(v, v);
    if constexpr (S::unit == 8)
      _mm512_mask_storeu_epi64(p + Part * 64, static_cast<__mmask8>(S::mask()), placed);
    else
      _mm512_mask_storeu_epi32(p + Part * 64, static_cast<__mmask16>(S::mask()), placed);
    spread<W, E, Ratio, Part + 1>(p, v);
  }
#endif
}

}  // namespace
}  // namespace longshore

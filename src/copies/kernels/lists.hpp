/// Blocks whose places are listed: gathered, scattered, or moved from list to list.
#pragma once

#include "blocks.hpp"

namespace longshore {
namespace {

/// One list of places or two. A side without a list is contiguous.
struct ListMove {
  const std::uint32_t* to;
  const std::uint32_t* from;
  Index n, block, unit;
};

/// Which sides are listed.
enum class Listed { source, destination, both };

/// How many blocks ahead of the stores a listed destination's lines are claimed: enough to cover a memory access.
constexpr Index list_ahead = 64;

/// Blocks first ... last - 1. Unit is the list's where it is known when compiling, else 0. With Ahead, list_ahead more
/// blocks follow, and their lines are claimed.
template <class Mover, Index Unit, Listed side, bool Ahead>
LONGSHORE_INLINE void move_some(std::byte* d, const std::byte* s, const ListMove& l, Index first, Index last) {
  constexpr Index some = 8;
  const Index n = Mover::bytes(l.block);
  const Index unit = Unit != 0 ? Unit : l.unit;
  // Not read from `l` again and again: for all the compiler knows, the blocks are stored over it.
  const std::uint32_t* const to_places = l.to;
  const std::uint32_t* const from_places = l.from;
  const auto to = [=](Index i) { return side == Listed::source ? i * n : Index{to_places[i]} * unit; };
  const auto from = [=](Index i) { return side == Listed::destination ? i * n : Index{from_places[i]} * unit; };
  Index i = first;
  for (; i + some <= last; i += some) {
    if constexpr (Ahead)
      for (Index k = 0; k < some; ++k) prefetch_write(d, to(i + list_ahead + k));
    for (Index k = 0; k < some; ++k) Mover::move(d + to(i + k), s + from(i + k), n);
  }
  for (; i < last; ++i) Mover::move(d + to(i), s + from(i), n);
}

template <class Mover, Index Unit, Listed side, bool Ahead>
void move_list(std::byte* d, const std::byte* s, const ListMove& l) {
  Index done = 0;
  if constexpr (Ahead)
    if (l.n > list_ahead) move_some<Mover, Unit, side, true>(d, s, l, 0, done = l.n - list_ahead);
  move_some<Mover, Unit, side, false>(d, s, l, done, l.n);
}

#if LONGSHORE_KERNELS_X86
/// Elements of E bytes by the instruction that gathers a register of them. A
/// template so that only the tables which have the instruction compile it.
template <int W, int E>
void gather_elements(std::byte* d, const std::byte* s, const ListMove& l) {
  // The instruction takes indices for signed: so they are counted from the middle of what they reach.
  const void* const middle = address_after(s, E * (Index{1} << 31));
  const int sign = static_cast<int>(1u << 31);
  const __m512i none = _mm512_setzero_si512();
  const std::uint32_t* const from = l.from;
  const Index n = l.n;
  Index i = 0;
  for (; i + W / E <= n; i += W / E) {
    if constexpr (E == 4) {
      const __m512i index = _mm512_xor_si512(_mm512_loadu_si512(from + i), _mm512_set1_epi32(sign));
      store<W>(d + i * E, (VectorType<W>)_mm512_mask_i32gather_epi32(none, 0xffff, index, middle, E));
    } else {
      const __m256i some = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
      const __m256i index = _mm256_xor_si256(some, _mm256_set1_epi32(sign));
      store<W>(d + i * E, (VectorType<W>)_mm512_mask_i32gather_epi64(none, 0xff, index, middle, E));
    }
  }
  move_some<Exact<W, E>, E, Listed::source, false>(d, s, l, i, n);
}

/// Whether gathering by instruction beats a load an element. It does on Intel's CPUs since those with half-precision
/// arithmetic; on earlier ones a mitigation in microcode makes it slow, and AMD's take the instruction apart.
inline bool gathers_fast() {
#if defined(__clang__)
  return false;  // older ones do not know the name
#else
  return __builtin_cpu_supports("avx512fp16");
#endif
}
#endif

using ListMover = void (*)(std::byte*, const std::byte*, const ListMove&);

/// From so many bytes on blocks are not worth claiming ahead.
constexpr Index claimed_below = 32;

template <int W, Listed side, bool Ahead>
ListMover choose_list_mover(const ListMove& l) {
#if LONGSHORE_KERNELS_X86
  if constexpr (W == 64 && side == Listed::source)
    if (l.unit == l.block && gathers_fast()) {
      if (l.block == 4) return &gather_elements<W, 4>;
      if (l.block == 8) return &gather_elements<W, 8>;
    }
#endif
  return with_mover<W, false>(l.block, [&](auto mover) -> ListMover {
    using Mover = decltype(mover);
    // Each of these is compiled: none that `worth_claiming` never asks for, and none where a product more costs
    // nothing.
    constexpr Index block = Mover::bytes(0);  // 0: any of its range
    constexpr bool ahead = Ahead && block > 0 && block < claimed_below;
    constexpr Index unit = block <= 16 && (block & (block - 1)) == 0 ? block : 0;
    if constexpr (unit != 0)
      if (l.unit == unit) return &move_list<Mover, unit, side, ahead>;
    return &move_list<Mover, 0, side, ahead>;
  });
}

/// Whether a listed destination's lines are worth claiming ahead: those of small blocks, which take more lines than
/// bytes, where they do not fit in a second-level cache, judged by a few of the places.
inline bool worth_claiming(const ListMove& l) {
  if (l.block >= claimed_below) return false;
  Index low = l.to[0], high = low;
  for (Index k = 1; k < 8; ++k) {
    const Index at = l.to[(l.n - 1) / 7 * k];
    low = lesser(low, at);
    high = at > high ? at : high;
  }
  return lesser(l.n * (l.block + line_bytes), (high - low) * l.unit) >= Index{1} << 19;
}

template <int W, Listed side>
void move_listed(std::byte* d, const std::byte* s, const ListMove& l, Stores stores) {
  if (l.n <= 0 || l.block <= 0) return;
  if (stores == Stores::streaming) {
    const bool whole_lines = side != Listed::source && ((line_phase(d) | l.unit | l.block) & (line_bytes - 1)) == 0;
    if (l.block >= 2 * line_bytes || whole_lines) return move_list<Streaming<W, source_ahead>, 0, side, false>(d, s, l);
  }
  if constexpr (side != Listed::source)
    if (worth_claiming(l)) return choose_list_mover<W, side, true>(l)(d, s, l);
  choose_list_mover<W, side, false>(l)(d, s, l);
}

template <int W>
void gather_list(std::byte* d, const std::byte* s, const BlockList& from, Stores stores) {
  const ListMove all{nullptr, from.index, from.n, from.block, from.unit};
  if (stores != Stores::streaming || from.block > LineWriter<W>::chunk_bytes / 2)
    return move_listed<W, Listed::source>(d, s, all, stores);
  if (from.n <= 0 || from.block <= 0) return;
  LineWriter<W> lines(d);
  const ListMover gather = choose_list_mover<W, Listed::source, false>(all);
  const Index some = LineWriter<W>::chunk_bytes / from.block;
  for (Index i = 0; i < from.n; i += some) {
    ListMove part = all;
    part.from += i;
    part.n = lesser(some, from.n - i);
    gather(lines.room(), s, part);
    lines.wrote(part.n * from.block);
  }
  lines.finish();
}

template <int W>
void scatter_list(std::byte* d, const std::byte* s, const BlockList& to, Stores stores) {
  move_listed<W, Listed::destination>(d, s, {to.index, nullptr, to.n, to.block, to.unit}, stores);
}

template <int W>
void relocate_list(std::byte* d, const std::uint32_t* to, const std::byte* s, const BlockList& from, Stores stores) {
  move_listed<W, Listed::both>(d, s, {to, from.index, from.n, from.block, from.unit}, stores);
}

}  // namespace
}  // namespace longshore

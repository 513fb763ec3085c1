/// Contiguous copies: short ones without a library call, long ones cached or streaming.
#pragma once

#include "vector.hpp"

namespace longshore {
namespace {

/// n bytes with P <= n <= 2 P: two pieces that may overlap.
template <int P>
LONGSHORE_INLINE void copy_overlapping(std::byte* d, const std::byte* s, Index n) {
  const auto first = load<P>(s);
  const auto last = load<P>(s + n - P);
  store<P>(d, first);
  store<P>(d + n - P, last);
}

/// n bytes, n < 2 W, in at most two stores.
template <int W>
LONGSHORE_INLINE void copy_short(std::byte* d, const std::byte* s, Index n) {
  if constexpr (W >= 64)
    if (n >= 64) return copy_overlapping<64>(d, s, n);
  if constexpr (W >= 32)
    if (n >= 32) return copy_overlapping<32>(d, s, n);
  if (n >= 16) return copy_overlapping<16>(d, s, n);
  if (n >= 8) return copy_overlapping<8>(d, s, n);
  if (n >= 4) return copy_overlapping<4>(d, s, n);
  if (n >= 2) return copy_overlapping<2>(d, s, n);
  if (n == 1) *d = *s;
}

/// n >= W bytes: vectors, the last of which overlaps the one before.
template <int W>
LONGSHORE_INLINE void copy_vectors(std::byte* d, const std::byte* s, Index n) {
  const auto last = load<W>(s + n - W);
  Index at = 0;
  for (; at + 4 * W <= n; at += 4 * W) {
    const auto a = load<W>(s + at), b = load<W>(s + at + W), c = load<W>(s + at + 2 * W), e = load<W>(s + at + 3 * W);
    store<W>(d + at, a);
    store<W>(d + at + W, b);
    store<W>(d + at + 2 * W, c);
    store<W>(d + at + 3 * W, e);
  }
  // At most three more; unrolled so that the compiler does not see a memcpy in it.
  if (at + 2 * W <= n) {
    const auto a = load<W>(s + at), b = load<W>(s + at + W);
    store<W>(d + at, a);
    store<W>(d + at + W, b);
    at += 2 * W;
  }
  if (at + W <= n) store<W>(d + at, load<W>(s + at));
  store<W>(d + n - W, last);
}

/// Any n, by the library from `library_bytes` on.
constexpr Index library_bytes = 1024;

template <int W>
LONGSHORE_INLINE void copy_cached(std::byte* d, const std::byte* s, Index n) {
  if (n < 2 * W) return copy_short<W>(d, s, n);
  if (n < library_bytes) return copy_vectors<W>(d, s, n);
  __builtin_memcpy(d, s, static_cast<std::size_t>(n));
}

/// N bytes, N known: the fewest registers that hold them, stored in ascending
/// order, which is what a line that two blocks share is best filled in.
template <int W, int N>
LONGSHORE_INLINE void copy_exact(std::byte* d, const std::byte* s) {
  constexpr int piece = N >= W ? W : N >= 32 ? 32 : N >= 16 ? 16 : N >= 8 ? 8 : N >= 4 ? 4 : N >= 2 ? 2 : 1;
  store<piece>(d, load<piece>(s));
  if constexpr (N > piece) copy_exact<W, N - piece>(d + piece, s + piece);
}

/// From so many bytes on a block is read in quarters, which then are longer than a page.
constexpr Index quartered_bytes = Index{32} << 10;

/// Some blocks side by side, a burst of each in turn, with ordinary stores: from beyond the caches a single sequence of
/// lines comes at two thirds of the rate at which four do.
template <int W, int Rows>
LONGSHORE_INLINE void copy_beside(std::byte* d, const std::byte* s, Index block, Index d_step, Index s_step) {
  constexpr Index burst = 4 * line_bytes;
  Index at = 0;
  for (; at + burst <= block; at += burst)
    for (Index k = 0; k < Rows; ++k) copy_exact<W, burst>(d + k * d_step + at, s + k * s_step + at);
  for (Index k = 0; k < Rows; ++k) copy_cached<W>(d + k * d_step + at, s + k * s_step + at, block - at);
}

/// One long block by itself, a quarter beside the others.
template <int W>
void copy_in_quarters(std::byte* d, const std::byte* s, Index n) {
  const Index quarter = n / (4 * line_bytes) * line_bytes;
  copy_beside<W, 4>(d, s, quarter, quarter, quarter);
  copy_cached<W>(d + 4 * quarter, s + 4 * quarter, n - 4 * quarter);
}

/// One line to an aligned place.
template <int W>
LONGSHORE_INLINE void stream_line(std::byte* d, const std::byte* s) {
  VectorType<W> v[line_bytes / W];
  for (int k = 0; k < line_bytes / W; ++k) v[k] = load<W>(s + k * W);
  stream_registers<W>(d, v);
}

/// Up to one line, with ordinary stores: a part of a line. Never non-temporal, for the rest of the line may be written
/// by a later call, or by nobody, and a write-combining buffer that leaves half full costs a read of memory besides.
template <int W>
LONGSHORE_INLINE void copy_part(std::byte* d, const std::byte* s, Index n) {
  if constexpr (W >= 32) return copy_short<32>(d, s, n);
  if (n >= 32) return copy_vectors<16>(d, s, n);
  return copy_short<16>(d, s, n);
}

/// `lines` whole lines to an aligned destination. So far ahead of the loads the source is prefetched, if at all: the
/// hardware stops at each page's end, this does not.
template <int W>
LONGSHORE_INLINE void stream_lines(std::byte* d, const std::byte* s, Index lines, Index ahead) {
  for (; lines >= 4; lines -= 4, d += 4 * line_bytes, s += 4 * line_bytes) {
    if (ahead != 0)
      for (Index k = 0; k < 4; ++k) prefetch_read(s, ahead + k * line_bytes);
    for (Index k = 0; k < 4; ++k) stream_line<W>(d + k * line_bytes, s + k * line_bytes);
  }
  for (; lines > 0; --lines, d += line_bytes, s += line_bytes) stream_line<W>(d, s);
}

/// Any n: whole lines streaming, the parts at both ends with ordinary stores.
template <int W>
LONGSHORE_INLINE void copy_streaming(std::byte* d, const std::byte* s, Index n, Index ahead) {
  const Index head = lesser(-line_phase(d) & (line_bytes - 1), n);
  copy_part<W>(d, s, head);
  const Index lines = (n - head) / line_bytes;
  stream_lines<W>(d + head, s + head, lines, ahead);
  const Index done = head + lines * line_bytes;
  copy_part<W>(d + done, s + done, n - done);
}

/// By the processor's own instruction, which on some writes whole lines without reading them.
inline void copy_string(std::byte* d, const std::byte* s, Index n) {
#if LONGSHORE_KERNELS_X86
  asm volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
#else
  __builtin_memcpy(d, s, static_cast<std::size_t>(n));
#endif
}

/// Many pages, four at a time: a single sequence of lines leaves memory channels idle that four sequences use.
template <int W>
void copy_far(std::byte* d, const std::byte* s, Index n, Index ahead) {
  constexpr Index page = 4096, pages = 4, burst = 4 * line_bytes;
  const Index head = -line_phase(d) & (line_bytes - 1);
  copy_part<W>(d, s, head);
  Index at = head;
  for (; at + pages * page <= n; at += pages * page)
    for (Index in_page = at; in_page < at + page; in_page += burst)
      for (Index k = in_page; k < in_page + pages * page; k += page)
        for (Index l = k; l < k + burst; l += line_bytes) stream_line<W>(d + l, s + l);
  copy_streaming<W>(d + at, s + at, n - at, ahead);
}

template <int W>
void copy_bytes(std::byte* d, const std::byte* s, Index n, Stores stores, const KernelProfile& profile) {
  if (n <= 0) return;
  if (stores == Stores::streaming && n >= 2 * line_bytes) {
    if (n >= profile.string_bytes) return copy_string(d, s, n);
    if (n >= profile.paged_bytes) return copy_far<W>(d, s, n, profile.ahead_bytes);
    return copy_streaming<W>(d, s, n, profile.ahead_bytes);
  }
  if (stores == Stores::packing && n >= quartered_bytes) return copy_in_quarters<W>(d, s, n);
  copy_cached<W>(d, s, n);
}

}  // namespace
}  // namespace longshore

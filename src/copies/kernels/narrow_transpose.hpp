/// Transposition of matrices that are narrower than a cache line on one side: structures to arrays of their fields, and
/// back.
#pragma once

#include "blocks.hpp"
#include "squares.hpp"

namespace longshore {
namespace {

/// A round of riffles: every pair of registers that lie half the way apart, interleaved. Each round moves the numbers
/// of registers one bit further into the numbers of places; as many rounds as places have bits transpose.
template <int E, int Registers>
LONGSHORE_INLINE void riffle(VectorType<16>* r) {
  VectorType<16> next[Registers];
  for (int i = 0; i < Registers / 2; ++i) {
    next[2 * i] = permute<16, E, typename Interleave<E, false>::template In<16>>(r[i], r[i + Registers / 2]);
    next[2 * i + 1] = permute<16, E, typename Interleave<E, true>::template In<16>>(r[i], r[i + Registers / 2]);
  }
  for (int i = 0; i < Registers; ++i) r[i] = next[i];
}

/// 16 bytes of each of N source rows, to 16 / E destination rows of N elements. Of the source rows only `given` are
/// there: what is written in place of others does not matter.
template <int E, int N>
LONGSHORE_INLINE void transpose_long_rows(std::byte* d, Index d1, const std::byte* s, Index s0, Index given) {
  constexpr int row = N * E, rows = 16 / row;  // of the destination: bytes, and how many in a register
  VectorType<16> r[N];
#pragma GCC unroll 16
  for (int k = 0; k < N; ++k) r[k] = load<16>(s + lesser(k, given - 1) * s0);
  if constexpr (N > 1)
#pragma GCC unroll 4
    for (int round = 1; round < N; round *= 2) riffle<E, N>(r);
  // Rows that follow each other are whole registers.
  if (row < 16 && d1 == row) {
    for (int k = 0; k < N; ++k) store<16>(d + 16 * k, r[k]);
    return;
  }
#pragma GCC unroll 16
  for (int k = 0; k < N; ++k) {
    const auto pieces = (typename ElementsOf<16, lesser(row, 8)>::type)r[k];
#pragma GCC unroll 8
    for (int p = 0; p < rows; ++p) {
      std::byte* const to = d + (k * rows + p) * d1;
      if constexpr (row == 16)
        store<16>(to, r[k]);
      else
        store<row>(to, pieces[p]);
    }
  }
}

/// N elements of each of 16 / E source rows, to the first `wanted` of N destination rows, 16 bytes of each.
template <int E, int N>
LONGSHORE_INLINE void transpose_short_rows(std::byte* d, Index d1, const std::byte* s, Index s0, Index wanted) {
  constexpr int row = N * E, rows = 16 / E;  // of the source
  VectorType<16> r[rows];
#pragma GCC unroll 16
  for (int k = 0; k < rows; ++k) {
    if constexpr (row == 16) {
      r[k] = load<16>(s + k * s0);
    } else {
      const typename ElementsOf<16, row>::type low = {load<row>(s + k * s0)};
      r[k] = (VectorType<16>)low;
    }
  }
  // Registers that are not full yet have nothing in their upper halves.
  constexpr int full = rows > N ? N : rows;
  if constexpr (N > 1) {
#pragma GCC unroll 4
    for (int count = rows; count > full; count /= 2)
#pragma GCC unroll 8
      for (int i = 0; i < count / 2; ++i)
        r[i] = permute<16, E, typename Interleave<E, false>::template In<16>>(r[i], r[i + count / 2]);
#pragma GCC unroll 4
    for (int round = 1; round < N; round *= 2) riffle<E, N>(r);
  }
#pragma GCC unroll 16
  for (int k = 0; k < N; ++k)
    if (k < wanted) store<16>(d + k * d1, r[k]);
}

/// Of one group, `length` elements along the long side of a matrix. Out of line, for several parts call it.
template <int E, int N, bool ShortRows>
__attribute__((noinline)) void transpose_strip(std::byte* d, Index d1, const std::byte* s, Index s0, Index length,
                                               Index used) {
  constexpr Index together = 16 / E;
  const Index d_step = together * (ShortRows ? d1 : E), s_step = together * (ShortRows ? E : s0);
  for (; length > 0; length -= together, d += d_step, s += s_step) {
    if constexpr (ShortRows)
      transpose_long_rows<E, N>(d, d1, s, s0, used);
    else
      transpose_short_rows<E, N>(d, d1, s, s0, used);
  }
}

using Strip = void (*)(std::byte*, Index, const std::byte*, Index, Index, Index);

/// A matrix whose short side goes in groups of so many elements, for which the strip is, the last of which overlaps the
/// one before; or in a single group that is longer than that side, where what is beyond it may be read, and written
/// before its owner is. The short side is that of destination rows, with ShortRows.
template <int E, bool ShortRows>
__attribute__((noinline)) void transpose_groups(const Matrix& m, Index group, Strip strip) {
  constexpr Index together = 16 / E;  // along the long side
  const Index shorter = ShortRows ? m.n0 : m.n1, longer = ShortRows ? m.n1 : m.n0;
  const Index d_step = ShortRows ? m.d1 : E, s_step = ShortRows ? E : m.s0;           // along the long side
  const Index d_group = ShortRows ? E : m.d1, s_group = ShortRows ? m.s0 : Index{E};  // along the short one
  const Index used = lesser(group, shorter);
  const auto all_groups = [&](Index first, Index end) {
    for (Index k = 0; k < shorter; k += used) {
      const Index at = lesser(k, shorter - used);
      strip(m.d + first * d_step + at * d_group, m.d1, m.s + first * s_step + at * s_group, m.s0, end - first, used);
    }
  };
  const Index exact = longer - (used < group ? 1 : 0), whole = exact / together * together;
  // So many at a time that both sides are in the first-level cache from one group to the next.
  const Index tile = (8192 / (shorter * E) / together + 1) * together;
  for (Index first = 0; first < whole; first += tile) all_groups(first, lesser(first + tile, whole));
  // What is left overlaps what has been done.
  const bool overlaps = whole < exact && exact >= together;
  if (overlaps) all_groups(exact - together, exact);
  const Index done = overlaps ? exact : whole;
  if (done == longer) return;
  if (ShortRows)
    transpose_edge<E>(m, 0, m.n0, done, m.n1);
  else
    transpose_edge<E>(m, done, m.n0, 0, m.n1);
}

/// In groups of N at least.
template <int E, int N, bool ShortRows>
void transpose_in_groups(const Matrix& m) {
  const Index shorter = ShortRows ? m.n0 : m.n1;
  if constexpr (N * E < 16) {
    // Whether what is beyond a short row is the next one's.
    const bool beyond = ShortRows ? m.d1 == m.n0 * E : m.s0 >= m.n1 * E;
    if (shorter > N && (beyond || shorter >= 2 * N)) return transpose_in_groups<E, 2 * N, ShortRows>(m);
  }
  transpose_groups<E, ShortRows>(m, N, &transpose_strip<E, N, ShortRows>);
}

/// Any matrix, in squares of 16 bytes, with ordinary stores.
template <int W, int E>
void transpose_small(const Matrix& m) {
  const bool short_rows = m.n0 < m.n1;  // of the destination
  if (!short_rows && m.n1 <= (E == 1 ? 4 : 3) && m.n0 > W / E && m.s0 == m.n1 * E) {
    const BlockLoops columns{E, m.n0, m.s0, E, m.n1, E, m.d1};
    if (const Nest take = nest_for_ratio<W, E, false>(columns, Contiguous::destination)) return take(m.d, m.s, columns);
  }
  constexpr int least = E < 16 ? 2 : 1;
  if (lesser(m.n0, m.n1) < least) return transpose_edge<E>(m, 0, m.n0, 0, m.n1);
  short_rows ? transpose_in_groups<E, least, true>(m) : transpose_in_groups<E, least, false>(m);
}

/// Destination rows whose lines compete for a few sets of the first-level cache: two lines of each at a time are put
/// together elsewhere, for a square that comes back to lines finds them gone, and each switch of lines costs.
template <int W, int E>
void transpose_to_competing(const Matrix& m) {
  constexpr Index most = 2 * line_bytes, rows = 16;
  alignas(64) std::byte part[most * rows];
  for (Index at = 0, n; at < m.n0 * E; at += n) {
    n = lesser(most - line_phase(m.d + at) / E * E, m.n0 * E - at);  // parts end where the first row's lines do
    for (Index j = 0; j < m.n1; j += rows) {
      const Index some = lesser(rows, m.n1 - j);
      transpose_small<W, E>({part, m.s + at / E * m.s0 + j * E, n / E, some, m.s0, n});
      for (Index k = 0; k < some; ++k) copy_cached<W>(m.d + (j + k) * m.d1 + at, part + k * n, n);
    }
  }
}

/// Up to which length destination rows that follow each other are put together in cache, where lines are asked for.
constexpr Index longest_put_together = 512;

/// Short destination rows that follow each other, streaming: in whole lines, which are put together in the first-level
/// cache.
template <int W, int E>
void transpose_dense(const Matrix& m) {
  // Source rows that are many are read some lines at a time, which are fetched ahead: the hardware follows a few.
  constexpr Index few = 8;
  using Lines = LineWriter<W, 4096>;
  const Index row = m.n0 * E, rows = Lines::chunk_bytes / (m.n0 > few ? 1 : 2) / row;
  Lines lines(m.d);
  for (Index j = 0; j < m.n1; j += rows) {
    const Index some = lesser(rows, m.n1 - j);
    for (Index k = 0; m.n0 > few && k < m.n0; ++k)
      for (Index at = 0; at < rows * E; at += line_bytes) prefetch_read(m.s, k * m.s0 + (j + rows) * E + at);
    transpose_small<W, E>({lines.room(), m.s + j * E, m.n0, some, m.s0, row});
    lines.wrote(some * row);
  }
  lines.finish();
}

/// As many long destination rows are put together in the first-level cache, some of each at a time.
constexpr Index most_put_together = 64;

/// A few long destination rows, put together in the first-level cache.
template <int W, int E>
void transpose_to_few(const Matrix& m, Stores stores) {
  constexpr Index least = 256, room = most_put_together * (least + line_bytes);
  alignas(64) std::byte part[room];
  const Index step = lesser(room / m.n1 / line_bytes * line_bytes, 4096) - line_bytes;
  for (Index at = 0, n; at < m.n0 * E; at += n) {
    // From the first part on, those of the first row begin with a line.
    n = lesser(step - line_phase(m.d + at), m.n0 * E - at);
    n -= n % E;
    transpose_small<W, E>({part, m.s + at / E * m.s0, n / E, m.n1, m.s0, step + line_bytes});
    // Meanwhile the next part's source is fetched.
    const std::byte* next = m.s + (at + n) / E * m.s0;
    const bool far = stores == Stores::streaming;
    const Index ahead = far && m.s0 <= 2 * line_bytes ? n / E * m.s0 / m.n1 + line_bytes : 0;
    for (Index j = 0; j < m.n1; ++j, next += ahead) {
      std::byte* const from = part + j * (step + line_bytes);
      far ? copy_streaming<W>(m.d + j * m.d1 + at, from, n, 0) : copy_cached<W>(m.d + j * m.d1 + at, from, n);
      for (Index k = 0; k < ahead; k += line_bytes) prefetch_read(next, k);
    }
  }
}

/// Matrices narrower than a line on one side.
template <int W, int E>
void transpose_narrow(const Matrix& m, Stores stores) {
  // Sixteen rows whose lines compete for one set of the first-level cache are too many to come back to.
  const bool compete = E == 1 && m.d1 % 4096 == 0 && m.n1 > 8;
  if ((stores == Stores::streaming || compete) && m.n0 > m.n1 && m.n1 <= most_put_together)
    return transpose_to_few<W, E>(m, stores);
  if (stores == Stores::streaming && m.d1 == m.n0 * E) return transpose_dense<W, E>(m);
  transpose_small<W, E>(m);
}

}  // namespace
}  // namespace longshore

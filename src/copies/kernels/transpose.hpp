/// Transposition, in tiles of squares.
#pragma once

#include "narrow_transpose.hpp"
#include "staged_transpose.hpp"

namespace longshore {
namespace {

/// The part [i0, i1) x [j0, j1), whose sides are whole squares; with Stream, destination lines begin at i0.
///
/// Strips of squares run along the source rows, so that source lines are read in bursts; a tile is as high as its
/// strips write a page of each destination row, and as wide as the processor keeps address translations for that many
/// rows, and caches their lines where these compete for few sets.
template <int W, int E, bool Stream>
void transpose_squares(const Matrix& m, Index i0, Index i1, Index j0, Index j1, Index tile_lines) {
  constexpr Index side = line_bytes / E, tile_i = 4096 / E;
  const bool compete = m.d1 % 4096 == 0;
  const Index tile_j = (Stream && E >= 4 && !compete ? 4 * tile_lines : tile_lines) * side;
  // The next line of each source row, where that is faster (docs/performance.md): of 4 rows the hardware has it in
  // time, of 64 too many would be under way.
  const bool read_ahead = Stream && (E == 4 || E == 8 || (E == 2 && m.s0 % 4096 == 0));
  // Ordinary stores want their lines claimed ahead: those of the next strip, or, where the rows' lines compete for a
  // few sets of the cache and would be gone by then, those of the next square.
  const Index ahead = compete ? side * m.d1 : line_bytes;
  for (Index it = i0; it < i1; it += tile_i) {
    const Index i_end = lesser(it + tile_i, i1);
    for (Index jt = j0; jt < j1; jt += tile_j) {
      const Index j_end = lesser(jt + tile_j, j1);
      for (Index i = it; i < i_end; i += side) {
        for (Index j = jt; j < j_end; j += side) {
          std::byte* to = m.d + j * m.d1 + i * E;
          if constexpr (!Stream)
            for (Index k = 0; k < side; ++k) prefetch_write(to, ahead + k * m.d1);
          const std::byte* const from = m.s + i * m.s0 + j * E;
          if (read_ahead)
            for (Index k = 0; k < side; ++k) prefetch_read(from, k * m.s0 + line_bytes);
          if constexpr (Stream && E < 4)
            transpose_square_staged<square_width<W, E>, E>(to, m.d1, from, m.s0);
          else
            transpose_square<square_width<W, E>, E, Stream>(to, m.d1, from, m.s0);
        }
      }
    }
  }
}

template <int W, int E>
void transpose_elements(const Matrix& m, Stores stores, const KernelProfile& profile) {
  constexpr Index side = line_bytes / E;
  constexpr Index tile = 32;  // of ordinary stores
  const bool rows_alike = m.d1 % line_bytes == 0 && line_phase(m.d) % E == 0;
  if (!rows_alike && m.d1 == m.n0 * E && m.d1 <= longest_put_together && stores == Stores::streaming)
    return transpose_dense<W, E>(m);
  if (stores != Stores::streaming && m.d1 % 2048 == 0 && m.n1 >= 32) return transpose_to_competing<W, E>(m);
  // Squares start where lines do; where ordinary stores fill short rows that is not worth an edge.
  const bool align = rows_alike && (stores == Stores::streaming || m.n0 >= 8 * side);
  const Index head = align ? (-line_phase(m.d) & (line_bytes - 1)) / E : 0;
  if (m.n0 < head + side || m.n1 < side) return transpose_narrow<W, E>(m, stores);
  if (stores == Stores::streaming && m.n1 > side && m.n1 < 2 * side && m.n1 <= most_put_together && m.n0 > m.n1)
    return transpose_to_few<W, E>(m, stores);
  const Index i1 = m.n0 - (m.n0 - head) % side;
  const Index j1 = m.n1 - m.n1 % side;
  transpose_edge<E>(m, 0, head, 0, m.n1);
  const Matrix lines{m.d + head * E, m.s + head * m.s0, m.n0 - head, m.n1, m.s0, m.d1};
  // Rows whose lines lie at the same few places of their pages are written some lines at a time, where that is faster.
  const bool bursts = W > 16 && E >= profile.tiled_from && m.d1 % 512 == 0;
  const auto staged = [&] {
    if constexpr (W > 16)
      if (rows_alike) return transpose_staged<W, E, true>(lines, i1 - head, j1);
    return transpose_staged<W, E, false>(lines, i1 - head, j1);
  };
  if (stores == Stores::streaming && rows_alike && !bursts)
    transpose_squares<W, E, true>(m, head, i1, 0, j1, profile.tile_lines);
  else if (stores != Stores::streaming || !staged())
    transpose_squares<W, E, false>(m, head, i1, 0, j1, tile);
  // What is left at the far sides.
  if (j1 < m.n1) {
    const Index j = lesser(j1, m.n1 - 16 / E);
    transpose_narrow<W, E>({m.d + j * m.d1, m.s + j * E, m.n0, m.n1 - j, m.s0, m.d1}, stores);
  }
  if (i1 < m.n0) transpose_squares<W, E, false>(m, m.n0 - side, m.n0, 0, j1, tile);
}

/// Any strides and any block: tiles small enough that their lines stay in cache, even where the strides put them all in
/// one set of it, and at least a line wide on either side.
template <int W>
void transpose_tiles(std::byte* d, const std::byte* s, const BlockLoops& l, Stores stores,
                     const KernelProfile& profile) {
  const auto blocks_in = [](Index bytes, Index stride) {
    const Index blocks = bytes / (magnitude(stride) + (stride == 0));
    return blocks < 8 ? 8 : lesser(blocks, 64) / 8 * 8;  // eights, so that most blocks make whole lines
  };
  // Whole destination lines, where rows are contiguous and lines are asked for: then some of them in a row.
  const bool lines = stores == Stores::streaming && l.d0 == l.block;
  const Index tile_i = blocks_in(lines ? 1024 : line_bytes, l.d0);
  const Index tile_j = blocks_in(line_bytes, l.s1);
  // Tiles of tiles, for the sake of address translations: a page of each destination row, some lines of each source
  // row.
  const Index page_i = tile_i * blocks_in(4096, tile_i * l.d0);
  const Index page_j = tile_j * blocks_in(2048, tile_j * l.s1);
  const Nest run = far_destination(l) ? choose_nest<W, true>(l) : choose_nest<W, false>(l);
  BlockLoops tile = l;
  for (Index ip = 0; ip < l.n0; ip += page_i)
    for (Index jp = 0; jp < l.n1; jp += page_j)
      for (Index i = ip; i < lesser(ip + page_i, l.n0); i += tile_i) {
        tile.n0 = lesser(tile_i, l.n0 - i);
        for (Index j = jp; j < lesser(jp + page_j, l.n1); j += tile_j) {
          tile.n1 = lesser(tile_j, l.n1 - j);
          std::byte* const to = d + j * l.d1 + i * l.d0;
          const std::byte* const from = s + j * l.s1 + i * l.s0;
          if (lines)
            copy_blocks<W>(to, from, tile, stores, profile);
          else
            run(to, from, tile);
        }
      }
}

/// From contiguous rows of the source to columns of the destination that lie apart: a strip of `Rows` destination rows
/// takes whole source lines, one a column, and goes along the rows, so that each destination line is completed while it
/// is in the first-level cache, even where all rows' lines compete for one set of it.
template <int E>
void transpose_strips(std::byte* d, const std::byte* s, const BlockLoops& l, bool far) {
  constexpr Index rows = lesser(line_bytes / E, 8);  // as many lines as the smallest first-level caches have in a set
  constexpr Index ahead = 8 * line_bytes;            // along each row: what is claimed before the stores need it
  // Columns in a tile: a page of each destination row, so that few address translations are in use at a time.
  const Index span = magnitude(l.d0) + (l.d0 == 0), tile = 4096 / span < 64 ? 64 : 4096 / span;
  for (Index ip = 0; ip < l.n0; ip += tile) {
    const Index i_end = lesser(ip + tile, l.n0);
    Index j = 0;
    for (; j + rows <= l.n1; j += rows) {
      std::byte* to = d + ip * l.d0 + j * l.d1;
      const std::byte* from = s + ip * l.s0 + j * E;
      Index in_line = line_bytes;  // bytes since lines were claimed
      for (Index i = ip; i < i_end; ++i, to += l.d0, from += l.s0) {
        if (far && (in_line += span) >= line_bytes) {
          in_line = 0;
          for (Index k = 0; k < rows; ++k) prefetch_write(to, k * l.d1 + (l.d0 < 0 ? -ahead : ahead));
        }
#pragma GCC unroll 16
        for (Index k = 0; k < rows; ++k) copy_exact<16, E>(to + k * l.d1, from + k * E);
      }
    }
    for (; j < l.n1; ++j)
      for (Index i = ip; i < i_end; ++i) copy_exact<16, E>(d + i * l.d0 + j * l.d1, s + i * l.s0 + j * E);
  }
}

#if LONGSHORE_KERNELS_X86
/// The same where K columns' elements lie in one destination line, evenly spread: they are put together in registers,
/// and written by one store. A template so that only the tables which have the instructions compile it.
template <int W, int E, int K>
void transpose_combed(std::byte* d, const std::byte* s, const BlockLoops& l, bool far) {
  constexpr Index rows = W / E, step = line_bytes / K;
  constexpr int unit = E == 4 ? 4 : 8, pieces = E / unit, lanes = W / unit, apart = lanes / K;
  // Where all rows' lines are alike, groups of columns begin with a line.
  const bool alike = l.d1 % line_bytes == 0 && line_phase(d) % E == 0;
  const Index phase = alike ? line_phase(d) : 0;
  const Index head = phase < step ? 0 : lesser((line_bytes - phase + step - 1) / step, l.n0);
  const Index groups = (l.n0 - head) / K, whole = l.n1 / rows * rows;
  const auto strips = [&](Index i, Index n0, Index j, Index n1) {
    BlockLoops part = l;
    part.n0 = n0, part.n1 = n1;
    if (n0 > 0 && n1 > 0) transpose_strips<E>(d + i * l.d0 + j * l.d1, s + i * l.s0 + j * E, part, far);
  };
  strips(0, head, 0, l.n1);
  strips(head + groups * K, l.n0 - head - groups * K, 0, l.n1);
  strips(head, groups * K, whole, l.n1 - whole);
  if (groups == 0 || whole == 0) return;

  // In which lane the first column's element goes, and for each lane what goes there: lanes of a pair of source lines.
  const int first = alike ? static_cast<int>((phase + head * step) % line_bytes) / unit : 0;
  alignas(64) typename UnsignedOf<unit>::type from[lanes] = {};
  unsigned mask = 0, odd = 0;
  for (int k = 0; k < K; ++k)
    for (int piece = 0; piece < pieces; ++piece) {
      const int lane = first + k * apart + piece;
      from[lane] = static_cast<typename UnsignedOf<unit>::type>(k % 2 * lanes + piece);
      mask |= 1u << lane;
      odd |= static_cast<unsigned>(k >= 2) << lane;
    }
  __m512i index[rows];
  index[0] = _mm512_load_si512(from);
  for (Index k = 1; k < rows; ++k)
    index[k] = unit == 8 ? _mm512_add_epi64(index[k - 1], _mm512_set1_epi64(pieces))
                         : _mm512_add_epi32(index[k - 1], _mm512_set1_epi32(pieces));
  const Index tile = 4096 / line_bytes;
  std::byte* const to_lines = d + head * l.d0 - first * unit;
  for (Index gt = 0; gt < groups; gt += tile)
    for (Index j = 0; j < whole; j += rows)
      for (Index g = gt; g < lesser(gt + tile, groups); ++g) {
        std::byte* const to = to_lines + g * line_bytes + j * l.d1;
        const std::byte* const columns = s + (head + g * K) * l.s0 + j * E;
        __m512i column[K];
        for (int k = 0; k < K; ++k) column[k] = _mm512_loadu_si512(columns + k * l.s0);
        if (far)
          for (Index k = 0; k < rows; ++k) prefetch_write(to, k * l.d1 + 8 * line_bytes);
#pragma GCC unroll 16
        for (Index k = 0; k < rows; ++k) {
          if constexpr (unit == 8) {
            __m512i v = _mm512_permutex2var_epi64(column[0], index[k], column[1]);
            if constexpr (K == 4)
              v = _mm512_mask_mov_epi64(v, static_cast<__mmask8>(odd),
                                        _mm512_permutex2var_epi64(column[2], index[k], column[3]));
            _mm512_mask_storeu_epi64(to + k * l.d1, static_cast<__mmask8>(mask), v);
          } else {
            __m512i v = _mm512_permutex2var_epi32(column[0], index[k], column[1]);
            if constexpr (K == 4)
              v = _mm512_mask_mov_epi32(v, static_cast<__mmask16>(odd),
                                        _mm512_permutex2var_epi32(column[2], index[k], column[3]));
            _mm512_mask_storeu_epi32(to + k * l.d1, static_cast<__mmask16>(mask), v);
          }
        }
      }
}
#endif

/// Columns whose elements lie apart, from contiguous rows.
template <int W, int E>
void transpose_columns(std::byte* d, const std::byte* s, const BlockLoops& l, bool far) {
#if LONGSHORE_KERNELS_X86
  if constexpr (W == 64) {
    if (l.d0 == line_bytes / 2) return transpose_combed<W, E, 2>(d, s, l, far);
    if constexpr (E < 16)
      if (l.d0 == line_bytes / 4) return transpose_combed<W, E, 4>(d, s, l, far);
  }
#endif
  transpose_strips<E>(d, s, l, far);
}

template <int W>
void transpose_blocks(std::byte* d, const std::byte* s, const BlockLoops& l, Stores stores,
                      const KernelProfile& profile) {
  if (l.block <= 0 || l.n0 <= 0 || l.n1 <= 0) return;
  if (l.n0 == 1 || l.n1 == 1) return copy_blocks<W>(d, s, l, stores, profile);
  if (l.d0 == l.block && l.s1 == l.block) {
    const Matrix m{d, s, l.n0, l.n1, l.s0, l.d1};
    switch (l.block) {
      case 1: return transpose_elements<W, 1>(m, stores, profile);
      case 2: return transpose_elements<W, 2>(m, stores, profile);
      case 4: return transpose_elements<W, 4>(m, stores, profile);
      case 8: return transpose_elements<W, 8>(m, stores, profile);
      case 16: return transpose_elements<W, 16>(m, stores, profile);
      default: break;
    }
  }
  if (l.s1 == l.block && l.n1 >= line_bytes / l.block) switch (l.block) {
      case 4: return transpose_columns<W, 4>(d, s, l, far_destination(l));
      case 8: return transpose_columns<W, 8>(d, s, l, far_destination(l));
      case 16: return transpose_columns<W, 16>(d, s, l, far_destination(l));
      default: break;
    }
  transpose_tiles<W>(d, s, l, stores, profile);
}

}  // namespace
}  // namespace longshore

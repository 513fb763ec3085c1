/// Squares of one cache line by one cache line, transposed in registers where the elements are small powers of two.
#pragma once

#include "blocks.hpp"

namespace longshore {
namespace {

/// Elements d[j * d1 + i * E] = s[i * s0 + j * E], both sides contiguous in one direction.
struct Matrix {
  std::byte* d;
  const std::byte* s;
  Index n0, n1, s0, d1;
};

/// A square as wide as a cache line: every source line is read once and whole, every destination line written once and
/// whole, so neither side depends on the cache remembering anything. Registers narrower than a line are written line by
/// line too: a write-combining buffer that waits for the rest of its line is one that others lack.
template <int W, int E, bool Stream>
LONGSHORE_INLINE void transpose_square(std::byte* d, Index d1, const std::byte* s, Index s0) {
  constexpr int side = line_bytes / E;  // elements
  constexpr int step = W / E;           // elements that fit in a register: the square in registers
  constexpr int across = Stream ? side / step : 1;
#pragma GCC unroll 1
  for (int j = 0; j < side; j += step) {
#pragma GCC unroll 1
    for (int i = 0; i < side; i += across * step) {
      VectorType<W> r[across][step];
#pragma GCC unroll 8
      for (int a = 0; a < across; ++a) {
        for (int k = 0; k < step; ++k) r[a][k] = load<W>(s + (i + a * step + k) * s0 + j * E);
        transpose_registers<W, E>(r[a]);
      }
#pragma GCC unroll 16
      for (int k = 0; k < step; ++k) {
        std::byte* const to = d + (j + k) * d1 + i * E;
        if constexpr (Stream) {
          VectorType<W> line[across];
          for (int a = 0; a < across; ++a) line[a] = r[a][k];
          stream_registers<W>(to, line);
        } else {
          store<W>(to, r[0][k]);
        }
      }
    }
  }
}

/// A square whose elements are too many for the registers: its source lines are read whole, for they may compete for
/// one set of the cache, and its destination lines are put together in the cache before they leave.
template <int W, int E>
LONGSHORE_INLINE void transpose_square_staged(std::byte* d, Index d1, const std::byte* s, Index s0) {
  constexpr int side = line_bytes / E, step = W / E;
  alignas(64) std::byte read[side * line_bytes], written[step * line_bytes];
#pragma GCC unroll 4
  for (int i = 0; i < side; ++i) copy_exact<W, line_bytes>(read + i * line_bytes, s + i * s0);
#pragma GCC unroll 1
  for (int j = 0; j < side; j += step) {
#pragma GCC unroll 1
    for (int i = 0; i < side; i += step) {
      VectorType<W> r[step];
      for (int k = 0; k < step; ++k) r[k] = load<W>(read + (i + k) * line_bytes + j * E);
      transpose_registers<W, E>(r);
      for (int k = 0; k < step; ++k) store<W>(written + k * line_bytes + i * E, r[k]);
    }
    for (int k = 0; k < step; ++k) stream_line<W>(d + (j + k) * d1, written + k * line_bytes);
  }
}

/// The widest registers of which W / E fit in the register file.
template <int W, int E>
constexpr int square_width = E == 1   ? 16
                             : E == 2 ? lesser(W, 32)
                                      : W;

/// Any part of the matrix, one element at a time, in strips that fit in few lines.
template <int E>
__attribute__((noinline)) void transpose_edge(const Matrix& m, Index i0, Index i1, Index j0, Index j1) {
  constexpr Index strip = 16;
  for (Index i = i0; i < i1; i += strip) {
    const Index end = lesser(i + strip, i1);
    for (Index j = j0; j < j1; ++j) {
      std::byte* to = m.d + j * m.d1;
      const std::byte* from = m.s + j * E;
      for (Index k = i; k < end; ++k) copy_exact<16, E>(to + k * E, from + k * m.s0);
    }
  }
}

}  // namespace
}  // namespace longshore

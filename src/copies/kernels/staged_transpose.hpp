/// Transposition by way of the second-level cache: where a destination row's lines have to be put together from several
/// squares, or several of them are to be written at a time.
#pragma once

#include "squares.hpp"
#include "tables.hpp"

namespace longshore {
namespace {

constexpr Index tile_pitch = line_bytes + KernelProfile::long_burst;  // neighbours lie in other sets of the cache
constexpr Index tile_rows = scratch_bytes / (2 * tile_pitch);         // of the destination

/// A tile on its way to the destination, line by line along its rows. Each begins with a line of room, for what the
/// tile before left of a line of this row.
struct LeavingTile {
  std::byte* to = nullptr;
  std::byte* from = nullptr;
  Index rows = 0, row_bytes = 0, to_step = 0;
  bool first = false, last = false;  // of these rows
  Index at = 0, phase = 0;           // where in the first of these rows, and where in a line that begins

  template <int W, bool Aligned>
  LONGSHORE_INLINE void send(Index lines) {
    for (; lines > 0 && rows > 0; --lines) {
      if (at == 0) phase = Aligned ? 0 : line_phase(to);
      if (!Aligned && at == 0 && first && phase != 0)
        copy_part<W>(to, from + line_bytes, line_bytes - phase);
      else
        stream_line<W>(to - phase + at, from + line_bytes - phase + at);
      at += line_bytes;
      if (at < row_bytes) continue;
      if (!Aligned && phase != 0) {
        if (last) copy_part<W>(to + row_bytes - phase, from + line_bytes + row_bytes - phase, phase);
        copy_exact<W, line_bytes>(from, from + row_bytes);
      }
      to += to_step, from += tile_pitch, at = 0, --rows;
    }
  }
};

/// All that is left of a tile. A function of its own, which takes a copy: else the compiler would keep tiles in memory.
template <int W, bool Aligned>
__attribute__((noinline)) void send_rest(LeavingTile tile) {
  tile.send<W, Aligned>(tile.rows * (tile.row_bytes / line_bytes));
}

/// Streams the part [0, i1) x [0, j1), whose sides are whole squares, by way of two tiles. Source rows are read some at
/// a time, from end to end where destination rows begin with a line (`Aligned`); as one tile fills, a line of the other
/// leaves for each that is read. False where there is no memory for tiles.
template <int W, int E, bool Aligned>
bool transpose_staged(const Matrix& m, Index i1, Index j1) {
  constexpr int V =
      E <= 4 ? 16 : lesser(W, 32);  // longer strips of rows would compete for sets of the first-level cache
  constexpr Index side = line_bytes / E, step = V / E, strip = step < 4 ? 4 : step;
  constexpr Index tile_i = KernelProfile::long_burst / E, ahead = 2 * line_bytes;
  std::byte* const scratch = kernel_scratch();
  if (scratch == nullptr) return false;
  std::byte* const tiles[2] = {scratch, scratch + tile_rows * tile_pitch};
  const Index together = Aligned ? j1 : 2 * tile_rows;
  LeavingTile leaving;
  Index turn = 0;
  for (Index js = 0; js < j1; js += together)
    for (Index it = 0; it < i1; it += tile_i)
      for (Index jt = js; jt < lesser(js + together, j1); jt += tile_rows, ++turn) {
        const Index high = lesser(tile_i, i1 - it), wide = lesser(tile_rows, j1 - jt);
        // Rows that leave parts of lines behind come back to their tile.
        std::byte* const tile = tiles[(Aligned ? turn : (jt - js) / tile_rows) % 2];
        if (leaving.rows > 0 && !Aligned && j1 - js <= tile_rows) {
          send_rest<W, Aligned>(leaving);
          leaving.rows = 0;
        }
        for (Index i = 0; i < high; i += strip)
          for (Index j = 0; j < wide; j += side) {
            const std::byte* const from = m.s + (it + i) * m.s0 + (jt + j) * E;
            for (Index k = 0; k < strip; ++k) prefetch_read(from, k * m.s0 + ahead);
            for (Index k = 0; k < strip; k += step)
              for (Index l = 0; l < side; l += step) {
                VectorType<V> r[step];
                for (Index n = 0; n < step; ++n) r[n] = load<V>(from + (k + n) * m.s0 + l * E);
                transpose_registers<V, E>(r);
                for (Index n = 0; n < step; ++n)
                  store<V>(tile + (j + l + n) * tile_pitch + line_bytes + (i + k) * E, r[n]);
              }
            leaving.send<W, Aligned>(strip);
          }
        send_rest<W, Aligned>(leaving);
        leaving = {m.d + jt * m.d1 + it * E, tile, wide, high * E, m.d1, it == 0, it + high == i1};
      }
  send_rest<W, Aligned>(leaving);
  return true;
}

}  // namespace
}  // namespace longshore

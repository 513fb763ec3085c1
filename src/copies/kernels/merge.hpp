/// Lines of a destination put together from several sources: in registers where a line is one source's or sources take
/// turns in it; else where the instruction set expands a load, or by way of a few lines in the first-level cache.
#pragma once

#include "copy.hpp"

namespace longshore {
namespace {

/// How far ahead of the loads each source row is prefetched:
/// little, for what one destination takes of a row may be short.
constexpr Index merge_ahead = 256;

/// Two registers' elements in turns: the first half of what comes of it, or the second.
template <int E, bool Second>
struct InTurns {
  template <int W>
  struct In {
    static constexpr int unit = E == 16 ? 8 : E, pieces = E / unit, count = W / unit;
    static constexpr int index(int k) {
      const int place = (Second ? count : 0) + k, element = place / pieces;
      return element / 2 * pieces + place % pieces + element % 2 * count;
    }
  };
};

/// A line in which elements of E bytes are by turns a's and b's.
template <int W, int E>
LONGSHORE_INLINE void alternate(VectorType<W> (&line)[line_bytes / W], const std::byte* a, const std::byte* b) {
  constexpr int unit = E == 16 ? 8 : E;
  if constexpr (W == 64) {
    const auto both = (VectorType<64>)__builtin_shufflevector(load<32>(a), load<32>(b), 0, 1, 2, 3, 4, 5, 6, 7);
    struct Rule {
      static constexpr int index(int k) {
        const int element = k * unit / E;
        return element / 2 * (E / unit) + k % (E / unit) + element % 2 * (32 / unit);
      }
    };
    line[0] = permute<64, unit, Rule>(both, both);
  } else {
    for (int k = 0; k < line_bytes / W / 2; ++k) {
      const auto from_a = load<W>(a + k * W), from_b = load<W>(b + k * W);
      line[2 * k] = permute<W, unit, typename InTurns<E, false>::template In<W>>(from_a, from_b);
      line[2 * k + 1] = permute<W, unit, typename InTurns<E, true>::template In<W>>(from_a, from_b);
    }
  }
}

/// Whether the instruction set spreads what it loads to some of a register's words.
template <int W>
constexpr bool expands = W == 64 && LONGSHORE_KERNELS_X86;

template <int W>
LONGSHORE_INLINE void put_line(std::byte* d, const VectorType<W> (&line)[line_bytes / W], Stores stores) {
  if (stores == Stores::streaming) return stream_registers<W>(d, line);
  for (int k = 0; k < line_bytes / W; ++k) store<W>(d + k * W, line[k]);
}

/// Squares of the elements of more than two sources that take turns, n bytes of each, transposed to `to`. Where fewer
/// sources are left than a register has elements, the last square overlaps the one before; where there are fewer in
/// all, what a register holds beyond them is written again by the next. Direct: squares are whole lines.
template <int V, int E, bool Direct>
LONGSHORE_INLINE void turn_squares(std::byte* to, const std::byte* const* s, Index sharing, Index n, Stores stores) {
  constexpr int side = V / E;
#pragma GCC unroll 1
  for (Index at = 0; at < n; at += V)
#pragma GCC unroll 1
    for (Index i = 0; i < sharing; i += side) {
      const Index first = lesser(i, sharing > side ? sharing - side : 0);
      VectorType<V> r[side];
      for (int v = 0; v < side; ++v) r[v] = load<V>(s[lesser(first + v, sharing - 1)] + at);
      transpose_registers<V, E>(r);
      for (int v = 0; v < side; ++v) {
        std::byte* const place = to + (at / E + v) * sharing * E + first * E;
        if constexpr (Direct) {
          const VectorType<V> line[1] = {r[v]};
          put_line<V>(place, line, stores);
        } else {
          store<V>(place, r[v]);
        }
      }
    }
}

/// A row's lines in which sources take turns, a line of each source at a time: straight where squares are whole lines,
/// else put together in the first-level cache. What is read ahead is `rows_ahead` rows later, or in this one.
template <int W, int E>
__attribute__((noinline)) void put_turns(std::byte* to, const std::byte* const* sources, const MergeLoops& loops,
                                         Index row, Index rows_ahead, const LineGroup& group, const LineRun* runs,
                                         Stores stores) {
  const Index sharing = group.runs, each = group.lines * line_bytes / sharing;
  alignas(64) std::byte stage[most_merged_sources * line_bytes + W], rest[most_merged_sources * line_bytes];
  const std::byte* s[most_merged_sources];
  for (Index done = 0; done < each; done += line_bytes) {
    const Index n = lesser(each - done, line_bytes);
    for (Index i = 0; i < sharing; ++i) {
      const Index step = loops.source_steps[runs[i].source];
      s[i] = sources[runs[i].source] + runs[i].offset + row * step + done;
      prefetch_nearby(s[i], loops.short_runs ? rows_ahead * step : merge_ahead);
      if (n < line_bytes) {
        copy_part<W>(rest + i * line_bytes, s[i], n);
        s[i] = rest + i * line_bytes;
      }
    }
    // The widest registers of which a square has few enough, and that are not wider than all sources' elements.
    constexpr int widest = E == 2 ? 16 : W, half = widest > 16 ? widest / 2 : widest;
    constexpr bool of_lines = widest == line_bytes && E == 8;
    if (of_lines && n == line_bytes && sharing * E % line_bytes == 0) {
      turn_squares<widest, E, of_lines>(to, s, sharing, n, stores);
      to += n * sharing;
    } else {
      if (sharing * E >= widest)
        turn_squares<widest, E, false>(stage, s, sharing, n, stores);
      else
        turn_squares<half, E, false>(stage, s, sharing, n, stores);
      // In halves: what was stored in two pieces could not be loaded as one before it is in the cache.
      for (Index at = 0; at < n * sharing; at += line_bytes, to += line_bytes) {
        VectorType<W> line[line_bytes / W];
        if constexpr (W == 64)
          line[0] = (VectorType<64>)__builtin_shufflevector(load<32>(stage + at), load<32>(stage + at + 32), 0, 1, 2, 3,
                                                            4, 5, 6, 7);
        else
          for (int v = 0; v < line_bytes / W; ++v) line[v] = load<W>(stage + at + v * W);
        put_line<W>(to, line, stores);
      }
    }
  }
}

/// Some rows that are put together side by side: each run is looked at once for all of them, and more sequences of
/// lines are on their way from memory.
template <int W, int Rows>
struct RowsToMerge {
  const std::byte* const* sources;
  const MergeLoops& loops;
  Index row;
  Stores stores;
  Index burst;  // lines of a row, before it is the next one's turn

  Index step(const LineRun& run) const { return loops.source_steps[run.source]; }
  const std::byte* from(const LineRun& run) const { return sources[run.source] + run.offset + row * step(run); }
  /// How far ahead of the loads a source is read: in the row, or in rows to come where what one needs of it is short.
  Index ahead(const LineRun& run) const { return loops.short_runs ? Rows * step(run) : merge_ahead; }

  void whole(std::byte* d, Index lines, const LineRun& run) const {
    const std::byte* s = from(run);
    const Index across = step(run);
    for (; lines > 0; lines -= burst, s += burst * line_bytes, d += burst * line_bytes)
      for (int k = 0; k < Rows; ++k) {
        const std::byte* a = s + k * across;
        std::byte* to = d + k * loops.destination_step;
        for (Index n = lesser(lines, burst); n > 0; --n, a += line_bytes, to += line_bytes) {
          VectorType<W> line[line_bytes / W];
          prefetch_read(a, source_ahead);
          for (int v = 0; v < line_bytes / W; ++v) line[v] = load<W>(a + v * W);
          put_line<W>(to, line, stores);
        }
      }
  }

  template <int E>
  void by_turns(std::byte* d, Index lines, const LineRun& first, const LineRun& second) const {
    const std::byte *from_a = from(first), *from_b = from(second);
    const Index across_a = step(first), across_b = step(second), ahead_a = ahead(first), ahead_b = ahead(second);
    constexpr Index half = line_bytes / 2;
    for (; lines > 0; lines -= burst, from_a += burst * half, from_b += burst * half, d += burst * line_bytes)
      for (int k = 0; k < Rows; ++k) {
        const std::byte *a = from_a + k * across_a, *b = from_b + k * across_b;
        std::byte* to = d + k * loops.destination_step;
        for (Index n = lesser(lines, burst); n > 0; --n, a += half, b += half, to += line_bytes) {
          VectorType<W> line[line_bytes / W];
          prefetch_read(a, ahead_a);
          prefetch_read(b, ahead_b);
          alternate<W, E>(line, a, b);
          put_line<W>(to, line, stores);
        }
      }
  }

  template <int E>
  void turns(std::byte* d, const LineGroup& group, const LineRun* runs) const {
    if constexpr (E >= 4)
      if (group.runs == 2) return by_turns<E>(d, group.lines, runs[0], runs[1]);
    if constexpr (E < 16)
      for (int k = 0; k < Rows; ++k)
        put_turns<W, E>(d + k * loops.destination_step, sources, loops, row + k, Rows, group, runs, stores);
  }

  static constexpr Index staged_row = (most_staged_lines + 1) * line_bytes;
  /// What is written beyond a run is written again by the next.
  void staged(std::byte* d, const LineGroup& group, const LineRun* run) const {
    constexpr int V = W < 32 ? W : 32;  // longer stores would mostly go to two lines
    alignas(64) std::byte stage[Rows * staged_row];
    for (const LineRun* const end = run + group.runs; run != end; ++run) {
      const std::byte* const s = from(*run);
      std::byte* const to = stage + run->place;
      const Index across = step(*run), n = run->bytes, far = loops.short_runs ? Rows * across : 4 * merge_ahead;
      for (int k = 0; k < Rows; ++k) prefetch_read(s, k * across + far);
      if (run->rounded == 0) {
        for (int k = 0; k < Rows; ++k) copy_cached<W>(to + k * staged_row, s + k * across, n);
      } else {
        for (int k = 0; k < Rows; ++k) store<V>(to + k * staged_row, load<V>(s + k * across));
        for (Index v = V; v < n; v += V)
          for (int k = 0; k < Rows; ++k) store<V>(to + k * staged_row + v, load<V>(s + k * across + v));
      }
    }
    put_staged(d, group.lines, stage);
  }
  void put_staged(std::byte* d, Index lines, const std::byte* stage) const {
    for (int k = 0; k < Rows; ++k)
      for (Index n = 0; n < lines; ++n) {
        VectorType<W> line[line_bytes / W];
        for (int v = 0; v < line_bytes / W; ++v) line[v] = load<W>(stage + k * staged_row + n * line_bytes + v * W);
        put_line<W>(d + k * loops.destination_step + n * line_bytes, line, stores);
      }
  }

#if LONGSHORE_KERNELS_X86
  /// A template so that only the tables which have the instruction compile it.
  template <int V>
  void expanded(std::byte* d, Index lines, const LineRun* run) const {
    for (; lines > 0; --lines, d += line_bytes) {
      __m512i line[Rows];
      for (int k = 0; k < Rows; ++k) line[k] = _mm512_setzero_si512();
      for (bool more = true; more; ++run) {
        more = run->bytes != 0;
        const std::byte* const s = from(*run);
        for (int k = 0; k < Rows; ++k) {
          prefetch_read(s, k * step(*run) + ahead(*run));
          line[k] = _mm512_mask_expandloadu_epi32(line[k], run->place, s + k * step(*run));
        }
      }
      for (int k = 0; k < Rows; ++k) {
        const VectorType<64> whole[1] = {(VectorType<64>)line[k]};
        put_line<64>(d + k * loops.destination_step, whole, stores);
      }
    }
  }

  /// What is written beyond a run is written again by the next; where nothing follows, it is left.
  template <int V>
  void taken(std::byte* d, const LineGroup& group, const LineRun* run) const {
    alignas(64) std::byte stage[Rows * staged_row];
    const bool streams = stores == Stores::streaming;
    std::byte* to = streams ? stage : d;
    const Index apart = streams ? staged_row : loops.destination_step, lines = group.lines + (streams ? 1 : 0);
    const std::byte* const last = to + (lines - 1) * line_bytes;  // where a whole register may be stored
    for (const LineRun* const end = run + group.runs; run != end; to += run->bytes, ++run) {
      const std::byte* const s = from(*run);
      const Index across = step(*run), far = loops.short_runs ? Rows * across : 4 * merge_ahead;
      const auto kept = static_cast<__mmask16>(to <= last ? 0xffff : (1 << run->bytes / 4) - 1);
      for (int k = 0; k < Rows; ++k) {
        prefetch_read(s, k * across + far);
        const __m512i words = _mm512_maskz_loadu_epi32(run->place, s + k * across);
        _mm512_mask_storeu_epi32(to + k * apart, kept, _mm512_maskz_compress_epi32(run->place, words));
      }
    }
    if (streams) put_staged(d, group.lines, stage);
  }
#endif

  void exact(std::byte* d, Index runs, const LineRun* run) const {
    for (; runs > 0; --runs, ++run)
      for (int k = 0; k < Rows; ++k)
        copy_cached<W>(d + k * loops.destination_step + run->place, from(*run) + k * step(*run), run->bytes);
  }

  void run(std::byte* d, const LineGroup* group, const LineRun* run) const {
    d += row * loops.destination_step;
    for (const LineGroup* const end = group + loops.groups; group != end; ++group) {
      switch (group->way) {
        case LineGroup::Way::exact: exact(d, group->runs, run); break;
        case LineGroup::Way::whole: whole(d, group->lines, run[0]); break;
        case LineGroup::Way::turns2: turns<2>(d, *group, run); break;
        case LineGroup::Way::turns4: turns<4>(d, *group, run); break;
        case LineGroup::Way::turns8: turns<8>(d, *group, run); break;
        case LineGroup::Way::turns16: turns<16>(d, *group, run); break;
        case LineGroup::Way::staged: staged(d, *group, run); break;
        case LineGroup::Way::expanded:
#if LONGSHORE_KERNELS_X86
          if constexpr (expands<W>) expanded<W>(d, group->lines, run);
#endif
          break;
        case LineGroup::Way::taken:
#if LONGSHORE_KERNELS_X86
          if constexpr (expands<W>) taken<W>(d, *group, run);
#endif
          break;
      }
      run += group->runs, d += group->lines * line_bytes;
    }
  }
};

template <int W>
void merge_lines(std::byte* d, const std::byte* const* sources, const LineGroup* groups, const LineRun* runs,
                 const MergeLoops& loops, Stores stores, const KernelProfile& profile) {
  const Index burst = profile.merged_bytes / line_bytes;
  Index row = 0;
  if (profile.merged_rows == 4)
    for (; row + 4 <= loops.rows; row += 4) RowsToMerge<W, 4>{sources, loops, row, stores, burst}.run(d, groups, runs);
  for (; row < loops.rows; ++row) RowsToMerge<W, 1>{sources, loops, row, stores, burst}.run(d, groups, runs);
}

}  // namespace
}  // namespace longshore

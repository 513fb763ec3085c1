/// Lines of a destination put together in registers from several sources, where the instruction set expands a load.
#pragma once

#include "vector.hpp"

namespace longshore {
namespace {

#if LONGSHORE_KERNELS_X86
/// How far ahead of the loads each source row is prefetched:
/// little, for what one destination takes of a row may be short.
constexpr Index merge_ahead = 256;

/// The same lines of `Rows` rows side by side: each part is looked at once
/// for all of them, and more sequences of lines are on their way from memory.
template <int Rows>
void merge_rows(std::byte* d, const std::byte* const* sources, const LinePart* part, const MergeLoops& l, Index row,
                Stores stores) {
  d += row * l.destination_step;
  for (Index n = l.lines; n > 0; --n, d += line_bytes) {
    __m512i line[Rows];
    for (int k = 0; k < Rows; ++k) line[k] = _mm512_setzero_si512();
    for (;; ++part) {
      const Index step = l.source_steps[part->source];
      const std::byte* const from = sources[part->source] + part->offset + row * step;
      for (int k = 0; k < Rows; ++k) {
        prefetch_read(from, k * step + merge_ahead);
        line[k] = _mm512_mask_expandloadu_epi32(line[k], part->words, from + k * step);
      }
      if (part->line != 0) break;
    }
    const __mmask16 covered = part->line;
    ++part;
    for (int k = 0; k < Rows; ++k) {
      if (covered != 0xffff)
        _mm512_mask_storeu_epi32(d + k * l.destination_step, covered, line[k]);
      else if (stores == Stores::streaming)
        stream<64>(d + k * l.destination_step, (VectorType<64>)line[k]);
      else
        store<64>(d + k * l.destination_step, (VectorType<64>)line[k]);
    }
  }
}

/// A template so that only the tables which have the instructions compile it.
template <int W>
void merge_lines(std::byte* d, const std::byte* const* sources, const LinePart* parts, const MergeLoops& loops,
                 Stores stores) {
  Index row = 0;
  for (; row + 4 <= loops.rows; row += 4) merge_rows<4>(d, sources, parts, loops, row, stores);
  for (; row < loops.rows; ++row) merge_rows<1>(d, sources, parts, loops, row, stores);
}
#endif

template <int W>
constexpr auto merge_kernel() -> decltype(KernelTable::merge) {
#if LONGSHORE_KERNELS_X86
  if constexpr (W == 64) return &merge_lines<W>;
#endif
  return nullptr;
}

}  // namespace
}  // namespace longshore

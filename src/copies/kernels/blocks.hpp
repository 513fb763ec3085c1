/// Blocks in two loops: the loop nest is compiled for each block size and for each side that is contiguous.
#pragma once

#include "movers.hpp"

namespace longshore {
namespace {

/// Which side of the inner loop is contiguous.
enum class Contiguous { neither, destination, source };

/// How many destination lines ahead of the stores are claimed.
constexpr Index write_ahead_lines = 32;
/// The same for short rows of a source, in rows.
constexpr Index fetched_rows = 16;

/// Where the destination lines that the inner loop will need after write_ahead_lines others lie, relative to where it
/// is: further along the row where rows are long, in a later row where they are short.
inline Index write_ahead(const BlockLoops& l) {
  const Index lines_a_row = l.n0 * lesser(magnitude(l.d0), line_bytes) / line_bytes + 1;
  if (lines_a_row < 2 * write_ahead_lines && l.n1 > 1) return (write_ahead_lines / lines_a_row + 1) * l.d1;
  const Index blocks_a_line = magnitude(l.d0) >= line_bytes ? 1 : line_bytes / (magnitude(l.d0) + (l.d0 == 0));
  return write_ahead_lines * blocks_a_line * l.d0;
}

using Nest = void (*)(std::byte*, const std::byte*, const BlockLoops&);

/// Long blocks with ordinary stores, four side by side, then two, then the one that is left.
template <int W>
void nest_beside(std::byte* d, const std::byte* s, const BlockLoops& l) {
  const BlockLoops o = l.n1 >= 4 ? l : BlockLoops{l.block, l.n1, l.s1, l.d1, l.n0, l.s0, l.d0};
  Index j = 0;
  const auto side_by_side = [&]<int Rows>() {
    for (; j + Rows <= o.n1; j += Rows)
      for (Index i = 0; i < o.n0; ++i)
        copy_beside<W, Rows>(d + j * o.d1 + i * o.d0, s + j * o.s1 + i * o.s0, o.block, o.d1, o.s1);
  };
  side_by_side.template operator()<4>();
  side_by_side.template operator()<2>();
  for (Index i = 0; j < o.n1 && i < o.n0; ++i)
    copy_in_quarters<W>(d + j * o.d1 + i * o.d0, s + j * o.s1 + i * o.s0, o.block);
}

/// The loop nest. With Ahead, destination lines are claimed before the stores need them: strided stores that miss the
/// cache otherwise wait for each line, the store buffer being too short to cover a memory access.
template <class Mover, Contiguous side, bool Ahead>
void nest(std::byte* d, const std::byte* s, const BlockLoops& l) {
  const Index n = Mover::bytes(l.block);
  const Index s0 = side == Contiguous::source ? n : l.s0;
  const Index d0 = side == Contiguous::destination ? n : l.d0;
  const Index ahead = Ahead ? write_ahead(l) : 0;
  const Index span = magnitude(d0) < line_bytes ? 4 * d0 : 0;
  // Short rows of the source are fetched some rows ahead: while many small stores wait, no load gets that far.
  const Index row = l.n0 * magnitude(s0), fetched = Ahead && row <= 8 * line_bytes ? row : 0;
  for (Index j = 0; j < l.n1; ++j) {
    std::byte* to = d + j * l.d1;
    const std::byte* from = s + j * l.s1;
    for (Index at = 0; at < fetched; at += line_bytes) prefetch_read(from, fetched_rows * l.s1 + (s0 < 0 ? -at : at));
    Index left = l.n0;
    for (; left >= 4; left -= 4, to += 4 * d0, from += 4 * s0) {
      if constexpr (Ahead) {
        if (span != 0)
          for (Index at = 0; at < magnitude(span); at += line_bytes) prefetch_write(to, ahead + (span < 0 ? -at : at));
        else
          for (Index k = 0; k < 4; ++k) prefetch_write(to, ahead + k * d0);
      }
      Mover::move(to, from, n);
      Mover::move(to + d0, from + s0, n);
      Mover::move(to + 2 * d0, from + 2 * s0, n);
      Mover::move(to + 3 * d0, from + 3 * s0, n);
    }
    for (; left > 0; --left, to += d0, from += s0) Mover::move(to, from, n);
  }
}

/// Every Ratio-th element of E bytes to a contiguous destination: contiguous loads and permutations.
template <int W, int E, int Ratio>
void nest_take(std::byte* d, const std::byte* s, const BlockLoops& l) {
  for (Index j = 0; j < l.n1; ++j) {
    std::byte* to = d + j * l.d1;
    const std::byte* from = s + j * l.s1;
    Index left = l.n0;
    // One element must follow, or the loads would reach past the last one.
    for (; left > W / E; left -= W / E, to += W, from += Ratio * W) store<W>(to, take<W, E, Ratio>(from));
    for (; left > 0; --left, to += E, from += Ratio * E) copy_exact<16, E>(to, from);
  }
}

/// A contiguous source to every Ratio-th element of E bytes: permutations and masked stores.
template <int W, int E, int Ratio, bool Ahead>
void nest_spread(std::byte* d, const std::byte* s, const BlockLoops& l) {
  for (Index j = 0; j < l.n1; ++j) {
    std::byte* to = d + j * l.d1;
    const std::byte* from = s + j * l.s1;
    Index left = l.n0;
    for (; left > W / E; left -= W / E, to += Ratio * W, from += W) {
      if constexpr (Ahead)
        for (Index k = 0; k < Ratio; ++k) prefetch_write(to, (write_ahead_lines + k) * line_bytes);
      spread<W, E, Ratio>(to, load<W>(from));
    }
    for (; left > 0; --left, to += Ratio * E, from += E) copy_exact<16, E>(to, from);
  }
}

template <int W, Contiguous side, bool Ahead>
Nest nest_for_size(Index block) {
  return with_mover<W>(block, [](auto mover) -> Nest {
    using Mover = decltype(mover);
    return &nest < Mover, side, Ahead && !std::is_same_v < Mover, Library >> ;
  });
}

template <int W, int E, bool Ahead>
Nest nest_for_ratio(const BlockLoops& l, Contiguous side) {
  if (side == Contiguous::destination) {
    if constexpr (take_width<W, E, 2> != 0)
      if (l.s0 == 2 * E) return &nest_take<take_width<W, E, 2>, E, 2>;
    if constexpr (take_width<W, E, 3> != 0)
      if (l.s0 == 3 * E) return &nest_take<take_width<W, E, 3>, E, 3>;
    if constexpr (take_width<W, E, 4> != 0)
      if (l.s0 == 4 * E) return &nest_take<take_width<W, E, 4>, E, 4>;
  } else if (side == Contiguous::source) {
    if constexpr (can_spread<W, E, 2>) {
      if (l.d0 == 2 * E) return &nest_spread<W, E, 2, Ahead>;
      if (l.d0 == 3 * E) return &nest_spread<W, E, 3, Ahead>;
      if (l.d0 == 4 * E) return &nest_spread<W, E, 4, Ahead>;
    }
  }
  return nullptr;
}

/// The nest for these loops. `Ahead` where the destination is strided and too big for the cache.
template <int W, bool Ahead>
Nest choose_nest(const BlockLoops& l) {
  const Contiguous side = l.d0 == l.block   ? Contiguous::destination
                          : l.s0 == l.block ? Contiguous::source
                                            : Contiguous::neither;
  Nest by_ratio = nullptr;
  if (l.block == 1) by_ratio = nest_for_ratio<W, 1, Ahead>(l, side);
  if (l.block == 2) by_ratio = nest_for_ratio<W, 2, Ahead>(l, side);
  if (l.block == 4) by_ratio = nest_for_ratio<W, 4, Ahead>(l, side);
  if (l.block == 8) by_ratio = nest_for_ratio<W, 8, Ahead>(l, side);
  if (l.block == 16) by_ratio = nest_for_ratio<W, 16, Ahead>(l, side);
  if (by_ratio != nullptr) return by_ratio;
  switch (side) {
    case Contiguous::destination: return nest_for_size<W, Contiguous::destination, false>(l.block);
    case Contiguous::source: return nest_for_size<W, Contiguous::source, Ahead>(l.block);
    default: return nest_for_size<W, Contiguous::neither, Ahead>(l.block);
  }
}

/// How to run loops of this shape: in the order given, or exchanged, a few rows at a time.
struct NestPlan {
  Nest run;
  Index exchanged_rows;  // 0: not exchanged
};

/// Inner loops of a few small blocks cost more in loops than in copying, and their long outer loop may be one that has
/// permutations of its own. Exchanging the two helps, in pieces that stay in the first-level cache on both sides,
/// provided that destination rows share lines: otherwise each pass would touch every line again.
template <int W, bool Ahead>
NestPlan plan_nest(const BlockLoops& l) {
  if (l.n0 >= 8 || l.n1 < 16 || l.block > line_bytes || magnitude(l.d1) > line_bytes)
    return {choose_nest<W, Ahead>(l), 0};
  const auto lines = [](Index stride) { return magnitude(stride) / line_bytes + 1; };
  const Index rows = 256 / (lines(l.s1) + lines(l.d1));
  if (rows < 16) return {choose_nest<W, Ahead>(l), 0};
  return {choose_nest<W, Ahead>({l.block, l.n1, l.s1, l.d1, l.n0, l.s0, l.d0}), rows};
}

inline void run_nest(const NestPlan& plan, std::byte* d, const std::byte* s, const BlockLoops& l) {
  if (plan.exchanged_rows == 0) return plan.run(d, s, l);
  for (Index j = 0; j < l.n1; j += plan.exchanged_rows)
    plan.run(d + j * l.d1, s + j * l.s1,
             {l.block, lesser(plan.exchanged_rows, l.n1 - j), l.s1, l.d1, l.n0, l.s0, l.d0});
}

/// The same blocks in fewer, longer loops: loops of one go, loops that continue the block or each other merge.
inline BlockLoops merged(BlockLoops l) {
  for (;;) {
    if (l.n1 == 1) l.s1 = l.d1 = 0;
    if (l.n0 == 1 || (l.n1 > 1 && l.s1 == l.block && l.d1 == l.block)) {
      const BlockLoops was = l;
      l.n0 = was.n1, l.s0 = was.s1, l.d0 = was.d1;
      l.n1 = was.n0, l.s1 = was.s0, l.d1 = was.d0;
      if (l.n0 == 1) return l;
    }
    if (l.s0 == l.block && l.d0 == l.block) {
      l.block *= l.n0;
      l.n0 = 1;
      if (l.n1 == 1) return l;
    } else if (l.n1 > 1 && l.s1 == l.n0 * l.s0 && l.d1 == l.n0 * l.d0) {
      l.n0 *= l.n1;
      l.n1 = 1;
    } else {
      return l;
    }
  }
}

/// A contiguous destination written in whole lines: what arrives is collected in a few KB that stay in the first-level
/// cache, and leaves by non-temporal stores. The parts of lines at both ends are stored ordinarily.
template <int W, Index Chunk = 2048>
class LineWriter {
 public:
  static constexpr Index chunk_bytes = Chunk;

  explicit LineWriter(std::byte* d) { restart(d); }
  void restart(std::byte* d) {
    to_ = d;
    begin_ = fill_ = line_phase(d);
  }
  /// Room for chunk_bytes.
  std::byte* room() { return buffer_ + fill_; }
  void wrote(Index n) {
    fill_ += n;
    if (fill_ < line_bytes) return;
    if (begin_ != 0) {
      copy_part<W>(to_, buffer_ + begin_, line_bytes - begin_);
      to_ += line_bytes - begin_;
    }
    const Index from = begin_ != 0 ? line_bytes : 0;
    const Index whole = (fill_ - from) / line_bytes;
    for (Index k = 0; k < whole; ++k) stream_line<W>(to_ + k * line_bytes, buffer_ + from + k * line_bytes);
    to_ += whole * line_bytes;
    const Index rest = from + whole * line_bytes;
    copy_exact<W, line_bytes>(buffer_, buffer_ + rest);
    fill_ -= rest;
    begin_ = 0;
  }
  void finish() {
    copy_part<W>(to_, buffer_ + begin_, fill_ - begin_);
    fill_ = begin_;
  }

 private:
  std::byte* to_;
  Index begin_, fill_;  // what of buffer_ is to be written; buffer_ lies in its lines as to_ - begin_ does
  alignas(64) std::byte buffer_[chunk_bytes + 2 * line_bytes];
};

/// Gathers short blocks into a contiguous destination (or contiguous rows), streaming.
template <int W>
void gather_streaming(std::byte* d, const std::byte* s, const BlockLoops& l) {
  constexpr Index chunk = LineWriter<W>::chunk_bytes;
  const Index row = l.n0 * l.block;
  const bool joined = l.n1 == 1 || l.d1 == row;
  LineWriter<W> lines(d);
  if (joined && row <= chunk) {
    const Index rows = chunk / row;
    const NestPlan gather = plan_nest<W, false>(l);
    for (Index j = 0; j < l.n1; j += rows) {
      BlockLoops part = l;
      part.n1 = lesser(rows, l.n1 - j);
      part.d1 = row;
      run_nest(gather, lines.room(), s + j * l.s1, part);
      lines.wrote(part.n1 * row);
    }
  } else {
    BlockLoops part = l;
    part.n1 = 1;
    const Nest gather = choose_nest<W, false>(l);
    for (Index j = 0; j < l.n1; ++j) {
      if (!joined && j > 0) {
        lines.finish();
        lines.restart(d + j * l.d1);
      }
      for (Index i = 0; i < l.n0; i += part.n0) {
        part.n0 = lesser(chunk / l.block, l.n0 - i);
        gather(lines.room(), s + j * l.s1 + i * l.s0, part);
        lines.wrote(part.n0 * l.block);
      }
    }
  }
  lines.finish();
}

/// Some blocks side by side, streaming, a burst of each in turn: a single sequence of lines leaves memory channels idle
/// that several sequences use. Each is some lines ahead of the one before it: a load waits for the non-temporal stores
/// under way to addresses with the same low 12 bits, which rows a power of two apart would have.
template <int W, int Rows>
LONGSHORE_INLINE void stream_rows(std::byte* d, const std::byte* s, Index block, Index d_step, Index s_step,
                                  const KernelProfile& profile) {
  const Index burst = profile.burst_bytes / line_bytes, stagger = profile.stagger_bytes / profile.burst_bytes;
  Index head[Rows], lines[Rows], most = 0;
  for (Index k = 0; k < Rows; ++k) {
    head[k] = lesser(-line_phase(d + k * d_step) & (line_bytes - 1), block);
    lines[k] = (block - head[k]) / line_bytes;
    most = lines[k] > most ? lines[k] : most;
    copy_part<W>(d + k * d_step, s + k * s_step, head[k]);
  }
  const Index bursts = (most + burst - 1) / burst;
  for (Index n = 0; n < bursts; ++n)
    for (Index k = 0; k < Rows; ++k) {
      std::byte* const to = d + k * d_step + head[k];
      const std::byte* const from = s + k * s_step + head[k];
      const Index ahead = n + k * stagger;
      const Index at = (ahead < bursts ? ahead : ahead % bursts) * burst;
      for (Index l = at; l < lesser(at + burst, lines[k]); ++l)
        stream_line<W>(to + l * line_bytes, from + l * line_bytes);
    }
  for (Index k = 0; k < Rows; ++k) {
    const Index done = head[k] + lines[k] * line_bytes;
    copy_part<W>(d + k * d_step + done, s + k * s_step + done, block - done);
  }
}

/// Long blocks, streaming, some rows at a time (or some blocks of a row, where there are fewer rows).
template <int W>
void nest_long(std::byte* d, const std::byte* s, const BlockLoops& l, const KernelProfile& profile) {
  const BlockLoops o = l.n1 >= profile.rows ? l : BlockLoops{l.block, l.n1, l.s1, l.d1, l.n0, l.s0, l.d0};
  Index j = 0;
  const auto side_by_side = [&]<int Rows>() {
    for (; j + Rows <= o.n1; j += Rows)
      for (Index i = 0; i < o.n0; ++i)
        stream_rows<W, Rows>(d + j * o.d1 + i * o.d0, s + j * o.s1 + i * o.s0, o.block, o.d1, o.s1, profile);
  };
  if (o.block < profile.string_bytes) {
    if (profile.rows == 4) side_by_side.template operator()<4>();
    if (profile.rows == 2) side_by_side.template operator()<2>();
  }
  for (; j < o.n1; ++j)
    for (Index i = 0; i < o.n0; ++i)
      copy_bytes<W>(d + j * o.d1 + i * o.d0, s + j * o.s1 + i * o.s0, o.block, Stores::streaming, profile);
}

/// Blocks that follow each other in the source, streaming: what is read ahead of one is of the next.
template <int W>
void nest_packed(std::byte* d, const std::byte* s, const BlockLoops& l, const KernelProfile& profile) {
  for (Index j = 0; j < l.n1; ++j)
    for (Index i = 0; i < l.n0; ++i)
      copy_streaming<W>(d + j * l.d1 + i * l.d0, s + j * l.s1 + i * l.s0, l.block, profile.ahead_bytes);
}

/// Destinations whose lines are worth claiming ahead of the stores: those that do not fit in a second-level cache, and
/// parts of such that are long enough (a packet's, for one), for what is claimed beyond their end is claimed in vain.
inline bool far_destination(const BlockLoops& l, Stores stores = Stores::cached) {
  return l.n0 * l.n1 * lesser(line_bytes, magnitude(l.d0)) >=
         Index{1} << (stores == Stores::streaming ? 16 : 19);  // a division would cost as much as a short move
}

template <int W>
void copy_blocks(std::byte* d, const std::byte* s, const BlockLoops& loops, Stores stores,
                 const KernelProfile& profile) {
  if (loops.block <= 0 || loops.n0 <= 0 || loops.n1 <= 0) return;
  const BlockLoops l = merged(loops);
  if (l.n0 == 1) return copy_bytes<W>(d, s, l.block, stores, profile);
  const bool gather = l.d0 == l.block;
  if (stores == Stores::streaming) {
    const Index row = l.n0 * l.block;
    if (gather && l.block <= LineWriter<W>::chunk_bytes / 2 && (row >= 256 || (l.d1 == row && row * l.n1 >= 256)))
      return gather_streaming<W>(d, s, l);
    const bool whole_lines = ((line_phase(d) | l.d0 | l.d1 | l.block) & (line_bytes - 1)) == 0;
    if (l.block >= 16 * line_bytes) return nest_long<W>(d, s, l, profile);
    if (l.block >= 2 * line_bytes || whole_lines) {
      if (l.s0 == l.block && l.block >= 4 * line_bytes) return nest_packed<W>(d, s, l, profile);
      return nest<Streaming<W, 0>, Contiguous::neither, false>(d, s, l);
    }
  }
  if (stores == Stores::packing && l.block >= library_bytes) return nest_beside<W>(d, s, l);
  run_nest(!gather && far_destination(l, stores) ? plan_nest<W, true>(l) : plan_nest<W, false>(l), d, s, l);
}

template <int W>
void one_block(std::byte* d, const std::byte* s, const BlockLoops& l) {
  copy_cached<W>(d, s, l.block);
}

template <int W>
PreparedBlocks prepare_blocks(const BlockLoops& loops) {
  if (loops.block <= 0 || loops.n0 <= 0 || loops.n1 <= 0) return {};
  const BlockLoops l = merged(loops);
  if (l.n0 == 1) return {&one_block<W>, l};
  const NestPlan plan = l.d0 != l.block && far_destination(l) ? plan_nest<W, true>(l) : plan_nest<W, false>(l);
  if (plan.exchanged_rows != 0) return {};
  return {plan.run, l};
}

}  // namespace
}  // namespace longshore

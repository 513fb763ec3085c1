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

using ListMover = void (*)(std::byte*, const std::byte*, const ListMove&);

template <int W, Listed side, bool Ahead>
ListMover choose_list_mover(const ListMove& l) {
  return with_mover<W>(l.block, [&](auto mover) -> ListMover {
    using Mover = decltype(mover);
    constexpr bool ahead = Ahead && !std::is_same_v<Mover, Library>;
    if constexpr (Mover::bytes(0) != 0)
      if (l.unit == Mover::bytes(0)) return &move_list<Mover, Mover::bytes(0), side, ahead>;
    return &move_list<Mover, 0, side, ahead>;
  });
}

/// Whether a listed destination does not fit in a second-level cache, judged by a few of its places.
inline bool far_list(const ListMove& l) {
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
    if (l.block >= 2 * line_bytes || whole_lines) return move_list<Streaming<W>, 0, side, false>(d, s, l);
  }
  if constexpr (side != Listed::source)
    if (far_list(l)) return choose_list_mover<W, side, true>(l)(d, s, l);
  choose_list_mover<W, side, false>(l)(d, s, l);
}

template <int W>
void gather_list(std::byte* d, const std::byte* s, const BlockList& from, Stores stores) {
  const ListMove all{nullptr, from.index, from.n, from.block, from.unit};
  if (stores == Stores::cached || from.block > LineWriter<W>::chunk_bytes / 2)
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

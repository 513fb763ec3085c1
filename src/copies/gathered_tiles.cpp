/// Transposition where rows or columns are too short for one.
#include "copies/gathered_tiles.hpp"

#include <algorithm>
#include <numeric>

#include "copies/kernels/tables.hpp"

namespace longshore {

namespace {

constexpr Index line = GatheredTiles::long_enough;
/// What rows and columns of a tile are at most, in bytes: tiles of any element stay in the first-level cache.
constexpr Index tile_bytes(Index block) { return block <= 2 ? 128 : 256; }

}  // namespace

GatheredTiles::Chain GatheredTiles::chain(const std::vector<BlockStep>& loops, Index block) {
  Chain result;
  result.last = loops.back();
  if (loops.size() > 1) result.first = loops.front(), result.between.assign(loops.begin() + 1, loops.end() - 1);
  for (std::size_t k = 0; k + 1 < loops.size(); ++k) result.together *= loops[k].n;
  const Index bytes = result.together * block, whole = line / std::gcd(line, bytes);
  Index some = std::max<Index>(tile_bytes(block) / bytes, 1);
  if (some > whole) some -= some % whole;  // so that tiles end where lines do
  result.some = std::min(some, result.last.n);
  return result;
}

std::optional<GatheredTiles> GatheredTiles::find(std::vector<BlockStep>& loops, Index block) {
  if (block > line / 2) return std::nullopt;
  std::vector<char> taken(loops.size(), false);
  std::vector<BlockStep> from, to;
  Index rows = block, columns = block;  // bytes of the destination, and of the source
  const auto extend = [&](std::vector<BlockStep>& chain, Index& bytes, Index BlockStep::*side) {
    if (bytes >= line) return false;
    for (std::size_t k = 0; k < loops.size(); ++k)
      if (!taken[k] && loops[k].*side == bytes && loops[k].n > 1) {
        taken[k] = true, bytes *= loops[k].n;
        chain.push_back(loops[k]);
        return true;
      }
    return false;
  };
  for (bool more = true; more;) {
    more = extend(from, rows, &BlockStep::destination);
    more |= extend(to, columns, &BlockStep::source);
  }
  if (from.empty() || to.empty() || (from.size() == 1 && to.size() == 1)) return std::nullopt;
  GatheredTiles result;
  result.block_ = block;
  result.from_ = chain(from, block), result.to_ = chain(to, block);
  // Neighbouring rows of tiles lie in other sets of the cache.
  const auto pitch = [&](const Chain& c) { return (c.most() * block + line - 1) / line * line + line; };
  result.gathered_pitch_ = pitch(result.to_), result.written_pitch_ = pitch(result.from_);
  std::vector<BlockStep> rest;
  for (std::size_t k = 0; k < loops.size(); ++k)
    if (!taken[k]) rest.push_back(loops[k]);
  loops = std::move(rest);
  return result;
}

/// Calls f(place in the chain, offset in the source, offset in the destination) for what is between first and last.
template <class F>
void GatheredTiles::for_each_between(const Chain& chain, const F& f) {
  const Index n = chain.single() ? 1 : chain.together / chain.first.n;
  for (Index k = 0; k < n; ++k) {
    Index left = k, source = 0, destination = 0;
    for (const auto& step : chain.between) {
      source += left % step.n * step.source, destination += left % step.n * step.destination;
      left /= step.n;
    }
    f(k * chain.first.n, source, destination);
  }
}

/// Without tiles, where there is no memory for them.
void GatheredTiles::run_plainly(const KernelTable& table, std::byte* destination, const std::byte* source) const {
  for_each_between(from_, [&](Index, Index s_from, Index d_from) {
    for_each_between(to_, [&](Index, Index s_to, Index d_to) {
      for (Index h = 0; h < to_.last.n; ++h)
        for (Index g = 0; g < from_.last.n; ++g)
          table.blocks(destination + d_from + d_to + h * to_.last.destination + g * from_.last.destination,
                       source + s_from + s_to + h * to_.last.source + g * from_.last.source,
                       {block_, from_.first.n, from_.first.source, from_.first.destination, to_.first.n,
                        to_.first.source, to_.first.destination},
                       Stores::cached);
    });
  });
}

void GatheredTiles::run(const KernelTable& table, Stores stores, std::byte* destination,
                        const std::byte* source) const {
  std::byte* const gathered = tile_scratch();
  if (gathered == nullptr) return run_plainly(table, destination, source);
  std::byte* const written = gathered + from_.most() * gathered_pitch_;
  for (Index h = 0; h < to_.last.n; h += to_.some)
    for (Index g = 0; g < from_.last.n; g += from_.some) {
      const Index from_last = std::min(from_.some, from_.last.n - g), to_last = std::min(to_.some, to_.last.n - h);
      const Index rows = from_.together * from_last, columns = to_.together * to_last;
      const std::byte* s = source + g * from_.last.source + h * to_.last.source;
      std::byte* d = destination + g * from_.last.destination + h * to_.last.destination;
      Index s_step = from_.last.source, d_step = to_.last.destination;
      if (!from_.single()) {
        for_each_between(from_, [&](Index place, Index offset, Index) {
          table.blocks(gathered + place * gathered_pitch_, s + offset,
                       {columns * block_, from_.first.n, from_.first.source, gathered_pitch_, from_last,
                        from_.last.source, from_.together * gathered_pitch_},
                       Stores::cached);
        });
        s = gathered, s_step = gathered_pitch_;
      }
      if (to_.single()) {
        table.transpose(d, s, {block_, rows, s_step, block_, columns, block_, d_step}, stores);
        continue;
      }
      table.transpose(written, s, {block_, rows, s_step, block_, columns, block_, written_pitch_}, Stores::cached);
      for_each_between(to_, [&](Index place, Index, Index offset) {
        table.blocks(d + offset, written + place * written_pitch_,
                     {rows * block_, to_.first.n, written_pitch_, to_.first.destination, to_last,
                      to_.together * written_pitch_, to_.last.destination},
                     stores);
      });
    }
}

}  // namespace longshore

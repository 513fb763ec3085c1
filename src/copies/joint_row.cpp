#include "copies/joint_row.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace longshore {

namespace {

/// Where lines are put together in registers: a chunk's line parts stay in the first-level cache too.
constexpr Index merged_chunk_bytes = 8 * 1024;
/// Of lines that go on alike, so that a run's bytes can be told.
constexpr Index most_lines = 512;

using Way = LineGroup::Way;

/// A run in a chunk, of which lines are to be made.
struct Piece {
  Index from, to, bytes;  ///< `to` counts from the chunk's first line on
  std::size_t member;
  Index end() const { return to + bytes; }
};

/// Everything that a chunk's members have, in its order.
__attribute__((cold)) std::vector<Piece> pieces_of(const Chunk& chunk) {
  std::vector<Piece> all, pieces;
  for (std::size_t k = 0; k + 1 < chunk.begin.size(); ++k)
    for (std::size_t b = chunk.begin[k]; b < chunk.begin[k + 1]; ++b) {
      const auto& [source, destination, x] = chunk.blocks[b];
      for (Index j = 0; j < x.n1; ++j)
        for (Index i = 0; i < x.n0; ++i)
          all.push_back({source + j * x.s1 + i * x.s0, destination + j * x.d1 + i * x.d0 - chunk.first + chunk.phase,
                         x.block, k});
    }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.to < b.to; });
  for (const auto& piece : all) {
    if (!pieces.empty() && pieces.back().member == piece.member && pieces.back().end() == piece.to &&
        pieces.back().from + pieces.back().bytes == piece.from)
      pieces.back().bytes += piece.bytes;
    else
      pieces.push_back(piece);
  }
  return pieces;
}

/// Of the pieces, what lies in [begin, end).
std::vector<Piece> restrict(const std::vector<Piece>& pieces, std::size_t first, Index begin, Index end) {
  std::vector<Piece> inside;
  for (; first < pieces.size() && pieces[first].to < end; ++first) {
    Piece piece = pieces[first];
    const Index cut = std::max<Index>(begin - piece.to, 0);
    piece.from += cut, piece.to += cut, piece.bytes = std::min(piece.bytes - cut, end - piece.to);
    if (piece.bytes > 0) inside.push_back(piece);
  }
  return inside;
}

Way turns_of(Index element) { return Way(int(Way::turns2) + std::countr_zero(std::uint64_t(element)) - 1); }

/// How a line is made of pieces that all lie in it.
Way way_of(const std::vector<Piece>& line) {
  Index bytes = 0;
  for (const auto& piece : line) bytes += piece.bytes;
  if (bytes < line_bytes) return Way::exact;
  if (line.size() == 1) return Way::whole;
  const Index element = line[0].bytes;
  for (std::size_t k = 0; k < line.size(); ++k)
    if (line[k].bytes != element || line[k].member != line[k % 2].member ||
        line[k].from != line[k % 2].from + Index(k / 2) * element)
      return Way::staged;
  return element == 4 || element == 8 || element == 16 ? turns_of(element) : Way::staged;
}

/// Of pieces that take turns, an element each: how many take part, and for how many lines, in which all have as many.
struct Turns {
  std::size_t parts = 0;
  Index lines = 0;
};

/// From a piece on, with which a line begins, where enough take turns, and more than two.
Turns turns_from(const std::vector<Piece>& pieces, std::size_t first, bool expands) {
  const Piece& start = pieces[first];
  const Index element = start.bytes;
  if (start.to % line_bytes != 0 || element < 2 || element > 16 || !std::has_single_bit(std::uint64_t(element)))
    return {};
  std::size_t parts = 1;
  while (first + parts < pieces.size() && pieces[first + parts].member != start.member) ++parts;
  if (Index(parts) < least_turns(element, expands) || Index(parts) > most_merged_sources) return {};
  std::size_t n = 0;
  for (; first + n < pieces.size(); ++n) {
    const Piece& piece = pieces[first + n];
    if (piece.bytes != element || piece.to != start.to + Index(n) * element) break;
    if (n < parts) continue;
    const Piece& before = pieces[first + n - parts];
    if (piece.member != before.member || piece.from != before.from + element) break;
  }
  const Index together = Index(parts) * element, whole = together / std::gcd(together, line_bytes);
  return {parts, std::min(Index(n) * element / line_bytes, most_lines) / whole * whole};
}

/// What each source has in a line, as `expanded` groups want it.
std::vector<LineRun> runs_to_expand(const std::vector<Piece>& line) {
  std::vector<LineRun> runs;
  for (const auto& piece : line) {
    auto at = std::find_if(runs.begin(), runs.end(), [&](const auto& run) {
      return run.source == piece.member && run.offset + 4 * std::popcount(run.place) == piece.from;
    });
    if (at == runs.end()) at = runs.insert(at, {piece.from, std::uint16_t(piece.member), 0, 0, 0});
    at->place |= std::uint16_t(((1u << piece.bytes / 4) - 1) << piece.to % line_bytes / 4);
  }
  for (std::size_t k = 0; k < runs.size(); ++k) runs[k].bytes = std::uint16_t(runs.size() - 1 - k);
  return runs;
}

/// Adds what is taken of one source to a group's runs, each of which looks at 64 bytes of it.
void add_taken(const Piece& piece, LineGroup& group, std::vector<LineRun>& runs) {
  for (Index done = 0; done < piece.bytes;) {
    const Index from = piece.from + done;
    // Of what the last run looks at, whole words that come later: a gap in the source may be of any bytes.
    const Index in_run = group.runs > 0 ? from - runs.back().offset : line_bytes;
    const bool in_last =
        in_run % 4 == 0 && in_run < line_bytes && in_run >= 4 * Index(std::bit_width(runs.back().place));
    if (!in_last) runs.push_back({from, std::uint16_t(piece.member), 0, 0, 0}), ++group.runs;
    auto& run = runs.back();
    const Index n = std::min(piece.bytes - done, run.offset + line_bytes - from);
    run.place |= std::uint16_t(((1u << n / 4) - 1) << (from - run.offset) / 4);
    run.bytes = std::uint16_t(run.bytes + n);
    done += n;
  }
}

/// Says the same as the blocks line by line.
__attribute__((cold)) void find_lines(Chunk& chunk, Index phase, bool expands) {
  chunk.phase = phase;
  const auto pieces = pieces_of(chunk);
  std::vector<Index> behind(chunk.begin.size() - 1, INT64_MIN);  // what is read of each member
  for (const auto& piece : pieces) behind[piece.member] = std::max(behind[piece.member], piece.from + piece.bytes);
  const Index lines = ceil_div(phase + chunk.bytes, line_bytes);
  std::size_t first = 0;  // of the pieces that reach into the line
  std::vector<Piece> before;
  for (Index n = 0; n < lines; ++n) {
    const Index begin = n * line_bytes;
    while (pieces[first].end() <= begin) ++first;
    if (const Turns turns = turns_from(pieces, first, expands); turns.lines > 0) {
      chunk.groups.push_back({turns_of(pieces[first].bytes), std::uint16_t(turns.lines), std::uint16_t(turns.parts)});
      for (std::size_t k = 0; k < turns.parts; ++k) {
        const auto& piece = pieces[first + k];
        chunk.runs.push_back(
            {piece.from, std::uint16_t(piece.member), std::uint16_t(piece.to - begin), std::uint16_t(piece.bytes), 0});
      }
      before.clear();
      n += turns.lines - 1;
      continue;
    }
    const auto line = restrict(pieces, first, begin, begin + line_bytes);
    Way way = way_of(line);
    if (way == Way::staged && expands &&
        std::all_of(line.begin(), line.end(), [](const auto& piece) { return (piece.to | piece.bytes) % 4 == 0; }))
      way = behind.size() == 1 ? Way::taken : Way::expanded;
    const bool runs = way == Way::exact || way == Way::staged || way == Way::expanded || way == Way::taken;
    // Where two lines are made of runs of the same sources, the second is if it goes on where the first ends.
    bool on = !chunk.groups.empty() && chunk.groups.back().way == way && way != Way::exact;
    auto* const group = on ? &chunk.groups.back() : nullptr;
    on = on && group->lines < (runs ? most_staged_lines : most_lines);
    for (std::size_t k = 0; on && !runs && k < std::min<std::size_t>(line.size(), 2); ++k)
      on = !before.empty() && line[k].member == before[k].member &&
           line[k].from == before[k].from + line_bytes / (way == Way::whole ? 1 : 2);
    if (!on) chunk.groups.push_back({way, 0, 0});
    auto& here = chunk.groups.back();
    const Index place = here.lines * line_bytes - begin;
    ++here.lines;
    before = line;
    if (way == Way::whole && on) chunk.runs.back().bytes = std::uint16_t(here.lines * line_bytes);
    if (!runs && on) continue;
    if (way == Way::taken) {
      for (const auto& piece : line) add_taken(piece, here, chunk.runs);
      continue;
    }
    if (way == Way::expanded) {
      const auto parts = runs_to_expand(line);
      chunk.runs.insert(chunk.runs.end(), parts.begin(), parts.end());
      here.runs = std::uint16_t(here.runs + parts.size());
      continue;
    }
    for (std::size_t k = 0; k < (runs ? line.size() : way == Way::whole ? 1 : 2); ++k) {
      const auto& piece = line[k];
      auto* const last = here.runs > 0 ? &chunk.runs.back() : nullptr;
      if (last && last->source == piece.member && last->place + last->bytes == piece.to + place &&
          last->offset + last->bytes == piece.from) {
        last->bytes = std::uint16_t(last->bytes + piece.bytes);
      } else {
        chunk.runs.push_back(
            {piece.from, std::uint16_t(piece.member), std::uint16_t(piece.to + place), std::uint16_t(piece.bytes), 0});
        ++here.runs;
      }
    }
  }
  for (auto& run : chunk.runs)
    run.rounded = run.offset + ceil_div(Index{run.bytes}, line_bytes) * line_bytes <= behind[run.source];
  chunk.blocks.clear(), chunk.blocks.shrink_to_fit();
}

}  // namespace

__attribute__((cold)) JointRow::JointRow(std::vector<PairedRuns> members, Index unit)
    : members_(std::move(members)), unit_(unit) {
  row_ = {INT64_MAX, 0};
  for (const auto& member : members_) {
    row_.first = std::min(row_.first, member.at(0).destination);
    row_.last = std::max(row_.last, member.at(member.elements() - 1).destination + 1);
    runs_ += member.run_count();
    elements_ += member.elements();
  }
  common_ = periodicity(members_[0]);
  auto& all = common_.indices;
  for (const auto& member : members_) {
    const auto own = periodicity(member);
    if (own.period != common_.period) all.last = all.first;
    all = {std::max(all.first, own.indices.first), std::min(all.last, own.indices.last)};
  }
  all.first = std::max(all.first, row_.first);
  if (all.empty()) common_ = {{row_.first, row_.first}, 1, 0};
}

Index JointRow::most_span_bytes() const {
  Index most = 0;
  for (const auto& member : members_) {
    const Index first = member.at(0).source, last = member.at(member.elements() - 1).source;
    most = std::max(most, std::abs(last - first) + 1);
  }
  return most * unit_;
}

/// The longest stretch that repeats; an empty one where nothing
/// does. It may begin and end in gaps, which belong to others.
__attribute__((cold)) JointRow::Periodic JointRow::periodicity(const PairedRuns& runs) {
  Periodic best;
  auto behind = [](const PairedRun& run) {
    return run.destination + (run.count - 1) * run.destination_step + run.length;
  };
  Index before = INT64_MIN;  // behind all that comes earlier
  const auto& periods = runs.periods();
  for (std::size_t k = 0; k < periods.size(); ++k) {
    const auto& here = periods[k];
    const Index next = k + 1 < periods.size() ? periods[k + 1].runs[0].destination : INT64_MAX;
    auto consider = [&](Index begin, Index behind_first, Index repeats, Index period, Index source_period, Index upto) {
      const Interval found{std::max(before, behind_first - period), std::min(begin + repeats * period, upto)};
      if (repeats > 1 && found.size() > best.indices.size()) best = {found, period, source_period};
    };
    if (here.repeats > 1) {
      consider(here.runs[0].destination, behind(here.runs.back()), here.repeats, here.destination_period,
               here.source_period, next);
      before = behind(here.runs.back()) + (here.repeats - 1) * here.destination_period;
      continue;
    }
    for (std::size_t r = 0; r < here.runs.size(); ++r) {
      const auto& run = here.runs[r];
      consider(run.destination, run.destination + run.length, run.count, run.destination_step, run.source_step,
               r + 1 < here.runs.size() ? here.runs[r + 1].destination : next);
      before = behind(run);
    }
  }
  return best;
}

std::vector<RepeatedChunks> JointRow::in_blocks() const {
  return cut(common_.indices.first, std::max<Index>(chunk_bytes / unit_, 1));
}

__attribute__((cold)) std::vector<RepeatedChunks> JointRow::in_lines(Index phase, bool expands) const {
  // Chunks begin with a line if elements do so somewhere.
  Index start = common_.indices.first;
  while (start < common_.indices.first + line_bytes && (phase + start * unit_) % line_bytes != 0) ++start;
  if (start == common_.indices.first + line_bytes || start >= row_.last) start = common_.indices.first;
  const Index least = line_bytes / std::gcd(unit_, line_bytes);  // indices that make whole lines
  auto row = cut(start, std::max<Index>(merged_chunk_bytes / unit_ / least, 1) * least);
  for (auto& repeated : row)
    for (auto& chunk : repeated.chunks) find_lines(chunk, Index(floor_mod(phase + chunk.first, line_bytes)), expands);
  return row;
}

/// The row in chunks: up to `start`; from there the same ones
/// again and again as long as all members repeat; the rest.
__attribute__((cold)) std::vector<RepeatedChunks> JointRow::cut(Index start, Index chunk) const {
  std::vector<RepeatedChunks> result;
  if (start > row_.first) result.push_back(cut({row_.first, start}, chunk));
  const Index period = common_.period, aligned = line_bytes / std::gcd(period * unit_, line_bytes);
  const Index periods = ceil_div(std::max<Index>(chunk / period, 1), aligned) * aligned;  // whole lines
  const Index length = periods * period, repeats = (common_.indices.last - start) / length;
  Index done = start;
  if (repeats > 1) {
    auto body = cut({start, start + length}, chunk);
    body.repeats = repeats, body.shared_advance = length * unit_;
    for (std::size_t k = 0; k < members_.size(); ++k)
      body.member_advance[k] = periodicity(members_[k]).source_period * periods * unit_;
    result.push_back(std::move(body));
    done += repeats * length;
  }
  if (done < row_.last) result.push_back(cut({done, row_.last}, chunk));
  return result;
}

__attribute__((cold)) RepeatedChunks JointRow::cut(Interval part, Index chunk) const {
  RepeatedChunks result;
  result.member_advance.assign(members_.size(), 0);
  for (Index low = part.first; low < part.last; low += chunk) {
    const Index high = std::min(low + chunk, part.last);
    Chunk next{low * unit_, (high - low) * unit_, {}, {0}};
    for (const auto& member : members_) {
      const auto here = member.restrict(member.position_of_destination(low), member.position_of_destination(high));
      for (const auto& period : here.periods())
        for (const auto& run : period.runs)
          next.blocks.push_back({run.source * unit_,
                                 run.destination * unit_,
                                 {run.length * unit_, run.count, run.source_step * unit_, run.destination_step * unit_,
                                  period.repeats, period.source_period * unit_, period.destination_period * unit_}});
      next.begin.push_back(next.blocks.size());
    }
    result.chunks.push_back(std::move(next));
  }
  return result;
}

}  // namespace longshore

#include "copies/joint_row.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace longshore {

namespace {

/// Where lines are put together in registers: a chunk's line parts stay in the first-level cache too.
constexpr Index merged_chunk_bytes = 8 * 1024;

/// Says the same as the blocks line by line.
void find_parts(Chunk& chunk, Index phase) {
  chunk.phase = phase;
  chunk.lines = ceil_div(phase + chunk.bytes, line_bytes);
  std::vector<std::vector<LinePart>> lines(std::size_t(chunk.lines));
  auto add = [&](std::size_t member, Index from, Index to, Index bytes) {
    while (bytes > 0) {
      const Index place = to % line_bytes, here = std::min(bytes, line_bytes - place);
      auto& line = lines[std::size_t(to / line_bytes)];
      const auto words = std::uint16_t(((1u << here / word_bytes) - 1) << place / word_bytes);
      if (!line.empty() && line.back().source == member && words > line.back().words &&
          line.back().offset + word_bytes * std::popcount(line.back().words) == from)
        line.back().words |= words;
      else
        line.push_back({from, std::uint32_t(member), words, 0});
      from += here, to += here, bytes -= here;
    }
  };
  for (std::size_t k = 0; k + 1 < chunk.begin.size(); ++k)
    for (std::size_t b = chunk.begin[k]; b < chunk.begin[k + 1]; ++b) {
      const auto& [source, destination, x] = chunk.blocks[b];
      for (Index i = 0; i < x.n0; ++i) add(k, source + i * x.s0, destination + i * x.d0 - chunk.first + phase, x.block);
    }
  for (auto& line : lines) {
    for (const auto& part : line) line.back().line |= part.words;
    chunk.parts.insert(chunk.parts.end(), line.begin(), line.end());
  }
  chunk.blocks.clear(), chunk.blocks.shrink_to_fit();
}

}  // namespace

JointRow::JointRow(std::vector<PairedRuns> members, Index unit) : members_(std::move(members)), unit_(unit) {
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

/// The longest stretch that repeats; an empty one where nothing
/// does. It may begin and end in gaps, which belong to others.
JointRow::Periodic JointRow::periodicity(const PairedRuns& runs) {
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

std::vector<RepeatedChunks> JointRow::in_lines(Index phase) const {
  // Chunks begin with a line if elements do so somewhere.
  Index start = common_.indices.first;
  while (start < common_.indices.first + line_bytes && (phase + start * unit_) % line_bytes != 0) ++start;
  if (start == common_.indices.first + line_bytes || start >= row_.last) start = common_.indices.first;
  const Index least = line_bytes / std::gcd(unit_, line_bytes);  // indices that make whole lines
  auto row = cut(start, std::max<Index>(merged_chunk_bytes / unit_ / least, 1) * least);
  for (auto& repeated : row)
    for (auto& chunk : repeated.chunks) find_parts(chunk, Index(floor_mod(phase + chunk.first, line_bytes)));
  return row;
}

/// The row in chunks: up to `start`; from there the same ones
/// again and again as long as all members repeat; the rest.
std::vector<RepeatedChunks> JointRow::cut(Index start, Index chunk) const {
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

RepeatedChunks JointRow::cut(Interval part, Index chunk) const {
  RepeatedChunks result;
  result.member_advance.assign(members_.size(), 0);
  for (Index low = part.first; low < part.last; low += chunk) {
    const Index high = std::min(low + chunk, part.last);
    Chunk next{low * unit_, (high - low) * unit_, {}, {0}};
    for (const auto& member : members_) {
      const auto here = member.restrict(member.position_of_destination(low), member.position_of_destination(high));
      for (const auto& period : here.periods())
        for (Index k = 0; k < period.repeats; ++k)
          for (const auto& run : period.runs)
            next.blocks.push_back(
                {(run.source + k * period.source_period) * unit_,
                 (run.destination + k * period.destination_period) * unit_,
                 {run.length * unit_, run.count, run.source_step * unit_, run.destination_step * unit_}});
      next.begin.push_back(next.blocks.size());
    }
    result.chunks.push_back(std::move(next));
  }
  return result;
}

}  // namespace longshore

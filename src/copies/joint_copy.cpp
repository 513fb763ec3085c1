#include "longshore/copies/joint_copy.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

namespace longshore {

namespace {

constexpr Index line_bytes = 64, word_bytes = 4;  // of what kernels merge
/// Of the shared array, what is worked on at a time: it and as much of the members' data fit in the first-level cache.
constexpr Index chunk_bytes = 16 * 1024;
/// Shorter runs are put together in cached staging before they are streamed; longer ones are streamed where they are.
constexpr Index staged_run_bytes = 512;
/// Where lines are put together in registers instead: a chunk's line parts stay in the first-level cache too.
constexpr Index merged_chunk_bytes = 8 * 1024;
/// Of one joint copy, and of the members that it may have to be merged.
constexpr std::size_t most_line_parts = 32768, most_merged_members = 64;
/// Rows that are merged side by side.
constexpr Index merged_rows = 4;

/// Two nested block loops with the offsets of both sides.
struct BlockPiece {
  Index shared, member, block, n0, shared0, member0, n1, shared1, member1;
};

/// A stretch of the shared array's interleaved axis and what each member has in it.
struct Chunk {
  Index first, bytes;  ///< in the shared row
  std::vector<BlockPiece> pieces;
  std::vector<std::size_t> begin;  ///< member k's pieces are [begin[k], begin[k + 1])
  // In the place of pieces where lines are merged:
  Index phase = 0, lines = 0;  ///< how far into its first line the chunk begins, and how many lines it has a part of
  std::vector<LinePart> parts{};
};

/// Chunks repeated along the row.
struct Stretch {
  std::vector<Chunk> chunks;
  Index repeats = 1, shared_advance = 0;
  std::vector<Index> member_advance;
};

/// Where a relation repeats: within [begin, end) of the destination, what holds
/// for an index holds `period` later too, with the source `source_period` later.
struct Periodic {
  Index begin = 0, end = 0, period = 0, source_period = 0;
};

/// The longest stretch that repeats; an empty one where nothing
/// does. It may begin and end in gaps, which belong to others.
Periodic periodicity(const PairedRuns& runs) {
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
      const Periodic found{std::max(before, behind_first - period), std::min(begin + repeats * period, upto), period,
                           source_period};
      if (repeats > 1 && found.end - found.begin > best.end - best.begin) best = found;
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

}  // namespace

struct JointCopy::Implementation {
  Shared shared;
  CopyProgram::Options options;
  const KernelTable* table;
  Index unit = 0;  ///< bytes of one index of the interleaved axis
  Index bytes = 0;
  bool staged = false;
  Index phase_step = line_bytes;  ///< bytes into a line where rows of whole elements can begin are multiples of it
  Index shared_base = 0;
  std::vector<Index> member_base;
  struct Outer {
    PairedRuns runs;  ///< source = member side, destination = shared side
    Index shared_stride;
    std::vector<Index> member_stride;
  };
  std::vector<Outer> outer;
  std::vector<Stretch> row;
  /// The row line by line, for every phase in which it may begin:
  /// multiples of phase_step. Empty if lines are not merged.
  std::vector<std::vector<Stretch>> merged;

  Implementation(std::vector<LoopNest> members, Shared shared_, const CopyProgram::Options& options_)
      : shared(shared_), options(options_), table(options_.table ? options_.table : &kernels()) {
    if (!options.combine.is_copy()) fail("can only copy");
    if (members.empty()) fail("needs members");
    for (const auto& member : members) {
      if (member.empty()) fail("needs members that move something");
      bytes += member.bytes();
    }
    if (shared == Shared::source)
      for (auto& member : members) member = member.inverse();
    merge_whole_axes(members);
    const std::size_t last = members[0].axes().size() - 1;
    for (const auto& member : members) {
      member_base.push_back(member.source_base());
      if (member.axes()[last].source_stride != unit || member.axes()[last].destination_stride != unit)
        fail("needs members whose innermost axis is contiguous on both sides");
    }
    shared_base = members[0].destination_base();
    for (std::size_t k = 0; k < last; ++k) {
      const auto& axis = members[0].axes()[k];
      Outer o{axis.runs, axis.destination_stride, {}};
      for (const auto& member : members) {
        if (!(member.axes()[k].runs == axis.runs) || member.axes()[k].destination_stride != axis.destination_stride)
          fail("needs members that differ in the innermost axis only");
        o.member_stride.push_back(member.axes()[k].source_stride);
      }
      outer.push_back(std::move(o));
    }
    std::vector<PairedRuns> inner;
    for (const auto& member : members) inner.push_back(member.axes()[last].runs);
    plan_row(inner);
  }

  [[noreturn]] static void fail(const std::string& what) { throw Error(ErrorKind::argument, "a joint copy " + what); }

  /// Trailing axes that are whole and contiguous in all members become the unit of the axis outside them.
  void merge_whole_axes(std::vector<LoopNest>& members) {
    unit = members[0].element_bytes();
    const std::size_t n = members[0].axes().size();
    for (const auto& member : members)
      if (member.axes().size() != n || n == 0) fail("needs members with the same axes");
    std::size_t keep = n;
    Index length = 1;  // elements merged so far
    while (keep > 1) {
      const std::size_t k = keep - 1;
      const bool whole = std::all_of(members.begin(), members.end(), [&](const auto& member) {
        const auto& axis = member.axes()[k];
        const auto& above = member.axes()[k - 1];
        return axis.runs.single_run() && axis.runs.elements() == members[0].axes()[k].runs.elements() &&
               axis.source_stride == unit && axis.destination_stride == unit &&
               above.source_stride == unit * axis.runs.elements() &&
               above.destination_stride == unit * axis.runs.elements();
      });
      if (!whole) break;
      const Index elements = members[0].axes()[k].runs.elements();
      unit *= elements, length *= elements;
      --keep;
    }
    if (keep == n) return;
    for (auto& member : members)
      member = LoopNest(member.element_bytes() * length, {member.axes().begin(), member.axes().begin() + Index(keep)},
                        member.source_base(), member.destination_base());
  }

  /// Cuts the interleaved axis into chunks. Where all members repeat with one period, only that much is cut.
  void plan_row(const std::vector<PairedRuns>& inner) {
    Index first = INT64_MAX, last = 0, runs = 0, elements = 0;
    for (const auto& member : inner) {
      first = std::min(first, member.at(0).destination);
      last = std::max(last, member.at(member.elements() - 1).destination + 1);
      runs += member.run_count();
      elements += member.elements();
    }
    const bool gapless = elements == last - first;
    staged = shared == Shared::destination && options.stores == Stores::streaming &&
             elements * unit / runs < staged_run_bytes && gapless;

    Periodic common = periodicity(inner[0]);
    for (const auto& member : inner) {
      const auto own = periodicity(member);
      if (own.period != common.period) common.end = common.begin;
      common.begin = std::max(common.begin, own.begin), common.end = std::min(common.end, own.end);
    }
    common.begin = std::max(common.begin, first);
    if (common.end <= common.begin) common = {first, first, 1, 0};
    const Extent extent{first, last, common};
    row = cut_row(inner, extent, common.begin, std::max<Index>(chunk_bytes / unit, 1));
    phase_step = std::gcd(unit, line_bytes);
    if (shared == Shared::destination && table->merge && gapless && inner.size() <= most_merged_members &&
        phase_step >= word_bytes)
      merge(inner, extent);
  }

  struct Extent {
    Index first, last;  ///< of the shared row, in indices of the interleaved axis
    Periodic common;    ///< where all members repeat
  };

  /// The row in chunks: up to `start`; from there the same ones
  /// again and again as long as all members repeat; the rest.
  std::vector<Stretch> cut_row(const std::vector<PairedRuns>& inner, const Extent& x, Index start, Index chunk) const {
    std::vector<Stretch> result;
    if (start > x.first) result.push_back(cut(inner, x.first, start, chunk));
    const Index period = x.common.period, aligned = line_bytes / std::gcd(period * unit, line_bytes);
    const Index periods = ceil_div(std::max<Index>(chunk / period, 1), aligned) * aligned;  // whole lines
    const Index length = periods * period, repeats = (x.common.end - start) / length;
    Index done = start;
    if (repeats > 1) {
      Stretch body = cut(inner, start, start + length, chunk);
      body.repeats = repeats, body.shared_advance = length * unit;
      for (std::size_t k = 0; k < inner.size(); ++k)
        body.member_advance[k] = periodicity(inner[k]).source_period * periods * unit;
      result.push_back(std::move(body));
      done += repeats * length;
    }
    if (done < x.last) result.push_back(cut(inner, done, x.last, chunk));
    return result;
  }

  /// About n indices that make whole lines.
  Index whole_lines(Index n) const {
    const Index least = line_bytes / std::gcd(unit, line_bytes);
    return std::max(n / least, Index{1}) * least;
  }

  /// Says the same as the pieces line by line, unless that takes too many words.
  void merge(const std::vector<PairedRuns>& inner, const Extent& x) {
    std::size_t parts = 0;
    for (Index phase = 0; phase < line_bytes; phase += phase_step) {
      // Chunks begin with a line if elements do so somewhere.
      Index start = x.common.begin;
      while (start < x.common.begin + line_bytes && (phase + start * unit) % line_bytes != 0) ++start;
      if (start == x.common.begin + line_bytes || start >= x.last) start = x.common.begin;
      merged.push_back(cut_row(inner, x, start, whole_lines(merged_chunk_bytes / unit)));
      for (auto& stretch : merged.back())
        for (auto& chunk : stretch.chunks) {
          find_parts(chunk, Index(floor_mod(phase + chunk.first, line_bytes)));
          parts += chunk.parts.size();
        }
      if (parts > most_line_parts) return merged.clear();
    }
  }

  void find_parts(Chunk& chunk, Index phase) const {
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
      for (std::size_t p = chunk.begin[k]; p < chunk.begin[k + 1]; ++p) {
        const BlockPiece& x = chunk.pieces[p];
        for (Index j = 0; j < x.n1; ++j)
          for (Index i = 0; i < x.n0; ++i)
            add(k, x.member + i * x.member0 + j * x.member1,
                x.shared + i * x.shared0 + j * x.shared1 - chunk.first + phase, x.block);
      }
    for (auto& line : lines) {
      for (const auto& part : line) line.back().line |= part.words;
      chunk.parts.insert(chunk.parts.end(), line.begin(), line.end());
    }
    chunk.pieces.clear(), chunk.pieces.shrink_to_fit();
  }

  Stretch cut(const std::vector<PairedRuns>& inner, Index first, Index last, Index chunk) const {
    Stretch stretch;
    stretch.member_advance.assign(inner.size(), 0);
    for (Index low = first; low < last; low += chunk) {
      const Index high = std::min(low + chunk, last);
      Chunk part{low * unit, (high - low) * unit, {}, {0}};
      for (const auto& member : inner) {
        const auto here = member.restrict(member.position_of_destination(low), member.position_of_destination(high));
        for (const auto& period : here.periods())
          for (Index k = 0; k < period.repeats; ++k)
            for (const auto& run : period.runs)
              part.pieces.push_back({(run.destination + k * period.destination_period) * unit,
                                     (run.source + k * period.source_period) * unit, run.length * unit, run.count,
                                     run.destination_step * unit, run.source_step * unit, 1, 0, 0});
        part.begin.push_back(part.pieces.size());
      }
      stretch.chunks.push_back(std::move(part));
    }
    return stretch;
  }

  /// One row of the shared array, by pieces.
  void sweep_row(std::byte* shared_row, const std::vector<std::byte*>& member_row, std::byte* staging) const {
    for (const auto& stretch : row)
      for (Index r = 0; r < stretch.repeats; ++r)
        for (const auto& chunk : stretch.chunks) {
          std::byte* const at = shared_row + r * stretch.shared_advance;
          // Staging keeps the destination's place within a cache line, so that whole lines are copied to whole lines.
          std::byte* const stage = staging + std::size_t(at + chunk.first) % line_bytes - chunk.first;
          for (std::size_t k = 0; k < member_row.size(); ++k) {
            std::byte* const member = member_row[k] + r * stretch.member_advance[k];
            for (std::size_t p = chunk.begin[k]; p < chunk.begin[k + 1]; ++p) {
              const BlockPiece& x = chunk.pieces[p];
              if (shared == Shared::source)
                table->blocks(member + x.member, at + x.shared,
                              {x.block, x.n0, x.shared0, x.member0, x.n1, x.shared1, x.member1}, options.stores);
              else
                table->blocks((staged ? stage : at) + x.shared, member + x.member,
                              {x.block, x.n0, x.member0, x.shared0, x.n1, x.member1, x.shared1},
                              staged ? Stores::cached : options.stores);
            }
          }
          if (staged) table->copy(at + chunk.first, stage + chunk.first, chunk.bytes, options.stores);
        }
  }

  /// Several rows that begin in the same phase, line by line.
  void merge_rows(std::byte* shared_row, const std::vector<std::byte*>& member_row, std::size_t phase,
                  const MergeLoops& rows) const {
    const std::byte* from[most_merged_members];
    for (const auto& stretch : merged[phase])
      for (Index r = 0; r < stretch.repeats; ++r) {
        for (std::size_t k = 0; k < member_row.size(); ++k) from[k] = member_row[k] + r * stretch.member_advance[k];
        for (const auto& chunk : stretch.chunks) {
          MergeLoops loops = rows;
          loops.lines = chunk.lines;
          table->merge(shared_row + r * stretch.shared_advance + chunk.first - chunk.phase, from, chunk.parts.data(),
                       loops, options.stores);
        }
      }
  }

  /// Rows at equal steps on all sides.
  void sweep(std::byte* shared_at, const std::vector<std::byte*>& member_at, std::byte* staging, Index rows,
             Index shared_step, const std::vector<Index>& member_steps) const {
    auto at_row = [&](Index n) {
      auto members = member_at;
      for (std::size_t m = 0; m < members.size(); ++m) members[m] += n * member_steps[m];
      return members;
    };
    if (merged.empty() || Index(std::size_t(shared_at)) % phase_step != 0 || shared_step % phase_step != 0) {
      for (Index n = 0; n < rows; ++n) sweep_row(shared_at + n * shared_step, at_row(n), staging);
      return;
    }
    // Every `cycle` rows they begin in the same phase.
    const Index cycle = line_bytes / std::gcd(shared_step, line_bytes);
    std::vector<Index> steps = member_steps;
    for (auto& step : steps) step *= cycle;
    for (Index base = 0; base < rows; base += merged_rows * cycle)
      for (Index n = base; n < std::min(base + cycle, rows); ++n) {
        std::byte* const at = shared_at + n * shared_step;
        const Index alike = std::min(ceil_div(rows - n, cycle), merged_rows);
        merge_rows(at, at_row(n), std::size_t(at) % line_bytes / std::size_t(phase_step),
                   {0, alike, cycle * shared_step, steps.data()});
      }
  }

  void walk(std::size_t k, std::byte* shared_at, std::vector<std::vector<std::byte*>>& member_at,
            std::byte* staging) const {
    if (k == outer.size())
      return sweep(shared_at, member_at[k], staging, 1, 0, std::vector<Index>(member_at[k].size()));
    const auto& axis = outer[k];
    axis.runs.for_each_run([&](Index, Index s, Index d, Index length) {
      auto enter = [&](Index e) {
        for (std::size_t m = 0; m < member_at[k].size(); ++m)
          member_at[k + 1][m] = member_at[k][m] + (s + e) * axis.member_stride[m];
      };
      if (k + 1 == outer.size()) {
        enter(0);
        return sweep(shared_at + d * axis.shared_stride, member_at[k + 1], staging, length, axis.shared_stride,
                     axis.member_stride);
      }
      for (Index e = 0; e < length; ++e) {
        enter(e);
        walk(k + 1, shared_at + (d + e) * axis.shared_stride, member_at, staging);
      }
    });
  }
};

JointCopy::JointCopy(std::vector<LoopNest> members, Shared shared, const CopyProgram::Options& options)
    : implementation_(std::make_unique<const Implementation>(std::move(members), shared, options)) {}
JointCopy::~JointCopy() = default;
JointCopy::JointCopy(JointCopy&&) noexcept = default;
JointCopy& JointCopy::operator=(JointCopy&&) noexcept = default;

void JointCopy::run(std::byte* shared, const std::vector<std::byte*>& members) const {
  const auto& self = *implementation_;
  std::vector<std::vector<std::byte*>> at(self.outer.size() + 1, members);
  for (std::size_t m = 0; m < members.size(); ++m) at[0][m] += self.member_base[m];
  alignas(64) std::byte staging[chunk_bytes + 64];
  self.walk(0, shared + self.shared_base, at, staging);
  if (self.options.stores == Stores::streaming) self.table->fence();
}

Index JointCopy::bytes() const { return implementation_->bytes; }

std::string JointCopy::describe() const {
  const auto& self = *implementation_;
  return std::to_string(self.member_base.size()) + " parts together along a " +
         (self.shared == Shared::destination ? "destination" : "source") + " row" +
         (!self.merged.empty() ? ", merged line by line"
          : self.staged        ? ", staged in cache"
                               : "") +
         (self.options.stores == Stores::streaming ? ", streaming" : "");
}

Index JointCopy::workspace_bytes() const {
  Index bytes = sizeof(Implementation) + chunk_bytes + 64;
  auto add = [&](const std::vector<Stretch>& row) {
    for (const auto& stretch : row)
      for (const auto& chunk : stretch.chunks)
        bytes += Index(sizeof(Chunk) + chunk.pieces.size() * sizeof(BlockPiece) +
                       chunk.begin.size() * sizeof(std::size_t) + chunk.parts.size() * sizeof(LinePart));
  };
  add(implementation_->row);
  for (const auto& row : implementation_->merged) add(row);
  return bytes;
}

}  // namespace longshore

#include "longshore/copies/joint_copy.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "copies/joint_row.hpp"

namespace longshore {

namespace {

/// Shorter runs are put together in cached staging before they are streamed; longer ones are streamed where they are.
constexpr Index staged_run_bytes = 512;
/// Rows of longer runs have few lines that are several members', and are not looked at line by line.
constexpr Index merged_run_bytes = 8192;
/// Of one joint copy that is merged.
constexpr std::size_t most_line_runs = 32768;
/// Shorter rows of a shared destination are staged, many of them at a time, rather than merged line by line.
constexpr Index short_row_bytes = 512;
/// From the first to the last byte that a row has of a member: where it is less, what is read ahead is of rows to come.
constexpr Index short_run_bytes = 2048;
/// Rows that are merged side by side.
constexpr Index merged_rows = 4;

}  // namespace

struct JointCopy::Implementation {
  Shared shared;
  CopyProgram::Options options;
  const KernelTable* table;
  Index unit = 0;  ///< bytes of one index of the interleaved axis
  Index bytes = 0;
  bool staged = false;
  bool short_runs = false;  ///< a row has few lines of each member
  /// That are swept together where they are short: a kernel's call for a few blocks is dear.
  Index rows_at_once = 1, row_bytes = 0;
  Index phase_step = line_bytes;  ///< bytes into a line where rows of whole elements can begin are multiples of it
  bool anywhere = false;  ///< it makes no difference where in a line rows begin: one member's, with ordinary stores
  Index shared_base = 0;
  std::vector<Index> member_base;
  struct Outer {
    PairedRuns runs;  ///< source = member side, destination = shared side
    Index shared_stride;
    std::vector<Index> member_stride;
  };
  std::vector<Outer> outer;
  std::vector<RepeatedChunks> row;
  /// The row line by line, for every phase in which it may begin:
  /// multiples of phase_step. Empty if lines are not merged, in all phases or in some.
  std::vector<std::vector<RepeatedChunks>> merged;

  __attribute__((cold)) Implementation(std::vector<LoopNest> members, Shared shared_,
                                       const CopyProgram::Options& options_, const std::byte* place)
      : shared(shared_), options(options_), table(options_.table ? options_.table : &kernels(options_.stores)) {
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
      if (member.destination_base() != members[0].destination_base())
        fail("needs members whose shared array begins at the same place");
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
    plan_row(JointRow(std::move(inner), unit), members.size(), place);
  }

  [[noreturn]] static void fail(const std::string& what) { throw Error(ErrorKind::argument, "a joint copy " + what); }

  /// Trailing axes that are whole and contiguous in all members become the unit of the axis outside them.
  __attribute__((cold)) void merge_whole_axes(std::vector<LoopNest>& members) {
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

  /// Cuts the interleaved axis into chunks, line by line unless that takes too many words.
  __attribute__((cold)) void plan_row(const JointRow& all, std::size_t members, const std::byte* place) {
    staged = shared == Shared::destination && options.stores == Stores::streaming &&
             all.mean_run_bytes() < staged_run_bytes && all.gapless();
    row = all.in_blocks();
    if (shared == Shared::source || (all.gapless() && all.bytes() < short_row_bytes))
      rows_at_once = short_rows(), row_bytes = all.bytes();
    anywhere = members == 1 && options.stores != Stores::streaming;
    phase_step = anywhere ? line_bytes : std::gcd(unit, line_bytes);
    short_runs = all.most_span_bytes() < short_run_bytes;
    if (shared != Shared::destination || !all.gapless() || all.mean_run_bytes() >= merged_run_bytes ||
        Index(members) > most_merged_sources ||
        (all.mean_run_bytes() < 4 && Index(members) < least_turns(all.mean_run_bytes(), false)))
      return;
    Index apart = line_bytes;  // bytes by which rows begin apart in their lines are multiples of it
    for (const auto& axis : outer) apart = std::gcd(apart, axis.shared_stride);
    merged.resize(std::size_t(line_bytes / phase_step));
    std::size_t runs = 0;
    for (Index phase = 0; phase < line_bytes; phase += phase_step) {
      if (!anywhere && place != nullptr &&
          floor_mod(phase - shared_base - Index(std::size_t(place) % line_bytes), apart) != 0)
        continue;
      auto& lines = merged[std::size_t(phase / phase_step)];
      lines = all.in_lines(phase, table->expands && table->profile.expands);
      for (const auto& repeated : lines)
        for (const auto& chunk : repeated.chunks) runs += chunk.runs.size();
      if (runs > most_line_runs || by_blocks(row) < by_runs(lines)) return merged.clear();
    }
  }

  /// About how long a row takes block by block, in ns: kernels' calls, and their blocks.
  static double by_blocks(const std::vector<RepeatedChunks>& row) {
    double time = 0;
    for (const auto& repeated : row)
      for (const auto& chunk : repeated.chunks)
        for (const auto& block : chunk.blocks)
          time += double(repeated.repeats) * (8 + 0.35 * double(block.loops.n0 * block.loops.n1));
    return time;
  }
  /// The same where lines are put together run by run, if these are of few bytes; of others, which are fetched
  /// ahead, nothing is counted.
  static double by_runs(const std::vector<RepeatedChunks>& row) {
    double time = 0;
    for (const auto& repeated : row)
      for (const auto& chunk : repeated.chunks) {
        const LineRun* run = chunk.runs.data();
        for (const auto& group : chunk.groups) {
          const LineRun* const end = run + group.runs;
          const bool staged = group.way == LineGroup::Way::staged, expanded = group.way == LineGroup::Way::expanded;
          for (; run != end; ++run)
            if ((staged && run->bytes <= 8) || (expanded && std::has_single_bit(run->place)))
              time += double(repeated.repeats);
        }
      }
    return time;
  }

  /// So many as a chunk has room for, if the second loop of all blocks is free for them.
  Index short_rows() const {
    Index bytes_of_row = 1;
    for (const auto& repeated : row)
      for (const auto& chunk : repeated.chunks) {
        bytes_of_row += repeated.repeats * chunk.bytes;
        for (const auto& block : chunk.blocks)
          if (block.loops.n1 > 1) return 1;
      }
    return std::max<Index>(chunk_bytes / bytes_of_row, 1);
  }

  /// Some rows, by blocks: of a shared source, or of a destination by way of the staging.
  void sweep_short_rows(std::byte* shared_row, const std::vector<std::byte*>& member_row, std::byte* staging,
                        Index rows, Index shared_step, const std::vector<Index>& member_steps) const {
    const bool staging_rows = shared == Shared::destination;
    const Index first = row.front().chunks.front().first;
    std::byte* const stage = staging + std::size_t(shared_row + first) % line_bytes - first;
    for (const auto& repeated : row)
      for (Index r = 0; r < repeated.repeats; ++r)
        for (const auto& chunk : repeated.chunks)
          for (std::size_t k = 0; k < member_row.size(); ++k)
            for (std::size_t b = chunk.begin[k]; b < chunk.begin[k + 1]; ++b) {
              const auto& [in_member, in_shared, x] = chunk.blocks[b];
              BlockLoops loops{x.block, x.n0, x.s0, x.d0, rows, member_steps[k], shared_step};
              if (!staging_rows) std::swap(loops.s0, loops.d0), std::swap(loops.s1, loops.d1);
              if (loops.s1 == loops.n0 * loops.s0 && loops.d1 == loops.n0 * loops.d0) loops.n0 *= rows, loops.n1 = 1;
              std::byte* const member = member_row[k] + r * repeated.member_advance[k] + in_member;
              const Index at = r * repeated.shared_advance + in_shared;
              if (staging_rows)
                table->blocks(stage + at, member, loops, Stores::cached);
              else
                table->blocks(member, shared_row + at, loops, options.stores);
            }
    if (staging_rows) table->copy(shared_row + first, stage + first, rows * shared_step, options.stores);
  }

  /// One row of the shared array, by blocks.
  __attribute__((noinline)) void sweep_row(std::byte* shared_row, const std::vector<std::byte*>& member_row,
                                           std::byte* staging) const {
    for (const auto& repeated : row)
      for (Index r = 0; r < repeated.repeats; ++r)
        for (const auto& chunk : repeated.chunks) {
          std::byte* const at = shared_row + r * repeated.shared_advance;
          // Staging keeps the destination's place within a cache line, so that whole lines are copied to whole lines.
          std::byte* const stage = staging + std::size_t(at + chunk.first) % line_bytes - chunk.first;
          for (std::size_t k = 0; k < member_row.size(); ++k) {
            std::byte* const member = member_row[k] + r * repeated.member_advance[k];
            for (std::size_t b = chunk.begin[k]; b < chunk.begin[k + 1]; ++b) {
              const auto& [source, destination, x] = chunk.blocks[b];
              if (shared == Shared::source)
                table->blocks(member + source, at + destination, {x.block, x.n0, x.d0, x.s0, x.n1, x.d1, x.s1},
                              options.stores);
              else
                table->blocks((staged ? stage : at) + destination, member + source, x,
                              staged ? Stores::cached : options.stores);
            }
          }
          if (staged) table->copy(at + chunk.first, stage + chunk.first, chunk.bytes, options.stores);
        }
  }

  /// Several rows that begin in the same phase, line by line.
  void merge_rows(std::byte* shared_row, const std::vector<std::byte*>& member_row, std::size_t phase,
                  const MergeLoops& rows) const {
    const std::byte* from[most_merged_sources];
    for (const auto& repeated : merged[phase])
      for (Index r = 0; r < repeated.repeats; ++r) {
        for (std::size_t k = 0; k < member_row.size(); ++k) from[k] = member_row[k] + r * repeated.member_advance[k];
        for (const auto& chunk : repeated.chunks) {
          MergeLoops loops = rows;
          loops.groups = Index(chunk.groups.size());
          table->merge(shared_row + r * repeated.shared_advance + chunk.first - chunk.phase, from, chunk.groups.data(),
                       chunk.runs.data(), loops, options.stores);
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
    if (rows_at_once > 1 && rows > 1 && (shared == Shared::source || shared_step == row_bytes)) {
      for (Index n = 0; n < rows; n += rows_at_once)
        sweep_short_rows(shared_at + n * shared_step, at_row(n), staging, std::min(rows - n, rows_at_once), shared_step,
                         member_steps);
      return;
    }
    const auto in_known_phase = [&](Index bytes) { return anywhere || bytes % phase_step == 0; };
    if (merged.empty() || !in_known_phase(Index(std::size_t(shared_at))) || !in_known_phase(shared_step)) {
      for (Index n = 0; n < rows; ++n) sweep_row(shared_at + n * shared_step, at_row(n), staging);
      return;
    }
    // Every `cycle` rows they begin in the same phase.
    const Index cycle = anywhere ? 1 : line_bytes / std::gcd(shared_step, line_bytes);
    std::vector<Index> steps = member_steps;
    for (auto& step : steps) step *= cycle;
    for (Index base = 0; base < rows; base += merged_rows * cycle)
      for (Index n = base; n < std::min(base + cycle, rows); ++n) {
        std::byte* const at = shared_at + n * shared_step;
        const Index alike = std::min(ceil_div(rows - n, cycle), merged_rows);
        const std::size_t phase = std::size_t(at) % line_bytes / std::size_t(phase_step);
        if (merged[phase].empty())
          for (Index k = n; k < n + alike * cycle; k += cycle)
            sweep_row(shared_at + k * shared_step, at_row(k), staging);
        else
          merge_rows(at, at_row(n), phase, {0, alike, cycle * shared_step, steps.data(), short_runs});
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

JointCopy::JointCopy(std::vector<LoopNest> members, Shared shared, const CopyProgram::Options& options,
                     const std::byte* at)
    : implementation_(std::make_unique<const Implementation>(std::move(members), shared, options, at)) {}
JointCopy::~JointCopy() = default;
JointCopy::JointCopy(JointCopy&&) noexcept = default;
JointCopy& JointCopy::operator=(JointCopy&&) noexcept = default;

void JointCopy::run(std::byte* shared, const std::vector<std::byte*>& members) const {
  const auto& self = *implementation_;
  if (members.size() != self.member_base.size())
    throw Error(ErrorKind::argument, "a joint copy of " + std::to_string(self.member_base.size()) +
                                         " members is given the arrays of " + std::to_string(members.size()));
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
  auto add = [&](const std::vector<RepeatedChunks>& row) {
    for (const auto& repeated : row)
      for (const auto& chunk : repeated.chunks)
        bytes +=
            Index(sizeof(Chunk) + chunk.blocks.size() * sizeof(PlacedLoops) + chunk.begin.size() * sizeof(std::size_t) +
                  chunk.groups.size() * sizeof(LineGroup) + chunk.runs.size() * sizeof(LineRun));
  };
  add(implementation_->row);
  for (const auto& row : implementation_->merged) add(row);
  return bytes;
}

}  // namespace longshore

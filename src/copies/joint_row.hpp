/// A row of an array that several relations share, cut into chunks that stay in cache: block by block, or line by line.
#pragma once

#include <vector>

#include "longshore/copies/kernels.hpp"
#include "longshore/relations/paired_runs.hpp"
#include "longshore/sequences/interval.hpp"

namespace longshore {

inline constexpr Index line_bytes = 64;
/// Of the shared array, what is worked on at a time: it and as much of the members' data fit in the first-level cache.
inline constexpr Index chunk_bytes = 16 * 1024;

/// So many members at least take turns element by element where that is a way of its own: fewer are faster expanded,
/// where their elements are of two bytes by blocks, as those of one byte are. Of 16 bytes, two only are.
constexpr Index least_turns(Index element, bool expands) {
  return element == 1 || element == 16 ? INT64_MAX : element == 2 ? 8 : expands ? 6 : 3;
}

/// Some indices of the row, and what each member has in them.
struct Chunk {
  Index first, bytes;                ///< in the shared row
  std::vector<PlacedLoops> blocks;   ///< from the member's row (the source) to the shared one
  std::vector<std::size_t> begin{};  ///< member k's blocks are [begin[k], begin[k + 1])
  // In the place of blocks where lines are merged:
  Index phase = 0;  ///< how far into its first line the chunk begins
  std::vector<LineGroup> groups{};
  std::vector<LineRun> runs{};
};

/// Chunks that come again and again along the row.
struct RepeatedChunks {
  std::vector<Chunk> chunks;
  Index repeats = 1, shared_advance = 0;
  std::vector<Index> member_advance;
};

/// Cuts a row. Where all members repeat with one period, only that much is cut. What cuts is marked cold, here and in
/// joint copies: it runs once a bind, and is compiled to be small.
class JointRow {
 public:
  /// Members' indices (the source) and the row's (the destination), of `unit` bytes each.
  JointRow(std::vector<PairedRuns> members, Index unit);

  bool gapless() const { return elements_ == row_.size(); }  ///< every index of the row is some member's
  Index bytes() const { return row_.size() * unit_; }
  Index mean_run_bytes() const { return elements_ * unit_ / runs_; }
  Index most_span_bytes() const;  ///< of a member, from the first to the last that the row has of it
  std::vector<RepeatedChunks> in_blocks() const;
  /// Of a row that begins so many bytes into a line, for a table of kernels that expands or does not.
  std::vector<RepeatedChunks> in_lines(Index phase, bool expands) const;

 private:
  /// Where a relation repeats: for indices of these, what holds for one holds `period` later too, with the source
  /// `source_period` later.
  struct Periodic {
    Interval indices;
    Index period = 0, source_period = 0;
  };
  static Periodic periodicity(const PairedRuns& runs);
  std::vector<RepeatedChunks> cut(Index start, Index chunk) const;
  RepeatedChunks cut(Interval part, Index chunk) const;

  std::vector<PairedRuns> members_;
  Index unit_, elements_ = 0, runs_ = 0;
  Interval row_;     ///< all indices
  Periodic common_;  ///< where all members repeat
};

}  // namespace longshore

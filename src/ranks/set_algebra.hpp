/// Sets of ranks as those work on them who look at many members: as few intervals, as bits, or else as a list.
#pragma once

#include <optional>

#include "longshore/ranks/rank_groups.hpp"
#include "longshore/sequences/bitmap.hpp"

namespace longshore::ranks {

/// Maps of two worlds are an error, and so are members that have to be looked at one by one where they are too many.
void check_worlds(const RankMap& a, const RankMap& b);
void check_enumerable(const RankMap& map);
std::vector<Index> listed(const RankMap& map);

enum class Operation { unite, intersect, subtract };
/// Both lists swept from the lowest rank to the highest.
std::vector<AffineRun> combined(Operation operation, std::span<const Interval> a, std::span<const Interval> b);
/// The intervals of an ascending map, or nothing where they are more than `most`, or may be and each member had to be
/// looked at.
std::optional<std::vector<Interval>> few_intervals(const RankMap& map, Index most);
/// How many intervals of two maps are worth sweeping: few for their members, or anything that is possible where bits
/// are not.
Index most_intervals(const RankMap& a, const RankMap& b);

/// From the lowest member to the highest; of nobody, empty.
Interval bounds_of(const RankMap& map);
/// Whether a bit for each rank within is in proportion to the members.
bool worth_marks(const Interval& within, Index members);

/// A bit for each rank of an interval.
class Marks {
 public:
  explicit Marks(const Interval& within) : within_(within), words_(std::size_t(ceil_div(within.size(), 64))) {}

  void set(const RankMap& map);
  bool test(Index w) const { return holds(w) && (words_[std::size_t((w - within_.first) / 64)] & bit(w)); }
  void combine(Operation operation, const Marks& other);
  std::vector<Index> members() const;

 private:
  bool holds(Index w) const { return w >= within_.first && w < within_.last; }
  std::uint64_t bit(Index w) const { return std::uint64_t{1} << ((w - within_.first) % 64); }
  void set(Index shift, const Bitmap& bits);

  Interval within_;
  std::vector<std::uint64_t> words_;
};

/// Whether ranks are members of a map, for those who ask about so many.
class Membership {
 public:
  Membership(const RankMap& map, Index questions);
  bool operator()(Index w) const { return marks_ ? marks_->test(w) : map_.contains(w); }

 private:
  RankMap map_;
  std::optional<Marks> marks_;
};

}  // namespace longshore::ranks

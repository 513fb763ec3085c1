/// `Members`: what a rank map is made from, a list, runs or another map; read in pieces, never copied.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "longshore/ranks/rank_map.hpp"
#include "longshore/sequences/runs.hpp"

namespace longshore {

class Members {
 public:
  explicit Members(std::span<const Index> list) : list_(list), size_(Index(list.size())) {}
  explicit Members(std::span<const AffineRun> runs);
  explicit Members(const RankMap& map) : map_(&map), size_(map.size()) {}

  Index size() const { return size_; }
  void read(Index first, Index n, Index* out) const;
  /// The runs it was given as, or none.
  std::span<const AffineRun> runs() const { return runs_; }
  /// The map it was given as, or nullptr.
  const RankMap* map() const { return map_; }
  /// The maximal intervals of consecutive ranks. Throws `Error(argument)` where the members do not ascend.
  std::vector<Interval> intervals() const;
  /// visit(first, values) for pieces of 4096 members, the last perhaps shorter.
  template <class Visit>
  void each_piece(Visit visit) const {
    constexpr Index piece = 4096;
    std::vector<Index> room(list_.empty() ? std::size_t(std::min(piece, size_)) : 0);
    for (Index first = 0; first < size_; first += piece) {
      const Index n = std::min(piece, size_ - first);
      if (room.empty()) {
        visit(first, list_.subspan(std::size_t(first), std::size_t(n)));
      } else {
        read(first, n, room.data());
        visit(first, std::span<const Index>(room.data(), std::size_t(n)));
      }
    }
  }

 private:
  std::span<const Index> list_;
  std::span<const AffineRun> runs_;
  std::vector<Index> starts_;  ///< the position of each run
  const RankMap* map_ = nullptr;
  Index size_;
};

}  // namespace longshore

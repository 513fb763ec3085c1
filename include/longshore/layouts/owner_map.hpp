/// `OwnerMap`: which rank each of several things belongs to, in few bits each.
#pragma once

#include <utility>
#include <vector>

#include "longshore/ranks/rank_map.hpp"
#include "longshore/sequences/fixed_integers.hpp"

namespace longshore {

/// The Data Mover's Map as a list: the rank that each of several things belongs to.
using Map = std::vector<Index>;

/// The same as a value that is kept: those who own something in a `RankMap`, and, where somebody
/// owns several things, which of them each thing belongs to. Where each owns one, that is the map
/// itself: of block k on rank k, a closed form of a few bytes.
class OwnerMap {
 public:
  OwnerMap() = default;
  /// Throws `Error(argument)` where a rank is negative or not below 2^40, naming the thing as a `what` ("region").
  OwnerMap(const Map& owners, const char* what);

  Index size() const { return which_.empty() ? ranks_.size() : which_.size(); }
  /// The caller knows that 0 <= k < size().
  Index operator[](Index k) const { return ranks_.select(which_.empty() ? k : which_[k]); }
  Map to_map() const;
  /// Those who own something: each with its one thing in the things' order, or in ascending order.
  const RankMap& ranks() const& { return ranks_; }
  RankMap ranks() && { return std::move(ranks_); }
  bool one_each() const { return which_.empty(); }
  Index bytes() const { return ranks_.bytes() + which_.memory_bytes(); }
  bool operator==(const OwnerMap&) const = default;

 private:
  RankMap ranks_;
  FixedIntegers which_;  ///< positions in ranks_; empty where each rank owns one thing
};

}  // namespace longshore

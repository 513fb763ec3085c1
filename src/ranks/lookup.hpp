/// Indexes for `rank` on lists that cannot answer by themselves.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "longshore/ranks/rank_map.hpp"
#include "longshore/sequences/bitmap.hpp"
#include "longshore/sequences/fixed_integers.hpp"

namespace longshore {

/// Belongs to one map, which is given with every question. What a lazy one makes, it makes once, whoever asks first.
class RankLookup {
 public:
  RankLookup(const RankMap& map, LookupKind kind);

  LookupKind kind() const { return kind_; }
  Index find(const RankMap& map, Index w) const;
  Index bytes() const;

 private:
  /// Group ranks, counted from 1, at places that the hash of their world ranks says, and with each a few bits more of
  /// the hash: of those in the way, one in eight has to be looked at. 0 is empty. Where there are not many more ranks
  /// between the lowest member and the highest than there are members, each of those ranks has a place of its own.
  struct Hash {
    static constexpr int tag_bits = 3;
    FixedIntegers slots;
    Index lowest = 0;
    bool own_places = false;
    explicit Hash(const RankMap& map);
    Index find(const RankMap& map, Index w) const;
    struct Place {
      Index slot, tag;
    };
    Place place_of(Index w) const;
    Index next(Index slot) const { return slot + 1 == slots.size() ? 0 : slot + 1; }
    Index bytes() const { return Index(sizeof(Hash)) + slots.memory_bytes(); }
  };
  /// The permutation that the map is of the set of its members, with a way
  /// back every eight steps along its cycles (Munro, Raman, Raman and Rao).
  struct Shortcuts {
    RankMap set;
    Bitmap marked;
    FixedIntegers back;
    explicit Shortcuts(const RankMap& map);
    Index find(const RankMap& map, Index w) const;
  };

  LookupKind kind_;
  mutable std::once_flag once_;
  mutable std::unique_ptr<const Hash> hash_;
  mutable std::atomic<Index> hash_bytes_{0};
  std::unique_ptr<const Shortcuts> shortcuts_;
};

}  // namespace longshore

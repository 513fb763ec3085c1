/// What a cache keeps, in units that are flushed in one piece; who asks for it, and who waits, is the cache's affair.
#pragma once

#include <atomic>
#include <map>
#include <set>
#include <thread>
#include <unordered_map>

#include "longshore/encodings/relation_cache.hpp"

namespace longshore {

/// Relations within a ceiling, by key. Called with the cache's mutex held.
class CachedUnits {
 public:
  struct Entry {
    CachedPointer relation;
    std::string unit;
    Index bytes = 0;
    double make_ns = 0;
    Index uses = 0, expected_uses = 0;
    bool pinned = false, soon = false, done = false;
  };

  struct Unit {
    FlushUnit facts;
    std::set<std::string> keys;
    Index pinned = 0, soon = 0, done = 0;  ///< of its relations
    bool saved = false;                    ///< the store has it as it is

    /// Flushed before those of a higher rank, whatever the policy.
    int rank() const { return done == facts.relations ? 0 : soon > 0 ? 2 : 1; }
  };

  /// While a policy or a store is called with the mutex held.
  class Inside {
   public:
    explicit Inside(CachedUnits& units) : units_(units) { units_.inside_ = std::this_thread::get_id(); }
    ~Inside() { units_.inside_ = std::thread::id(); }

   private:
    CachedUnits& units_;
  };

  CachedUnits(Index ceiling_bytes, std::shared_ptr<EvictionPolicy> given, std::shared_ptr<BackingStore> backing);

  const Index ceiling;
  const std::shared_ptr<EvictionPolicy> policy;
  const std::shared_ptr<BackingStore> store;
  CacheStatistics counts;

  const std::unordered_map<std::string, Entry>& entries() const { return entries_; }
  const std::map<std::string, Unit>& units() const { return units_; }
  Index bytes() const { return bytes_; }
  /// Whether this thread is called by a policy or a store: it may not wait for the mutex. Needs no mutex.
  bool is_inside() const { return inside_.load() == std::this_thread::get_id(); }

  /// Null where the key is not kept.
  Entry* find(const std::string& key);
  void used(Entry& entry);
  /// Keeps a relation whose key is not kept, where there is room for it.
  bool keep(const std::string& key, const std::string& name, const CachedPointer& relation, const CacheHint& hint,
            double make_ns);
  void drop(const std::string& key);
  /// Counts a hint with its unit's.
  void mark(Entry& entry, bool Entry::*flag, Index Unit::*count, bool value);
  /// Notes whether the store has a unit as it is.
  void set_saved(const std::string& name, bool saved);
  void flush(const std::string& name);
  void forget_record(const std::string& name);

 private:
  using UnitPosition = std::map<std::string, Unit>::iterator;
  void touch(Unit& unit);
  bool make_room(Index wanted, const std::string& name);
  std::size_t choose(std::span<const FlushUnit* const> candidates);
  void flush(UnitPosition at);

  std::atomic<std::thread::id> inside_{};
  std::unordered_map<std::string, Entry> entries_;
  std::map<std::string, Unit> units_;  ///< by the names of their records
  Index bytes_ = 0, operations_ = 0;
};

}  // namespace longshore

/// Which relations a full cache flushes first: a choice that can be replaced (Dinda & O'Hallaron, section 6).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "longshore/core/checked.hpp"

namespace longshore {

/// What a cache flushes in one piece: a group, or a relation without one. Times are counted in the cache's own
/// operations, so that a choice depends on nothing else.
struct FlushUnit {
  std::string name;  ///< the group's, or the relation's key
  bool group = false;
  Index relations = 0, bytes = 0;
  double make_ns = 0;              ///< what making its relations took, all together
  Index uses = 0;                  ///< since they were stored
  Index stored = 0, last_use = 0;  ///< the operations of the first storing and of the last use, storing included
  double mark = 0;                 ///< the policy's own
};

/// A policy serves one cache, which calls it with its mutex held: it may
/// keep state without a mutex of its own, and may not call the cache.
class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;
  virtual std::string_view name() const = 0;
  /// The unit was used, or has grown. What the policy writes into `unit.mark` stays there.
  virtual void touched(FlushUnit& unit) { (void)unit; }
  /// The position of the unit to flush, of at least one, ordered by name.
  virtual std::size_t victim(std::span<const FlushUnit* const> units) = 0;
};

/// "lru": least recently used. "fifo": stored first. "lfu": least often used, of those the least recently. "cost":
/// GreedyDual-Size (Cao & Irani), which flushes what takes the least time to make again for its bytes, unless it has
/// been used lately. Throws `Error(argument)` for another name.
std::unique_ptr<EvictionPolicy> eviction_policy(std::string_view name);

}  // namespace longshore

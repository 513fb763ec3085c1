/// A bound on the memory of stored address relations: `RelationCache` (Dinda & O'Hallaron, section 6).
#pragma once

#include <functional>
#include <utility>
#include <variant>

#include "longshore/encodings/backing_store.hpp"
#include "longshore/encodings/encoding.hpp"
#include "longshore/encodings/eviction_policy.hpp"

namespace longshore {

/// What is compiled and kept beside an encoding: faster moves for more memory.
enum class KeptProgram : std::uint8_t { none, program, assembler, disassembler };

/// A relation as a cache keeps it. Immutable; whoever holds one may go on using it after it has been flushed.
class CachedRelation {
 public:
  CachedRelation(Encoding encoding, KeptProgram kept);

  const Encoding& encoding() const& { return encoding_; }
  Encoding encoding() && { return std::move(encoding_); }
  KeptProgram kept() const { return KeptProgram(compiled_.index()); }
  /// Null where something else is kept.
  const RelationProgram* program() const { return std::get_if<RelationProgram>(&compiled_); }
  const Assembler* assembler() const { return std::get_if<Assembler>(&compiled_); }
  const Disassembler* disassembler() const { return std::get_if<Disassembler>(&compiled_); }
  /// What a cache counts, its key aside: the encoding's bytes, the program's memory, this object.
  Index bytes() const { return bytes_; }

 private:
  Encoding encoding_;
  std::variant<std::monostate, RelationProgram, Assembler, Disassembler> compiled_;
  Index bytes_;
};

using CachedPointer = std::shared_ptr<const CachedRelation>;

/// What the caller knows of a relation's future.
struct CacheHint {
  std::string group = {};  ///< of one collective operation: flushed and restored together; empty: none
  KeptProgram keep = KeptProgram::none;
  bool pin = false;   ///< never flushed to make room
  bool soon = false;  ///< flushed after all others; until its next use
  /// counted from the first: after so many it is done, and flushed before all others; 0: not known
  Index expected_uses = 0;
};

/// What a cache has done and what it holds, for those who choose what to keep in it.
struct CacheStatistics {
  Index hits = 0;            ///< asked for and kept, or being made by another thread
  Index misses = 0;          ///< asked for and neither kept nor restored
  Index restores = 0;        ///< relations that came back from the store, groups' other members included
  Index evictions = 0;       ///< relations flushed
  Index spills = 0;          ///< records written to the store, one a group
  Index damaged = 0;         ///< records of the store that did not hold together: misses
  Index store_failures = 0;  ///< the store could not do what it was asked
  Index not_kept = 0;        ///< larger than the ceiling, or than what pinned relations leave of it
  Index relations = 0, groups = 0, bytes = 0,
        pinned_bytes = 0;  ///< now; a group is pinned when one of its relations is
  Index ceiling_bytes = 0;
  Index most_bytes = 0;     ///< there have been at once
  Index largest_bytes = 0;  ///< of one relation, kept or not: no smaller ceiling would do
};

/// A relation that is kept.
struct CacheEntry {
  std::string key, group;
  EncodingKind kind;
  KeptProgram keep;
  Index elements, bytes, uses;
  double make_ns;
  bool pinned, soon, done;
};

/// Relations by their caller's keys, in at most so many bytes. When that is in use and a
/// new relation needs to be stored, a policy chooses what is flushed: to a store if there
/// is one, else it is made again when it is asked for again.
///
/// All functions may be called by several threads. Relations are made, and read from the
/// store, with the mutex released; they are written to the store with it held. One key is made
/// by one thread, and others that ask for it wait for that.
class RelationCache {
 public:
  using Maker = std::function<Encoding()>;

  /// Without a policy: "lru". Throws `Error(argument)` for a ceiling below 0.
  explicit RelationCache(Index ceiling_bytes, std::shared_ptr<EvictionPolicy> policy = nullptr,
                         std::shared_ptr<BackingStore> store = nullptr);
  ~RelationCache();
  RelationCache(const RelationCache&) = delete;
  RelationCache& operator=(const RelationCache&) = delete;

  /// The relation of a key: kept, restored or made. Never null. A key's group and what is kept of it are those of its
  /// first storing. A maker may ask for other relations, not for those that wait for it: `Error(argument)`. What the
  /// maker throws goes on to its caller, and another thread that waits makes it instead.
  CachedPointer get_or_make(const std::string& key, const Maker& maker, const CacheHint& hint = {});
  /// The relation if it is kept or can be restored, else null.
  /// The group is needed to restore what was flushed with one.
  CachedPointer get(const std::string& key, const std::string& group = {});
  /// Stores a relation, in the place of one with the same key; `make_ns`:
  /// what making it took. False where there is no room for it.
  bool put(const std::string& key, Encoding encoding, const CacheHint& hint = {}, double make_ns = 0);
  /// No use, and nothing is restored.
  bool contains(const std::string& key) const;

  /// Hints from now on; keys that are not kept are ignored.
  void pin(const std::string& key, bool pinned = true);
  void soon(const std::string& key);
  void done(const std::string& key);

  /// Flushes a relation with its group, or all there is, pinned or not: to the store if there is one.
  void flush(const std::string& key);
  void flush_all();
  /// Forgets a relation, here and in the store (where its group goes with it).
  void erase(const std::string& key, const std::string& group = {});

  CacheStatistics statistics() const;
  /// What is kept, by key.
  std::vector<CacheEntry> entries() const;
  std::string policy_name() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace longshore

#include "longshore/encodings/relation_cache.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>

#include "encodings/cache_record.hpp"

namespace longshore {

namespace {

using Compiled = std::variant<std::monostate, RelationProgram, Assembler, Disassembler>;

Compiled compile(const Encoding& encoding, KeptProgram kept) {
  switch (kept) {
    case KeptProgram::none: break;
    case KeptProgram::program: return RelationProgram(encoding.decode());
    case KeptProgram::assembler: return Assembler(encoding.decode());
    case KeptProgram::disassembler: return Disassembler(encoding.decode());
  }
  return {};
}

struct Workspace {
  Index operator()(const std::monostate&) const { return 0; }
  Index operator()(const RelationProgram& program) const { return program.workspace_bytes(); }
  Index operator()(const Assembler& assembler) const { return assembler.program().workspace_bytes(); }
  Index operator()(const Disassembler& disassembler) const { return disassembler.program().workspace_bytes(); }
};

std::string unit_name(const std::string& key, const std::string& group) {
  return group.empty() ? "k" + key : "g" + group;
}

}  // namespace

CachedRelation::CachedRelation(Encoding encoding, KeptProgram kept)
    : encoding_(std::move(encoding)),
      compiled_(compile(encoding_, kept)),
      bytes_(Index(sizeof *this) + encoding_.encoded_bytes() + std::visit(Workspace(), compiled_)) {}

struct RelationCache::Implementation {
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
  using UnitPosition = std::map<std::string, Unit>::iterator;

  /// A relation that a thread makes.
  struct Flight {
    std::thread::id maker;
    bool over = false;
    CachedPointer result;  ///< null where the maker threw
  };

  /// The mutex, refused to a policy or a store that calls back: it would wait for itself.
  class Lock : public std::unique_lock<std::mutex> {
   public:
    explicit Lock(Implementation& cache) : std::unique_lock<std::mutex>(cache.mutex, std::defer_lock) {
      if (cache.inside.load() == std::this_thread::get_id())
        throw Error(ErrorKind::argument, "a cache's policy and its store may not call the cache");
      lock();
    }
  };

  /// While a policy or a store is called with the mutex held.
  struct Inside {
    Implementation& cache;
    explicit Inside(Implementation& c) : cache(c) { cache.inside = std::this_thread::get_id(); }
    ~Inside() { cache.inside = std::thread::id(); }
  };

  const Index ceiling;
  const std::shared_ptr<EvictionPolicy> policy;
  const std::shared_ptr<BackingStore> store;

  std::mutex mutex;
  std::atomic<std::thread::id> inside{};
  std::condition_variable changed;  ///< a flight or a restoring is over
  std::unordered_map<std::string, Entry> entries;
  std::map<std::string, Unit> units;                                 ///< by the names of their records
  std::unordered_map<std::string, std::shared_ptr<Flight>> flights;  ///< by key
  std::unordered_map<std::string, std::thread::id> restoring;        ///< units, and who restores them
  std::unordered_map<std::thread::id, const Flight*> waiting;        ///< threads, and what each waits for
  Index bytes = 0, operations = 0;
  CacheStatistics counts;

  Implementation(Index ceiling_bytes, std::shared_ptr<EvictionPolicy> given, std::shared_ptr<BackingStore> backing)
      : ceiling(ceiling_bytes), policy(given ? std::move(given) : eviction_policy("lru")), store(std::move(backing)) {
    if (ceiling < 0) throw Error(ErrorKind::argument, "a cache cannot hold " + std::to_string(ceiling) + " bytes");
  }

  // --- what is kept

  void touch(Unit& unit) {
    unit.facts.last_use = ++operations;
    const Inside guard(*this);
    policy->touched(unit.facts);
  }

  void mark(Entry& entry, bool Entry::*flag, Index Unit::*count, bool value) {
    if (entry.*flag == value) return;
    entry.*flag = value;
    units.at(entry.unit).*count += value ? 1 : -1;
  }

  void used(Entry& entry) {
    ++entry.uses;
    mark(entry, &Entry::soon, &Unit::soon, false);
    mark(entry, &Entry::done, &Unit::done, entry.uses == entry.expected_uses);
    auto& unit = units.at(entry.unit);
    ++unit.facts.uses;
    touch(unit);
  }

  /// Keeps a relation whose key is not kept, where there is room for it.
  bool keep(const std::string& key, const std::string& name, const CachedPointer& relation, const CacheHint& hint,
            double make_ns) {
    const Index size = relation->bytes() + Index(key.size());
    counts.largest_bytes = std::max(counts.largest_bytes, size);
    if (!make_room(size, name)) {
      ++counts.not_kept;
      return false;
    }
    auto& unit = units[name];
    if (unit.keys.empty())
      unit.facts.name = name.substr(1), unit.facts.group = name[0] == 'g', unit.facts.stored = operations + 1;
    unit.keys.insert(key);
    unit.facts.relations += 1, unit.facts.bytes += size, unit.facts.make_ns += make_ns;
    unit.saved = false;
    auto& entry = entries[key];
    entry = {relation, name, size, make_ns, 0, hint.expected_uses, false, false, false};
    mark(entry, &Entry::pinned, &Unit::pinned, hint.pin);
    mark(entry, &Entry::soon, &Unit::soon, hint.soon);
    bytes += size;
    counts.most_bytes = std::max(counts.most_bytes, bytes);
    touch(unit);
    return true;
  }

  void drop(const std::string& key) {
    const auto at = entries.find(key);
    if (at == entries.end()) return;
    auto& entry = at->second;
    const auto unit = units.find(entry.unit);
    for (const auto& [flag, count] : {std::pair(&Entry::pinned, &Unit::pinned), std::pair(&Entry::soon, &Unit::soon),
                                      std::pair(&Entry::done, &Unit::done)})
      mark(entry, flag, count, false);
    auto& facts = unit->second.facts;
    facts.relations -= 1, facts.bytes -= entry.bytes, facts.make_ns -= entry.make_ns, facts.uses -= entry.uses;
    bytes -= entry.bytes;
    unit->second.keys.erase(key);
    unit->second.saved = false;
    if (unit->second.keys.empty()) units.erase(unit);
    entries.erase(at);
  }

  // --- flushing

  /// Flushes until so many bytes more fit; a unit does not make room for its
  /// own relations. False, with nothing flushed, where that is not possible.
  bool make_room(Index wanted, const std::string& name) {
    Index held = 0;
    for (const auto& [other, unit] : units)
      if (unit.pinned > 0 || other == name) held += unit.facts.bytes;
    if (wanted > ceiling - held) return false;
    while (bytes > ceiling - wanted) {
      int rank = 3;
      std::vector<const FlushUnit*> candidates;
      std::vector<UnitPosition> positions;
      for (auto at = units.begin(); at != units.end(); ++at) {
        const auto& unit = at->second;
        if (unit.pinned > 0 || at->first == name || unit.rank() > rank) continue;
        if (unit.rank() < rank) rank = unit.rank(), candidates.clear(), positions.clear();
        candidates.push_back(&unit.facts), positions.push_back(at);
      }
      flush(positions[choose(candidates)]);
    }
    return true;
  }

  std::size_t choose(std::span<const FlushUnit* const> candidates) {
    const Inside guard(*this);
    const std::size_t k = policy->victim(candidates);
    if (k >= candidates.size())
      throw Error(ErrorKind::argument, "the policy " + std::string(policy->name()) + " chose unit " +
                                           std::to_string(k) + " of " + std::to_string(candidates.size()));
    return k;
  }

  void flush(UnitPosition at) {
    auto& unit = at->second;
    if (store && !unit.saved) {
      std::vector<CacheRecordMember> members;
      for (const auto& key : unit.keys) {
        const auto& entry = entries.at(key);
        members.push_back({key, entry.relation->kept(), entry.make_ns, entry.relation->encoding()});
      }
      const auto record = write_cache_record(at->first, members);
      try {
        const Inside guard(*this);
        store->save(at->first, record);
        ++counts.spills;
      } catch (const Error&) {
        ++counts.store_failures;
      }
    }
    for (const auto& key : unit.keys) entries.erase(key);
    counts.evictions += unit.facts.relations;
    bytes -= unit.facts.bytes;
    units.erase(at);
  }

  void forget_record(const std::string& name) {
    if (!store) return;
    try {
      const Inside guard(*this);
      store->remove(name);
    } catch (const Error&) {
      ++counts.store_failures;
    }
  }

  // --- asking

  /// Waits for another thread's flight. Throws where that thread waits for this one.
  void wait_for(Lock& lock, const Flight& flight, const std::string& key) {
    const auto me = std::this_thread::get_id();
    for (const Flight* other = &flight;;) {
      if (other->maker == me)
        throw Error(ErrorKind::argument,
                    "the maker of '" + key + "' needs, perhaps through others, the relation that it makes");
      const auto at = waiting.find(other->maker);
      if (at == waiting.end() || at->second->over) break;
      other = at->second;
    }
    waiting[me] = &flight;
    changed.wait(lock, [&] { return flight.over; });
    waiting.erase(me);
  }

  void wait_restored(Lock& lock, const std::string& name) {
    for (auto at = restoring.find(name); at != restoring.end(); at = restoring.find(name)) {
      if (at->second == std::this_thread::get_id())
        throw Error(ErrorKind::argument, "a cache's policy and its store may not call the cache");
      changed.wait(lock);
    }
  }

  CachedPointer look_up(const std::string& key, const Maker* maker, const CacheHint& hint) {
    const auto name = unit_name(key, hint.group);
    Lock lock(*this);
    for (bool tried = false;;) {
      if (const auto at = entries.find(key); at != entries.end()) {
        ++counts.hits;
        const auto relation = at->second.relation;
        used(at->second);
        return relation;
      }
      if (const auto at = flights.find(key); at != flights.end()) {
        const auto flight = at->second;
        wait_for(lock, *flight, key);
        if (!flight->result) continue;
        ++counts.hits;
        if (const auto kept = entries.find(key); kept != entries.end()) used(kept->second);
        return flight->result;
      }
      if (restoring.contains(name)) {
        wait_restored(lock, name);
        continue;
      }
      if (!store || tried || units.contains(name)) break;
      tried = true;
      if (auto found = restore(lock, key, name, hint)) return found;
    }
    ++counts.misses;
    return maker ? make(lock, key, name, *maker, hint) : nullptr;
  }

  CachedPointer make(Lock& lock, const std::string& key, const std::string& name, const Maker& maker,
                     const CacheHint& hint) {
    const auto flight = std::make_shared<Flight>();
    flight->maker = std::this_thread::get_id();
    flights[key] = flight;
    lock.unlock();
    CachedPointer relation;
    std::exception_ptr error;
    const auto start = std::chrono::steady_clock::now();
    try {
      relation = std::make_shared<CachedRelation>(maker(), hint.keep);
    } catch (...) {
      error = std::current_exception();
    }
    const auto stop = std::chrono::steady_clock::now();
    lock.lock();
    flights.erase(key);
    flight->over = true, flight->result = relation;
    changed.notify_all();
    if (error) std::rethrow_exception(error);
    if (keep(key, name, relation, hint, std::chrono::duration<double, std::nano>(stop - start).count()))
      used(entries.at(key));
    return relation;
  }

  /// A unit from the store: its relation of the key first, then
  /// the others as far as there is room. Null where it has none.
  CachedPointer restore(Lock& lock, const std::string& key, const std::string& name, const CacheHint& hint) {
    restoring[name] = std::this_thread::get_id();
    lock.unlock();
    struct Restored {
      const CacheRecordMember* member;
      CachedPointer relation;
    };
    std::vector<CacheRecordMember> members;
    std::vector<Restored> all;
    bool damaged = false, failed = false;
    std::exception_ptr error;
    try {
      const auto record = store->load(name);
      if (record) damaged = !read_cache_record(*record, name, members);
      if (damaged) store->remove(name);
      for (auto& member : members) {
        const bool asked = member.key == key;
        const auto relation = std::make_shared<CachedRelation>(member.encoding, asked ? hint.keep : member.kept);
        all.insert(asked ? all.begin() : all.end(), {&member, relation});
      }
    } catch (const Error&) {
      failed = true;
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    restoring.erase(name);
    changed.notify_all();
    counts.damaged += damaged, counts.store_failures += failed;
    if (error) std::rethrow_exception(error);

    CachedPointer result;
    bool whole = true;
    for (const auto& [member, relation] : all) {
      const bool asked = member->key == key;
      if (entries.contains(member->key) || flights.contains(member->key)) continue;
      const bool kept = keep(member->key, name, relation, asked ? hint : CacheHint(), member->make_ns);
      whole = whole && kept;
      counts.restores += kept || asked;
      if (!asked) continue;
      result = relation;
      if (kept) used(entries.at(key));
    }
    if (const auto unit = units.find(name); unit != units.end())
      unit->second.saved = whole && unit->second.keys.size() == all.size();
    return result;
  }

  /// Waits until nobody makes or restores the key, and forgets it.
  void forget(Lock& lock, const std::string& key, const std::string& name) {
    for (;;) {
      const auto kept = entries.find(key);
      const std::string old = kept != entries.end() ? kept->second.unit : name;
      if (const auto at = flights.find(key); at != flights.end()) {
        const auto flight = at->second;
        wait_for(lock, *flight, key);
      } else if (restoring.contains(name)) {
        wait_restored(lock, name);
      } else {
        drop(key);
        forget_record(name);
        if (old != name) forget_record(old);
        if (const auto unit = units.find(old); unit != units.end()) unit->second.saved = false;
        return;
      }
    }
  }

  /// Calls f(entry) if the key is kept.
  template <class F>
  void with(const std::string& key, F&& f) {
    const Lock lock(*this);
    if (const auto at = entries.find(key); at != entries.end()) f(at->second);
  }
};

RelationCache::RelationCache(Index ceiling_bytes, std::shared_ptr<EvictionPolicy> policy,
                             std::shared_ptr<BackingStore> store)
    : implementation_(std::make_unique<Implementation>(ceiling_bytes, std::move(policy), std::move(store))) {}
RelationCache::~RelationCache() = default;

CachedPointer RelationCache::get_or_make(const std::string& key, const Maker& maker, const CacheHint& hint) {
  return implementation_->look_up(key, &maker, hint);
}

CachedPointer RelationCache::get(const std::string& key, const std::string& group) {
  CacheHint hint;
  hint.group = group;
  return implementation_->look_up(key, nullptr, hint);
}

bool RelationCache::put(const std::string& key, Encoding encoding, const CacheHint& hint, double make_ns) {
  const auto relation = std::make_shared<CachedRelation>(std::move(encoding), hint.keep);
  const auto name = unit_name(key, hint.group);
  Implementation::Lock lock(*implementation_);
  implementation_->forget(lock, key, name);
  return implementation_->keep(key, name, relation, hint, make_ns);
}

bool RelationCache::contains(const std::string& key) const {
  const Implementation::Lock lock(*implementation_);
  return implementation_->entries.contains(key);
}

void RelationCache::pin(const std::string& key, bool pinned) {
  using Entry = Implementation::Entry;
  implementation_->with(
      key, [&](Entry& entry) { implementation_->mark(entry, &Entry::pinned, &Implementation::Unit::pinned, pinned); });
}

void RelationCache::soon(const std::string& key) {
  using Entry = Implementation::Entry;
  implementation_->with(key, [&](Entry& entry) {
    implementation_->mark(entry, &Entry::done, &Implementation::Unit::done, false);
    implementation_->mark(entry, &Entry::soon, &Implementation::Unit::soon, true);
  });
}

void RelationCache::done(const std::string& key) {
  using Entry = Implementation::Entry;
  implementation_->with(key, [&](Entry& entry) {
    implementation_->mark(entry, &Entry::soon, &Implementation::Unit::soon, false);
    implementation_->mark(entry, &Entry::done, &Implementation::Unit::done, true);
  });
}

void RelationCache::flush(const std::string& key) {
  implementation_->with(key, [&](auto& entry) { implementation_->flush(implementation_->units.find(entry.unit)); });
}

void RelationCache::flush_all() {
  const Implementation::Lock lock(*implementation_);
  while (!implementation_->units.empty()) implementation_->flush(implementation_->units.begin());
}

void RelationCache::erase(const std::string& key, const std::string& group) {
  Implementation::Lock lock(*implementation_);
  implementation_->forget(lock, key, unit_name(key, group));
}

CacheStatistics RelationCache::statistics() const {
  const Implementation::Lock lock(*implementation_);
  auto counts = implementation_->counts;
  counts.relations = Index(implementation_->entries.size());
  for (const auto& [name, unit] : implementation_->units) {
    counts.groups += unit.facts.group;
    if (unit.pinned > 0) counts.pinned_bytes += unit.facts.bytes;
  }
  counts.bytes = implementation_->bytes;
  counts.ceiling_bytes = implementation_->ceiling;
  return counts;
}

std::vector<CacheEntry> RelationCache::entries() const {
  const Implementation::Lock lock(*implementation_);
  std::vector<CacheEntry> list;
  for (const auto& [key, entry] : implementation_->entries) {
    const auto& encoding = entry.relation->encoding();
    const auto group = entry.unit[0] == 'g' ? entry.unit.substr(1) : std::string();
    list.push_back({key, group, encoding.kind(), entry.relation->kept(), encoding.elements(), entry.bytes, entry.uses,
                    entry.make_ns, entry.pinned, entry.soon, entry.done});
  }
  std::sort(list.begin(), list.end(), [](const CacheEntry& a, const CacheEntry& b) { return a.key < b.key; });
  return list;
}

std::string RelationCache::policy_name() const { return std::string(implementation_->policy->name()); }

}  // namespace longshore

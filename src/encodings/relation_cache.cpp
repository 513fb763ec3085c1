#include "longshore/encodings/relation_cache.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "encodings/cache_record.hpp"
#include "encodings/cached_units.hpp"

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

[[noreturn]] void refuse_call() {
  throw Error(ErrorKind::argument, "a cache's policy and its store may not call the cache");
}

}  // namespace

CachedRelation::CachedRelation(Encoding encoding, KeptProgram kept)
    : encoding_(std::move(encoding)),
      compiled_(compile(encoding_, kept)),
      bytes_(Index(sizeof *this) + encoding_.encoded_bytes() + std::visit(Workspace(), compiled_)) {}

struct RelationCache::Implementation {
  using Entry = CachedUnits::Entry;
  using Unit = CachedUnits::Unit;

  /// A relation that a thread makes.
  struct Making {
    std::thread::id maker;
    bool over = false;
    CachedPointer result;  ///< null where the maker threw
  };

  /// The mutex, refused to a policy or a store that calls back: it would wait for itself.
  class Lock : public std::unique_lock<std::mutex> {
   public:
    explicit Lock(Implementation& cache) : std::unique_lock<std::mutex>(cache.mutex, std::defer_lock) {
      if (cache.kept.is_inside()) refuse_call();
      lock();
    }
  };

  std::mutex mutex;
  std::condition_variable changed;  ///< a making or a restoring is over
  CachedUnits kept;
  std::unordered_map<std::string, std::shared_ptr<Making>> makings;  ///< by key
  std::unordered_map<std::string, std::thread::id> restoring;        ///< units, and who restores them
  std::unordered_map<std::thread::id, const Making*> waiting;        ///< threads, and what each waits for

  Implementation(Index ceiling_bytes, std::shared_ptr<EvictionPolicy> policy, std::shared_ptr<BackingStore> store)
      : kept(ceiling_bytes, std::move(policy), std::move(store)) {}

  /// Waits for another thread's making. Throws where that thread waits for this one.
  void wait_for(Lock& lock, const Making& making, const std::string& key) {
    const auto me = std::this_thread::get_id();
    for (const Making* other = &making;;) {
      if (other->maker == me)
        throw Error(ErrorKind::argument,
                    "the maker of '" + key + "' needs, perhaps through others, the relation that it makes");
      const auto at = waiting.find(other->maker);
      if (at == waiting.end() || at->second->over) break;
      other = at->second;
    }
    waiting[me] = &making;
    changed.wait(lock, [&] { return making.over; });
    waiting.erase(me);
  }

  void wait_restored(Lock& lock, const std::string& name) {
    for (auto at = restoring.find(name); at != restoring.end(); at = restoring.find(name)) {
      if (at->second == std::this_thread::get_id()) refuse_call();
      changed.wait(lock);
    }
  }

  CachedPointer look_up(const std::string& key, const Maker* maker, const CacheHint& hint) {
    const auto name = unit_name(key, hint.group);
    Lock lock(*this);
    for (bool tried = false;;) {
      if (auto* entry = kept.find(key)) {
        ++kept.counts.hits;
        const auto relation = entry->relation;
        kept.used(*entry);
        return relation;
      }
      if (const auto at = makings.find(key); at != makings.end()) {
        const auto making = at->second;
        wait_for(lock, *making, key);
        if (!making->result) continue;
        ++kept.counts.hits;
        if (auto* entry = kept.find(key)) kept.used(*entry);
        return making->result;
      }
      if (restoring.contains(name)) {
        wait_restored(lock, name);
        continue;
      }
      if (!kept.store || tried || kept.units().contains(name)) break;
      tried = true;
      if (auto found = restore(lock, key, name, hint)) return found;
    }
    ++kept.counts.misses;
    return maker ? make(lock, key, name, *maker, hint) : nullptr;
  }

  CachedPointer make(Lock& lock, const std::string& key, const std::string& name, const Maker& maker,
                     const CacheHint& hint) {
    const auto making = std::make_shared<Making>();
    making->maker = std::this_thread::get_id();
    makings[key] = making;
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
    makings.erase(key);
    making->over = true, making->result = relation;
    changed.notify_all();
    if (error) std::rethrow_exception(error);
    if (kept.keep(key, name, relation, hint, std::chrono::duration<double, std::nano>(stop - start).count()))
      kept.used(*kept.find(key));
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
      const auto record = kept.store->load(name);
      if (record) damaged = !read_cache_record(*record, name, members);
      if (damaged) kept.store->remove(name);
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
    kept.counts.damaged += damaged, kept.counts.store_failures += failed;
    if (error) std::rethrow_exception(error);

    CachedPointer result;
    bool whole = true;
    for (const auto& [member, relation] : all) {
      const bool asked = member->key == key;
      if (kept.find(member->key) || makings.contains(member->key)) continue;
      const bool fits = kept.keep(member->key, name, relation, asked ? hint : CacheHint(), member->make_ns);
      whole = whole && fits;
      kept.counts.restores += fits || asked;
      if (!asked) continue;
      result = relation;
      if (fits) kept.used(*kept.find(key));
    }
    if (const auto unit = kept.units().find(name); unit != kept.units().end())
      kept.set_saved(name, whole && unit->second.keys.size() == all.size());
    return result;
  }

  /// Waits until nobody makes or restores the key, and forgets it.
  void forget(Lock& lock, const std::string& key, const std::string& name) {
    for (;;) {
      const auto* entry = kept.find(key);
      const std::string old = entry ? entry->unit : name;
      if (const auto at = makings.find(key); at != makings.end()) {
        const auto making = at->second;
        wait_for(lock, *making, key);
      } else if (restoring.contains(name)) {
        wait_restored(lock, name);
      } else {
        kept.drop(key);
        kept.forget_record(name);
        if (old != name) kept.forget_record(old);
        return kept.set_saved(old, false);
      }
    }
  }

  /// Calls f(entry) if the key is kept.
  template <class F>
  void with(const std::string& key, F&& f) {
    const Lock lock(*this);
    if (auto* entry = kept.find(key)) f(*entry);
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
  return implementation_->kept.keep(key, name, relation, hint, make_ns);
}

bool RelationCache::contains(const std::string& key) const {
  const Implementation::Lock lock(*implementation_);
  return implementation_->kept.find(key) != nullptr;
}

void RelationCache::pin(const std::string& key, bool pinned) {
  using Entry = Implementation::Entry;
  implementation_->with(key, [&](Entry& entry) {
    implementation_->kept.mark(entry, &Entry::pinned, &Implementation::Unit::pinned, pinned);
  });
}

void RelationCache::soon(const std::string& key) {
  using Entry = Implementation::Entry;
  implementation_->with(key, [&](Entry& entry) {
    implementation_->kept.mark(entry, &Entry::done, &Implementation::Unit::done, false);
    implementation_->kept.mark(entry, &Entry::soon, &Implementation::Unit::soon, true);
  });
}

void RelationCache::done(const std::string& key) {
  using Entry = Implementation::Entry;
  implementation_->with(key, [&](Entry& entry) {
    implementation_->kept.mark(entry, &Entry::soon, &Implementation::Unit::soon, false);
    implementation_->kept.mark(entry, &Entry::done, &Implementation::Unit::done, true);
  });
}

void RelationCache::flush(const std::string& key) {
  implementation_->with(key, [&](auto& entry) { implementation_->kept.flush(entry.unit); });
}

void RelationCache::flush_all() {
  const Implementation::Lock lock(*implementation_);
  auto& kept = implementation_->kept;
  while (!kept.units().empty()) kept.flush(kept.units().begin()->first);
}

void RelationCache::erase(const std::string& key, const std::string& group) {
  Implementation::Lock lock(*implementation_);
  implementation_->forget(lock, key, unit_name(key, group));
}

CacheStatistics RelationCache::statistics() const {
  const Implementation::Lock lock(*implementation_);
  const auto& kept = implementation_->kept;
  auto counts = kept.counts;
  counts.relations = Index(kept.entries().size());
  for (const auto& [name, unit] : kept.units()) {
    counts.groups += unit.facts.group;
    if (unit.pinned > 0) counts.pinned_bytes += unit.facts.bytes;
  }
  counts.bytes = kept.bytes();
  counts.ceiling_bytes = kept.ceiling;
  return counts;
}

std::vector<CacheEntry> RelationCache::entries() const {
  const Implementation::Lock lock(*implementation_);
  std::vector<CacheEntry> list;
  for (const auto& [key, entry] : implementation_->kept.entries()) {
    const auto& encoding = entry.relation->encoding();
    const auto group = entry.unit[0] == 'g' ? entry.unit.substr(1) : std::string();
    list.push_back({key, group, encoding.kind(), entry.relation->kept(), encoding.elements(), entry.bytes, entry.uses,
                    entry.make_ns, entry.pinned, entry.soon, entry.done});
  }
  std::sort(list.begin(), list.end(), [](const CacheEntry& a, const CacheEntry& b) { return a.key < b.key; });
  return list;
}

std::string RelationCache::policy_name() const { return std::string(implementation_->kept.policy->name()); }

}  // namespace longshore

#include "encodings/cached_units.hpp"

#include <algorithm>

#include "encodings/cache_record.hpp"

namespace longshore {

CachedUnits::CachedUnits(Index ceiling_bytes, std::shared_ptr<EvictionPolicy> given,
                         std::shared_ptr<BackingStore> backing)
    : ceiling(ceiling_bytes), policy(given ? std::move(given) : eviction_policy("lru")), store(std::move(backing)) {
  if (ceiling < 0) throw Error(ErrorKind::argument, "a cache cannot hold " + std::to_string(ceiling) + " bytes");
}

CachedUnits::Entry* CachedUnits::find(const std::string& key) {
  const auto at = entries_.find(key);
  return at == entries_.end() ? nullptr : &at->second;
}

void CachedUnits::touch(Unit& unit) {
  unit.facts.last_use = ++operations_;
  const Inside guard(*this);
  policy->touched(unit.facts);
}

void CachedUnits::mark(Entry& entry, bool Entry::*flag, Index Unit::*count, bool value) {
  if (entry.*flag == value) return;
  entry.*flag = value;
  units_.at(entry.unit).*count += value ? 1 : -1;
}

void CachedUnits::used(Entry& entry) {
  ++entry.uses;
  mark(entry, &Entry::soon, &Unit::soon, false);
  mark(entry, &Entry::done, &Unit::done, entry.uses == entry.expected_uses);
  auto& unit = units_.at(entry.unit);
  ++unit.facts.uses;
  touch(unit);
}

bool CachedUnits::keep(const std::string& key, const std::string& name, const CachedPointer& relation,
                       const CacheHint& hint, double make_ns) {
  const Index size = relation->bytes() + Index(key.size());
  counts.largest_bytes = std::max(counts.largest_bytes, size);
  if (!make_room(size, name)) {
    ++counts.not_kept;
    return false;
  }
  // What needs memory comes first, so that a cache which gets none is as it was.
  std::string label = name.substr(1);
  std::set<std::string> one{key};
  Entry made{relation, name, size, make_ns, 0, hint.expected_uses, false, false, false};
  const auto at = units_.try_emplace(name).first;
  auto& unit = at->second;
  try {
    entries_.insert_or_assign(key, std::move(made));
  } catch (...) {
    if (unit.keys.empty()) units_.erase(at);
    throw;
  }
  auto& entry = entries_.find(key)->second;
  if (unit.keys.empty())
    unit.facts.name = std::move(label), unit.facts.group = name[0] == 'g', unit.facts.stored = operations_ + 1;
  unit.keys.merge(one);
  unit.facts.relations += 1, unit.facts.bytes += size, unit.facts.make_ns += make_ns;
  unit.saved = false;
  mark(entry, &Entry::pinned, &Unit::pinned, hint.pin);
  mark(entry, &Entry::soon, &Unit::soon, hint.soon);
  bytes_ += size;
  counts.most_bytes = std::max(counts.most_bytes, bytes_);
  touch(unit);
  return true;
}

void CachedUnits::drop(const std::string& key) {
  const auto at = entries_.find(key);
  if (at == entries_.end()) return;
  auto& entry = at->second;
  const auto unit = units_.find(entry.unit);
  for (const auto& [flag, count] : {std::pair(&Entry::pinned, &Unit::pinned), std::pair(&Entry::soon, &Unit::soon),
                                    std::pair(&Entry::done, &Unit::done)})
    mark(entry, flag, count, false);
  auto& facts = unit->second.facts;
  facts.relations -= 1, facts.bytes -= entry.bytes, facts.make_ns -= entry.make_ns, facts.uses -= entry.uses;
  bytes_ -= entry.bytes;
  unit->second.keys.erase(key);
  unit->second.saved = false;
  if (unit->second.keys.empty()) units_.erase(unit);
  entries_.erase(at);
}

/// Flushes until so many bytes more fit; a unit does not make room for its
/// own relations. False, with nothing flushed, where that is not possible.
bool CachedUnits::make_room(Index wanted, const std::string& name) {
  Index held = 0;
  for (const auto& [other, unit] : units_)
    if (unit.pinned > 0 || other == name) held += unit.facts.bytes;
  if (wanted > ceiling - held) return false;
  while (bytes_ > ceiling - wanted) {
    int rank = 3;
    std::vector<const FlushUnit*> candidates;
    std::vector<UnitPosition> positions;
    for (auto at = units_.begin(); at != units_.end(); ++at) {
      const auto& unit = at->second;
      if (unit.pinned > 0 || at->first == name || unit.rank() > rank) continue;
      if (unit.rank() < rank) rank = unit.rank(), candidates.clear(), positions.clear();
      candidates.push_back(&unit.facts), positions.push_back(at);
    }
    flush(positions[choose(candidates)]);
  }
  return true;
}

std::size_t CachedUnits::choose(std::span<const FlushUnit* const> candidates) {
  const Inside guard(*this);
  const std::size_t k = policy->victim(candidates);
  if (k >= candidates.size())
    throw Error(ErrorKind::argument, "the policy " + std::string(policy->name()) + " chose unit " + std::to_string(k) +
                                         " of " + std::to_string(candidates.size()));
  return k;
}

void CachedUnits::flush(UnitPosition at) {
  auto& unit = at->second;
  if (store && !unit.saved) {
    std::vector<CacheRecordMember> members;
    for (const auto& key : unit.keys) {
      const auto& entry = entries_.at(key);
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
  for (const auto& key : unit.keys) entries_.erase(key);
  counts.evictions += unit.facts.relations;
  bytes_ -= unit.facts.bytes;
  units_.erase(at);
}

void CachedUnits::forget_record(const std::string& name) {
  if (!store) return;
  try {
    const Inside guard(*this);
    store->remove(name);
  } catch (const Error&) {
    ++counts.store_failures;
  }
}

void CachedUnits::flush(const std::string& name) { flush(units_.find(name)); }

void CachedUnits::set_saved(const std::string& name, bool saved) {
  if (const auto at = units_.find(name); at != units_.end()) at->second.saved = saved;
}

}  // namespace longshore

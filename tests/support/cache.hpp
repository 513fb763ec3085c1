/// Relations to fill a cache with: each tells by its offsets which key it was made for.
#pragma once

#include <map>
#include <mutex>

#include "longshore/encodings/relation_cache.hpp"

namespace longshore::test {

/// `pairs` scattered pairs, so that the encoding has bytes in proportion; `id` stands in the first source offset.
inline AddressRelation relation_of(Index id, Index pairs = 10) {
  std::vector<OffsetPair> list;
  for (Index k = 0; k < pairs; ++k) list.push_back({id * 8 + k * k * 8, (pairs - k) * 40 + k * k % 7});
  return AddressRelation::from_pairs(1, list);
}

inline Encoding encoding_of(Index id, Index pairs = 10) {
  return Encoding(relation_of(id, pairs), EncodingKind::aapair);
}

inline Index id_of(const CachedPointer& relation) { return relation->encoding().decode().at(0).source / 8; }

/// What a cache counts for such a relation.
inline Index cached_bytes(Index pairs, std::size_t key_bytes) {
  return Index(sizeof(CachedRelation)) + 16 * pairs + Index(key_bytes);
}

/// Records in memory.
struct MemoryStore : BackingStore {
  void save(const std::string& name, std::span<const std::byte> record) override {
    const std::lock_guard lock(mutex);
    if (fails) throw Error(ErrorKind::transport, "the store is full");
    records[name].assign(record.begin(), record.end());
  }
  std::optional<std::vector<std::byte>> load(const std::string& name) override {
    const std::lock_guard lock(mutex);
    if (fails) throw Error(ErrorKind::transport, "the store cannot be read");
    const auto at = records.find(name);
    return at == records.end() ? std::nullopt : std::optional(at->second);
  }
  void remove(const std::string& name) override {
    const std::lock_guard lock(mutex);
    records.erase(name);
  }
  std::mutex mutex;
  std::map<std::string, std::vector<std::byte>> records;
  bool fails = false;
};

}  // namespace longshore::test

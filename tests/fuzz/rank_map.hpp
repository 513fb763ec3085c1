/// Bytes from outside as a stored rank map: refused in words, or a map that answers for itself.
#pragma once

#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>

#include "longshore/ranks/rank_map.hpp"
#include "support/memory.hpp"

namespace longshore::test {

/// The checksum at the end put right, so that what is behind it is looked at.
inline void seal_rank_map(Bytes& bytes) {
  if (bytes.size() < 16 || bytes.size() % 8 != 0) return;
  std::uint64_t hash = 14695981039346656037u;
  for (std::size_t k = 0; k + 8 < bytes.size(); k += 8) {
    std::uint64_t word;
    std::memcpy(&word, &bytes[k], 8);
    hash = (hash ^ word) * 1099511628211u;
    hash ^= hash >> 32;
  }
  std::memcpy(&bytes[bytes.size() - 8], &hash, 8);
}

/// Whether the bytes were a map; ends the program where one does not hold together.
inline bool check_rank_map(std::span<const std::byte> bytes) {
  constexpr Index most = 1 << 16;
  std::optional<RankMap> read;
  try {
    read = RankMap::from_bytes(bytes, most);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::argument) std::abort();
    return false;
  }
  // What was read is a map like any other: an error from here on ends the program.
  const auto& map = *read;
  std::string reason;
  if (map.size() > most || !map.validate(reason)) std::abort();
  if (map.empty() && (map.rank(0) != nobody || !map.ascending())) std::abort();
  const auto members = map.to_vector();
  for (Index i = 0; i < map.size(); i += 1 + map.size() / 64) {
    if (map.select(i) != members[std::size_t(i)]) std::abort();
    if (members[std::size_t(i)] < 0 || members[std::size_t(i)] >= map.world()) std::abort();
    if (map.ascending() && map.rank(members[std::size_t(i)]) != i) std::abort();
  }
  if (map.empty() && map.with_lookup(LookupKind::hash).rank(0) != nobody) std::abort();
  if (RankMap::from_bytes(map.to_bytes(), most) != map) std::abort();
  return true;
}

}  // namespace longshore::test

/// Bytes from outside as a stored rank map: refused in words, or a map that answers for itself.
#pragma once

#include <cstdlib>
#include <optional>
#include <span>

#include "longshore/ranks/rank_map.hpp"
#include "support/memory.hpp"
#include "support/seal.hpp"

namespace longshore::test {

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

/// How a cache writes down what it flushes: a unit's relations with their keys, in one record that proves itself whole.
#pragma once

#include "longshore/encodings/relation_cache.hpp"

namespace longshore {

struct CacheRecordMember {
  std::string key;
  KeptProgram kept;
  double make_ns;
  Encoding encoding;
};

std::vector<std::byte> write_cache_record(const std::string& name, std::span<const CacheRecordMember> members);

/// False, and no members, where the bytes are no record of this unit or do not hold together.
bool read_cache_record(std::span<const std::byte> bytes, const std::string& name,
                       std::vector<CacheRecordMember>& members);

}  // namespace longshore

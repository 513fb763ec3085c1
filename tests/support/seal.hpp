/// The checksum of a stored value, put right again after a change: what a stranger would do.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace longshore::test {

/// From its definition: FNV-1a over the number of bytes before it and over their words, the last one filled up with
/// zeros, the high bits folded in.
inline void seal(std::span<std::byte> bytes) {
  if (bytes.size() < 8) return;
  std::uint64_t hash = 14695981039346656037u;
  const std::size_t content = bytes.size() - 8;
  auto mix = [&hash](std::uint64_t word) {
    hash = (hash ^ word) * 1099511628211u;
    hash ^= hash >> 32;
  };
  mix(content);
  for (std::size_t k = 0; k < content; k += 8) {
    std::uint64_t word = 0;
    for (std::size_t j = k; j < std::min(k + 8, content); ++j) word |= std::uint64_t(bytes[j]) << 8 * (j - k);
    mix(word);
  }
  for (std::size_t k = 0; k < 8; ++k) bytes[content + k] = std::byte(hash >> 8 * k);
}

}  // namespace longshore::test

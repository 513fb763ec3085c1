/// Digests of numbers and texts, equal on all machines.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "longshore/core/checked.hpp"

namespace longshore {

/// A digest of numbers and texts in their order, equal on all machines: FNV-1a, of numbers one
/// at a time with the high bits folded in. For accidents, not for adversaries.
class Digest {
 public:
  void mix(std::uint64_t x) {
    value_ = (value_ ^ x) * 1099511628211ull;
    value_ ^= value_ >> 32;
  }
  void mix(std::span<const Index> values) {
    for (const Index x : values) mix(std::uint64_t(x));
  }
  void mix(std::string_view text) {
    for (const char c : text) value_ = (value_ ^ std::uint8_t(c)) * 1099511628211ull;
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 14695981039346656037ull;
};

}  // namespace longshore

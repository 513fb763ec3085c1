/// sequences: `FixedIntegers`, unsigned integers of one width in bits, each read or written in a few instructions.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "longshore/core/checked.hpp"

namespace longshore {

static_assert(std::endian::native == std::endian::little, "fields are read with one unaligned load");

/// A list of `size` integers in `width` bits each, one behind the other. At most 57 bits: a field is then within the eight bytes
/// from the byte it begins in. `PackedIntegers` decodes faster from one end to the other; this is for questions here and there.
class FixedIntegers {
 public:
  static constexpr int most_bits = 57;

  FixedIntegers() = default;
  /// Zeros.
  FixedIntegers(Index size, int width);
  /// In as many bits as the largest needs. Throws `Error(argument)` where one is negative or too large.
  static FixedIntegers of(std::span<const Index> values);
  /// Bits that values up to `largest` need.
  static int bits_of(Index largest) { return 64 - std::countl_zero(static_cast<std::uint64_t>(largest)); }
  static Index bytes_of(Index size, int width);

  Index size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int width() const { return width_; }
  /// The caller knows that 0 <= i < size().
  Index operator[](Index i) const {
    const std::uint64_t bit = static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(width_);
    std::uint64_t word;
    std::memcpy(&word, reinterpret_cast<const char*>(words_.data()) + (bit >> 3), sizeof word);
    return static_cast<Index>(word >> (bit & 7) & mask_);
  }
  /// Writes a field once: what was there before must be 0.
  void set(Index i, Index value) {
    const std::uint64_t bit = static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(width_);
    char* at = reinterpret_cast<char*>(words_.data()) + (bit >> 3);
    std::uint64_t word;
    std::memcpy(&word, at, sizeof word);
    word |= static_cast<std::uint64_t>(value) << (bit & 7);
    std::memcpy(at, &word, sizeof word);
  }

  Index memory_bytes() const { return static_cast<Index>(words_.size() * sizeof(std::uint64_t)); }
  /// The fields, and one word more that loads may touch; `from_words` takes them back, and throws `Error(argument)` where they are
  /// not those of `size` fields of `width` bits.
  const std::vector<std::uint64_t>& words() const { return words_; }
  static FixedIntegers from_words(Index size, int width, std::span<const std::uint64_t> words);

  bool operator==(const FixedIntegers&) const = default;

 private:
  static std::size_t words_of(Index size, int width);

  std::vector<std::uint64_t> words_;
  std::uint64_t mask_ = 0;
  Index size_ = 0;
  int width_ = 0;
};

}  // namespace longshore

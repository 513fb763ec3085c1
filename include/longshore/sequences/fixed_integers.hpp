/// sequences: `FixedIntegers`, unsigned integers of one width in bits, each read or written in a few instructions.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "longshore/core/checked.hpp"

namespace longshore {

/// The bits from a bit on, 57 of them or more, the lowest first; and bits of a value put where zeros were.
inline std::uint64_t bits_at(const void* from, std::uint64_t bit) {
  std::uint64_t word;
  std::memcpy(&word, static_cast<const char*>(from) + (bit >> 3), sizeof word);
  return word >> (bit & 7);
}
inline void put_bits(void* to, std::uint64_t bit, std::uint64_t value) {
  char* at = static_cast<char*>(to) + (bit >> 3);
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  word |= value << (bit & 7);
  std::memcpy(at, &word, sizeof word);
}

/// A list of `size` integers in `width` bits each, one behind the other. At most 57 bits: a field is then within the
/// eight bytes from the byte it begins in. `PackedIntegers` decodes faster from one end to the other; this is for
/// questions here and there. It is 16 bytes itself, for what holds small lists has several of them.
class FixedIntegers {
 public:
  static constexpr int most_bits = 57;

  FixedIntegers() = default;
  /// Zeros. Throws `Error(argument)` where there cannot be so many, or they are too wide.
  FixedIntegers(Index size, int width);
  FixedIntegers(const FixedIntegers& other);
  FixedIntegers(FixedIntegers&& other) noexcept { swap(other); }
  FixedIntegers& operator=(FixedIntegers other) noexcept { return swap(other), *this; }
  /// In as many bits as the largest needs. Throws `Error(argument)` where one is negative or too large.
  static FixedIntegers of(std::span<const Index> values);
  /// Bits that values up to `largest` need.
  static int bits_of(Index largest) { return 64 - std::countl_zero(static_cast<std::uint64_t>(largest)); }
  static Index bytes_of(Index size, int width);

  Index size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int width() const { return static_cast<int>(width_); }
  /// The caller knows that 0 <= i < size().
  Index operator[](Index i) const {
    return static_cast<Index>(bits_at(words_.get(), bit_of(i)) & ((std::uint64_t{1} << width_) - 1));
  }
  /// Writes a field once: what was there before must be 0.
  void set(Index i, Index value) { put_bits(words_.get(), bit_of(i), static_cast<std::uint64_t>(value)); }

  Index memory_bytes() const { return static_cast<Index>(words().size_bytes()); }
  /// The fields, and one word more that loads may touch; `from_words` takes them back, and throws `Error(argument)`
  /// where they are not those of `size` fields of `width` bits.
  std::span<const std::uint64_t> words() const { return {words_.get(), words_ ? words_of(size_, width()) : 0}; }
  static FixedIntegers from_words(Index size, int width, std::span<const std::uint64_t> words);

  bool operator==(const FixedIntegers& other) const;

 private:
  static constexpr int size_bits = 56;
  static std::size_t words_of(Index size, int width) {
    return static_cast<std::size_t>(ceil_div(size * width, 64)) + 1;
  }
  std::uint64_t bit_of(Index i) const { return static_cast<std::uint64_t>(i) * width_; }
  void swap(FixedIntegers& other) noexcept;

  std::unique_ptr<std::uint64_t[]> words_;
  Index size_ : size_bits = 0;
  std::uint64_t width_ : 64 - size_bits = 0;
};

}  // namespace longshore

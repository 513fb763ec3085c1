/// sequences: `Bitmap`, bits with a directory that counts (rank) and finds (select) ones and zeros.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "longshore/core/checked.hpp"

namespace longshore {

struct BitOps;

/// Bits with, for each 512 of them, the number of ones before (6 % more), and the place of each 1024th one and, where
/// they are to be found, zero. Immutable. At most 2^32 - 1 ones and as many zeros: a count takes 32 bits.
class Bitmap {
 public:
  enum class Find { ones, both };

  Bitmap() : Bitmap({}, 0, Find::ones) {}
  /// The first `bits` bits of the words, the lowest bit of a word
  /// first; bits behind them must be 0. Throws `Error(argument)`.
  Bitmap(std::vector<std::uint64_t> words, Index bits, Find find);
  static constexpr Index most = (Index{1} << 32) - 1;  ///< ones, and zeros where they are to be found
  static Index words_of(Index bits) {
    return ceil_div(bits, block_bits) * block_words;
  }  ///< what words() has, whole blocks
  static Index bytes_of(Index bits, Index ones, Find find);

  Index size() const { return bits_; }
  Index ones() const { return ones_; }
  Index zeros() const { return bits_ - ones_; }
  bool test(Index i) const { return words_[static_cast<std::size_t>(i >> 6)] >> (i & 63) & 1; }
  /// Ones in [0, i), 0 <= i <= size().
  Index rank(Index i) const;
  /// Where one number k is, 0 <= k < ones(); and zero number k, where those can be found.
  Index select(Index k) const;
  Index select_zero(Index k) const;
  const std::vector<std::uint64_t>& words() const { return words_; }

  Index memory_bytes() const;
  bool operator==(const Bitmap& other) const { return bits_ == other.bits_ && words_ == other.words_; }

 private:
  static constexpr Index block_bits = 512, block_words = block_bits / 64, sample = 1024;

  Index blocks() const { return ceil_div(bits_, block_bits); }
  // The parts of counts_: ones before each block, and before the
  // end; the block of each 1024th one or zero, and the last block.
  const std::uint32_t* before() const { return counts_.data(); }
  const std::uint32_t* one_at() const { return before() + blocks() + 1; }
  const std::uint32_t* zero_at() const { return one_at() + ceil_div(ones_, sample) + 1; }

  std::vector<std::uint64_t> words_;  ///< whole blocks
  std::vector<std::uint32_t> counts_;
  Index bits_ = 0, ones_ = 0;
  const BitOps* ops_;
};

}  // namespace longshore

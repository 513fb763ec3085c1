/// Counting and finding ones in a few words, with the instructions that this machine has.
#pragma once

#include <cstdint>

namespace longshore {

struct BitOps {
  /// The ones in the first `bits` bits, at most 512.
  int (*count)(const std::uint64_t* words, int bits);
  /// Where one number `k` is, counted from 0, in 512 bits that have more than k ones.
  int (*select)(const std::uint64_t* words, int k);
  /// Where one number `k` of a word is, which has more than k.
  int (*in_word)(std::uint64_t word, int k);
  /// As `select`, for the zeros.
  int (*select_zero)(const std::uint64_t* words, int k);
};

/// For this machine: with POPCNT and PDEP, or without.
const BitOps& bit_ops();
/// The twin without special instructions.
const BitOps& plain_bit_ops();

}  // namespace longshore

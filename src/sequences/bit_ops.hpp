/// Counting and finding ones in a few words, with the instructions that this machine has.
#pragma once

#include <cstdint>
#include <vector>

namespace longshore {

/// A bitmap's words, and the ones before each block of 512 bits.
struct CountedBits {
  const std::uint64_t* words;
  const std::uint32_t* before;
};

struct BitOps {
  /// The ones in the first `bits` bits of 512.
  int (*count)(const std::uint64_t* words, int bits);
  /// Where one or zero number k is, which is in a block of [low, high].
  std::int64_t (*find_one)(CountedBits bits, std::int64_t k, std::int64_t low, std::int64_t high);
  std::int64_t (*find_zero)(CountedBits bits, std::int64_t k, std::int64_t low, std::int64_t high);
  /// Where one number `k` is in 512 bits, or in a word, which have more than k.
  int (*select)(const std::uint64_t* words, int k);
  int (*in_word)(std::uint64_t word, int k);
};

/// Those that this machine can carry out: without special instructions, which
/// is the twin of the others; with POPCNT and PDEP; with AVX-512's counts.
std::vector<const BitOps*> all_bit_ops();
/// The last of them.
const BitOps& bit_ops();

}  // namespace longshore

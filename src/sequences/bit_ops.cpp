#include "sequences/bit_ops.hpp"

#include <bit>

#if defined(__x86_64__)
#include <immintrin.h>
#define LONGSHORE_BIT_OPS_X86 1
#else
#define LONGSHORE_BIT_OPS_X86 0
#endif

namespace longshore {
namespace {

// One body; each set of functions below compiles it for its own instructions.

[[gnu::always_inline]] inline int count_body(const std::uint64_t* words, int bits) {
  int ones = 0;
  for (; bits >= 64; bits -= 64) ones += std::popcount(*words++);
  return bits == 0 ? ones : ones + std::popcount(*words & ((std::uint64_t{1} << bits) - 1));
}

/// Which of eight words holds number k, and how many come before it there; no branch depends on the data.
template <class InWord>
[[gnu::always_inline]] inline int select_body(const std::uint64_t* words, int k, std::uint64_t flip, InWord in_word) {
  int before = 0, ones = 0, at = 0;
  for (int w = 0; w < 7; ++w) {
    ones += std::popcount(words[w] ^ flip);
    const bool beyond = ones <= k;
    at += beyond;
    before = beyond ? ones : before;
  }
  return 64 * at + in_word(words[at] ^ flip, k - before);
}

inline int plain_in_word(std::uint64_t word, int k) {
  int at = 0;
  for (int half = 32; half > 0; half /= 2) {
    const int ones = std::popcount(word & ((std::uint64_t{1} << half) - 1));
    if (k < ones) continue;
    k -= ones, at += half, word >>= half;
  }
  return at;
}

int plain_count(const std::uint64_t* words, int bits) { return count_body(words, bits); }
int plain_select(const std::uint64_t* words, int k) { return select_body(words, k, 0, plain_in_word); }
int plain_select_zero(const std::uint64_t* words, int k) { return select_body(words, k, ~std::uint64_t{0}, plain_in_word); }

constexpr BitOps plain{plain_count, plain_select, plain_in_word, plain_select_zero};

#if LONGSHORE_BIT_OPS_X86
#define LONGSHORE_BMI __attribute__((target("popcnt,bmi,bmi2")))

LONGSHORE_BMI inline int bmi_in_word(std::uint64_t word, int k) {
  return std::countr_zero(_pdep_u64(std::uint64_t{1} << k, word));
}
LONGSHORE_BMI int bmi_count(const std::uint64_t* words, int bits) { return count_body(words, bits); }
LONGSHORE_BMI int bmi_select(const std::uint64_t* words, int k) { return select_body(words, k, 0, bmi_in_word); }
LONGSHORE_BMI int bmi_select_zero(const std::uint64_t* words, int k) {
  return select_body(words, k, ~std::uint64_t{0}, bmi_in_word);
}

constexpr BitOps bmi{bmi_count, bmi_select, bmi_in_word, bmi_select_zero};
#endif

const BitOps& choose() {
#if LONGSHORE_BIT_OPS_X86
  if (__builtin_cpu_supports("popcnt") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2")) return bmi;
#endif
  return plain;
}

}  // namespace

const BitOps& plain_bit_ops() { return plain; }

const BitOps& bit_ops() {
  static const BitOps& ops = choose();
  return ops;
}

}  // namespace longshore

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

// Nothing branches on the data, for nobody could predict it.

#define LONGSHORE_INLINE [[gnu::always_inline]] inline

/// The first `bits` bits of a word, where there are so many; none below 0.
LONGSHORE_INLINE std::uint64_t first_bits(std::uint64_t word, int bits) {
  const int kept = bits < 0 ? 0 : bits;
  return kept > 63 ? word : word & ((std::uint64_t{1} << kept) - 1);
}

LONGSHORE_INLINE int count_body(const std::uint64_t* words, int bits) {
  int ones = 0;
  for (int w = 0; w < 8; ++w) ones += std::popcount(first_bits(words[w], bits - 64 * w));
  return ones;
}

/// Halves: which four of eight words, which two of them, which one.
template <class InWord>
LONGSHORE_INLINE int select_body(const std::uint64_t* words, int k, std::uint64_t flip, InWord in_word) {
  int ones[8];
  for (int w = 0; w < 8; ++w) ones[w] = std::popcount(words[w] ^ flip);
  const int pairs[4] = {ones[0] + ones[1], ones[2] + ones[3], ones[4] + ones[5], ones[6] + ones[7]};
  int w = 0;
  auto step = [&](int here, int by) __attribute__((always_inline)) {
    const int beyond = k >= here;
    k -= here & -beyond;
    w += by & -beyond;
  };
  step(pairs[0] + pairs[1], 4);
  step(pairs[w / 2], 2);
  step(ones[w], 1);
  return 64 * w + in_word(words[w] ^ flip, k);
}

template <bool One, class InWord>
LONGSHORE_INLINE std::int64_t find_body(CountedBits bits, std::int64_t k, std::int64_t low, std::int64_t high, InWord in_word) {
  auto before = [&](std::int64_t b) __attribute__((always_inline)) {
    return One ? std::int64_t(bits.before[b]) : 512 * b - std::int64_t(bits.before[b]);
  };
  constexpr std::int64_t near = 4;
  while (high - low > near) {
    const std::int64_t middle = low + (high - low + 1) / 2;
    const bool beyond = before(middle) <= k;
    low = beyond ? middle : low;
    high = beyond ? high : middle - 1;
  }
  std::int64_t b = low;
  for (std::int64_t next = 1; next <= near; ++next) {
    const std::int64_t at = low + next <= high ? low + next : high;
    b += std::int64_t(low + next <= high) & std::int64_t(before(at) <= k);
  }
  return 512 * b + select_body(bits.words + 8 * b, int(k - before(b)), One ? 0 : ~std::uint64_t{0}, in_word);
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

using Place = std::int64_t;

int plain_count(const std::uint64_t* words, int bits) { return count_body(words, bits); }
Place plain_find_one(CountedBits bits, Place k, Place low, Place high) {
  return find_body<true>(bits, k, low, high, plain_in_word);
}
Place plain_find_zero(CountedBits bits, Place k, Place low, Place high) {
  return find_body<false>(bits, k, low, high, plain_in_word);
}
int plain_select(const std::uint64_t* words, int k) { return select_body(words, k, 0, plain_in_word); }

constexpr BitOps plain{plain_count, plain_find_one, plain_find_zero, plain_select, plain_in_word};

#if LONGSHORE_BIT_OPS_X86
#define LONGSHORE_BMI __attribute__((target("popcnt,bmi,bmi2")))

LONGSHORE_BMI inline int bmi_in_word(std::uint64_t word, int k) {
  return std::countr_zero(_pdep_u64(std::uint64_t{1} << k, word));
}
LONGSHORE_BMI int bmi_count(const std::uint64_t* words, int bits) { return count_body(words, bits); }
LONGSHORE_BMI Place bmi_find_one(CountedBits bits, Place k, Place low, Place high) {
  return find_body<true>(bits, k, low, high, bmi_in_word);
}
LONGSHORE_BMI Place bmi_find_zero(CountedBits bits, Place k, Place low, Place high) {
  return find_body<false>(bits, k, low, high, bmi_in_word);
}
LONGSHORE_BMI int bmi_select(const std::uint64_t* words, int k) { return select_body(words, k, 0, bmi_in_word); }

constexpr BitOps bmi{bmi_count, bmi_find_one, bmi_find_zero, bmi_select, bmi_in_word};
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

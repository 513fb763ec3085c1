#include "sequences/bit_ops.hpp"

#include <bit>

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"  // GCC 12's own header of AVX-512 means it so
#endif
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
LONGSHORE_INLINE std::int64_t find_body(CountedBits bits, std::int64_t k, std::int64_t low, std::int64_t high,
                                        InWord in_word) {
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

// A block is a vector: its eight words are counted at once, and sixteen counts of the directory looked at.
#define LONGSHORE_VECTOR __attribute__((target("popcnt,bmi,bmi2,avx512f,avx512vl,avx512vpopcntdq")))

LONGSHORE_VECTOR int vector_count(const std::uint64_t* words, int bits) {
  const __m512i begins = _mm512_setr_epi64(0, 64, 128, 192, 256, 320, 384, 448), none = _mm512_setzero_si512();
  // A shift by 64 or more leaves nothing.
  const __m512i wanted = _mm512_max_epi64(_mm512_sub_epi64(_mm512_set1_epi64(bits), begins), none);
  const __m512i others = _mm512_sllv_epi64(_mm512_set1_epi64(-1), wanted);
  return int(_mm512_reduce_add_epi64(_mm512_popcnt_epi64(_mm512_andnot_si512(others, _mm512_loadu_si512(words)))));
}

LONGSHORE_VECTOR inline int vector_select_body(const std::uint64_t* words, int k, std::uint64_t flip) {
  const __m512i none = _mm512_setzero_si512();
  const __m512i all = _mm512_xor_si512(_mm512_loadu_si512(words), _mm512_set1_epi64(std::int64_t(flip)));
  const __m512i ones = _mm512_popcnt_epi64(all);
  __m512i up_to = _mm512_add_epi64(ones, _mm512_alignr_epi64(ones, none, 7));
  up_to = _mm512_add_epi64(up_to, _mm512_alignr_epi64(up_to, none, 6));
  up_to = _mm512_add_epi64(up_to, _mm512_alignr_epi64(up_to, none, 4));
  const int w = std::popcount(unsigned(_mm512_cmple_epi64_mask(up_to, _mm512_set1_epi64(k))));
  const __m512i before = _mm512_permutexvar_epi64(_mm512_set1_epi64(w), _mm512_sub_epi64(up_to, ones));
  return 64 * w + bmi_in_word(words[w] ^ flip, k - _mm_cvtsi128_si32(_mm512_castsi512_si128(before)));
}
LONGSHORE_VECTOR int vector_select(const std::uint64_t* words, int k) { return vector_select_body(words, k, 0); }

template <bool One>
LONGSHORE_VECTOR inline Place vector_find(CountedBits bits, Place k, Place low, Place high) {
  auto before = [&](Place b) { return One ? Place(bits.before[b]) : 512 * b - Place(bits.before[b]); };
  constexpr Place near = 16;
  while (high - low > near) {
    const Place middle = low + (high - low + 1) / 2;
    const bool beyond = before(middle) <= k;
    low = beyond ? middle : low;
    high = beyond ? high : middle - 1;
  }
  // Counts fit in 32 bits, of zeros too.
  const auto some = __mmask16(_bzhi_u32(0xffff, unsigned(high - low)));
  __m512i counts = _mm512_maskz_loadu_epi32(some, bits.before + low + 1);
  if constexpr (!One) {
    const __m512i lane = _mm512_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
    const __m512i blocks = _mm512_add_epi32(_mm512_set1_epi32(int(std::uint32_t(low))), lane);
    counts = _mm512_sub_epi32(_mm512_slli_epi32(blocks, 9), counts);
  }
  const auto not_beyond = _mm512_mask_cmple_epu32_mask(some, counts, _mm512_set1_epi32(int(std::uint32_t(k))));
  const Place b = low + std::popcount(unsigned(not_beyond));
  return 512 * b + vector_select_body(bits.words + 8 * b, int(k - before(b)), One ? 0 : ~std::uint64_t{0});
}
LONGSHORE_VECTOR Place vector_find_one(CountedBits bits, Place k, Place low, Place high) {
  return vector_find<true>(bits, k, low, high);
}
LONGSHORE_VECTOR Place vector_find_zero(CountedBits bits, Place k, Place low, Place high) {
  return vector_find<false>(bits, k, low, high);
}

constexpr BitOps vector{vector_count, vector_find_one, vector_find_zero, vector_select, bmi_in_word};

bool has_bmi() {
  return __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}
bool has_vectors() {
  return has_bmi() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vpopcntdq");
}
#endif

}  // namespace

std::vector<const BitOps*> all_bit_ops() {
  std::vector<const BitOps*> all{&plain};
#if LONGSHORE_BIT_OPS_X86
  if (has_bmi()) all.push_back(&bmi);
  if (has_vectors()) all.push_back(&vector);
#endif
  return all;
}

const BitOps& bit_ops() {
  static const BitOps& ops = *all_bit_ops().back();
  return ops;
}

}  // namespace longshore

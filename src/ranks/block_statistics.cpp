#include "ranks/block_statistics.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace longshore::ranks {

namespace {

// The compilers' vector types: one text for every instruction set, compiled for each of them below. They are passed by
// reference, for how they would be passed by value depends on the set.
constexpr Index lanes = 8;
typedef double Numbers __attribute__((vector_size(64)));
typedef std::int64_t Integers __attribute__((vector_size(64)));

#define LONGSHORE_INLINE [[gnu::always_inline]] inline

LONGSHORE_INLINE void load(Numbers& out, const double* from) { std::memcpy(&out, from, sizeof out); }

/// A whole block; `Mask` counts down where a comparison holds.
LONGSHORE_INLINE void statistics_body(const double* x, BlockStatistics& out) {
  Numbers last, before, earlier;
  Numbers least_step, largest_step, lowest, highest;
  Integers breaks{}, ones{}, descents{};
  load(last, x), load(before, x - 1);
  least_step = largest_step = last - before;
  lowest = highest = last;
  for (Index k = 0; k < block_members; k += lanes) {
    load(last, x + k), load(before, x + k - 1), load(earlier, x + k - 2);
    const Numbers step = last - before, step_before = before - earlier;
    breaks += step != step_before;
    ones += step == 1.0;
    descents += step <= 0.0;
    least_step = step < least_step ? step : least_step;
    largest_step = step > largest_step ? step : largest_step;
    lowest = last < lowest ? last : lowest;
    highest = last > highest ? last : highest;
  }
  double low_step = least_step[0], high_step = largest_step[0], low = lowest[0], high = highest[0];
  Index n_breaks = 0, n_ones = 0, n_descents = 0;
  for (Index k = 0; k < lanes; ++k) {
    low_step = std::min(low_step, least_step[k]), high_step = std::max(high_step, largest_step[k]);
    low = std::min(low, lowest[k]), high = std::max(high, highest[k]);
    n_breaks -= breaks[k], n_ones -= ones[k], n_descents -= descents[k];
  }
  out = {Index(low_step), Index(high_step), Index(low), Index(high), n_breaks, n_ones, n_descents, 0};
}

/// Highest less lowest residual along a line.
LONGSHORE_INLINE void residual_body(const double* x, float slope, double& range) {
  Numbers at, lowest, highest;
  const Numbers count{0, 1, 2, 3, 4, 5, 6, 7};
  load(at, x);
  lowest = highest = at - count * double(slope);
  for (Index k = lanes; k < block_members; k += lanes) {
    load(at, x + k);
    at -= (count + double(k)) * double(slope);
    lowest = at < lowest ? at : lowest;
    highest = at > highest ? at : highest;
  }
  double low = lowest[0], high = highest[0];
  for (Index k = 1; k < lanes; ++k) low = std::min(low, lowest[k]), high = std::max(high, highest[k]);
  range = high - low;
}

/// Ranks as doubles, and all of their bits.
LONGSHORE_INLINE std::uint64_t load_body(const Index* values, Index n, double* to) {
  // A number of 52 bits is the fraction of a double of known exponent.
  constexpr std::int64_t exponent = std::int64_t{0x433} << 52;
  constexpr double offset = 4503599627370496.0;
  Integers all{};
  Index k = 0;
  for (; k + lanes <= n; k += lanes) {
    Integers ranks;
    std::memcpy(&ranks, values + k, sizeof ranks);
    all |= ranks;
    ranks |= exponent;
    Numbers numbers;
    std::memcpy(&numbers, &ranks, sizeof numbers);
    numbers -= offset;
    std::memcpy(to + k, &numbers, sizeof numbers);
  }
  std::int64_t bits = 0;
  for (Index lane = 0; lane < lanes; ++lane) bits |= all[lane];
  for (; k < n; ++k) bits |= values[k], to[k] = std::bit_cast<double>(values[k] | exponent) - offset;
  return std::uint64_t(bits);
}

/// Whether the line from end to end, whose slope is a float, goes through all values of one step.
bool exact(const BlockStatistics& s) { return s.breaks == 0 && std::abs(s.least_step) < Index{1} << 24; }

int bits(double range) { return 64 - std::countl_zero(std::uint64_t(range)); }

float slope_of(const double* x, Index n) { return n > 1 ? float((x[n - 1] - x[0]) / double(n - 1)) : 0.0f; }

struct Kernel {
  std::uint64_t (*load)(const Index* values, Index n, double* to);
  void (*statistics)(const double* x, BlockStatistics& out);
  void (*residual)(const double* x, float slope, double& range);
};

std::uint64_t baseline_load(const Index* values, Index n, double* to) { return load_body(values, n, to); }
void baseline_statistics(const double* x, BlockStatistics& out) { statistics_body(x, out); }
void baseline_residual(const double* x, float slope, double& range) { residual_body(x, slope, range); }
constexpr Kernel baseline{baseline_load, baseline_statistics, baseline_residual};

#if defined(__x86_64__)
#define LONGSHORE_AVX2 __attribute__((target("avx2")))
#if defined(__clang__)
#define LONGSHORE_AVX512 __attribute__((target("avx512f,avx512dq,avx512vl"), min_vector_width(512)))
#else
#define LONGSHORE_AVX512 __attribute__((target("avx512f,avx512dq,avx512vl,prefer-vector-width=512")))
#endif

LONGSHORE_AVX2 std::uint64_t avx2_load(const Index* values, Index n, double* to) { return load_body(values, n, to); }
LONGSHORE_AVX2 void avx2_statistics(const double* x, BlockStatistics& out) { statistics_body(x, out); }
LONGSHORE_AVX2 void avx2_residual(const double* x, float slope, double& range) { residual_body(x, slope, range); }
constexpr Kernel avx2{avx2_load, avx2_statistics, avx2_residual};

LONGSHORE_AVX512 std::uint64_t avx512_load(const Index* values, Index n, double* to) {
  return load_body(values, n, to);
}
LONGSHORE_AVX512 void avx512_statistics(const double* x, BlockStatistics& out) { statistics_body(x, out); }
LONGSHORE_AVX512 void avx512_residual(const double* x, float slope, double& range) { residual_body(x, slope, range); }
constexpr Kernel avx512{avx512_load, avx512_statistics, avx512_residual};
#endif

const Kernel& kernel() {
  static const Kernel& chosen = []() -> const Kernel& {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
      return avx512;
    if (__builtin_cpu_supports("avx2")) return avx2;
#endif
    return baseline;
  }();
  return chosen;
}

}  // namespace

bool BlockValues::load(const Index* values, Index n) { return kernel().load(values, n, x + before) >> 52 == 0; }

BlockStatistics plain_block_statistics(const BlockValues& values, Index n) {
  const double* x = values.x + BlockValues::before;
  BlockStatistics out{Index(x[0] - x[-1]), Index(x[0] - x[-1]), Index(x[0]), Index(x[0]), 0, 0, 0, 0};
  for (Index k = 0; k < n; ++k) {
    const double step = x[k] - x[k - 1];
    out.breaks += step != x[k - 1] - x[k - 2], out.ones += step == 1, out.descents += step <= 0;
    out.least_step = std::min(out.least_step, Index(step)), out.largest_step = std::max(out.largest_step, Index(step));
    out.lowest = std::min(out.lowest, Index(x[k])), out.highest = std::max(out.highest, Index(x[k]));
  }
  if (exact(out)) return out;
  const float slope = slope_of(x, n);
  double low = x[0], high = x[0];
  for (Index k = 0; k < n; ++k) {
    const double rest = x[k] - double(k) * double(slope);
    low = std::min(low, rest), high = std::max(high, rest);
  }
  out.width = std::min(bits(double(out.highest - out.lowest)), bits(high - low));
  return out;
}

BlockStatistics block_statistics(BlockValues& values, Index n) {
  if (n < block_members) return plain_block_statistics(values, n);
  const double* x = values.x + BlockValues::before;
  BlockStatistics out;
  kernel().statistics(x, out);
  if (exact(out)) return out;
  double range;
  kernel().residual(x, slope_of(x, n), range);
  out.width = std::min(bits(double(out.highest - out.lowest)), bits(range));
  return out;
}

}  // namespace longshore::ranks

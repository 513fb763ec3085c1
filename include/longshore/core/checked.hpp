/// Checked 64-bit arithmetic: sizes, counts and offsets never wrap; they throw `Error(overflow)`.
#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include "longshore/core/error.hpp"

namespace longshore {

static_assert(std::endian::native == std::endian::little,
              "Longshore runs on little-endian machines only: what it packs and stores is read as it lies in memory");

/// Every size, count, index and offset.
using Index = std::int64_t;
/// Intermediate products of two `Index` values.
using Wide = __int128;

[[noreturn]] inline void throw_overflow(const char* what, Index a, Index b) {
  throw Error(ErrorKind::overflow, std::string(what) + " of " + std::to_string(a) + " and " + std::to_string(b) +
                                       " does not fit in 64 bits");
}

inline Index checked_add(Index a, Index b) {
  Index r;
  if (__builtin_add_overflow(a, b, &r)) throw_overflow("sum", a, b);
  return r;
}

inline Index checked_sub(Index a, Index b) {
  Index r;
  if (__builtin_sub_overflow(a, b, &r)) throw_overflow("difference", a, b);
  return r;
}

inline Index checked_mul(Index a, Index b) {
  Index r;
  if (__builtin_mul_overflow(a, b, &r)) throw_overflow("product", a, b);
  return r;
}

/// ceil(a / b) for a >= 0, b > 0, without the overflow of (a + b - 1) / b.
constexpr Index ceil_div(Index a, Index b) { return a / b + (a % b != 0); }

/// floor(a / b) and the non-negative remainder, for b > 0.
constexpr Wide floor_div(Wide a, Wide b) { return a / b - (a % b < 0); }
constexpr Wide floor_mod(Wide a, Wide b) {
  const Wide r = a % b;
  return r < 0 ? r + b : r;
}

}  // namespace longshore

/// Sums over elements in which the order of visiting does not matter (`KernelTable::digest`).
#pragma once

#include "tables.hpp"

namespace longshore {
namespace {

/// What one word of an element adds: halves of the word, each with half of a key that is its place's, multiplied (as NH
/// does: Black, Halevi, Krawczyk, Krovetz & Rogaway, "UMAC", CRYPTO '99).
inline std::uint64_t word_digest(std::uint64_t word, std::uint64_t place) {
  const std::uint64_t key = place ^ place >> 32;
  const std::uint64_t low = static_cast<std::uint32_t>(word + key);
  const std::uint64_t high = static_cast<std::uint32_t>((word >> 32) + (key >> 32));
  return low * high;
}

/// Whether vectors gain nothing: those of 32 bytes with words below 8, and wider ones where they collect short words
/// from here and there.
template <int W, class Word, bool Dense>
constexpr bool one_by_one = W == 32 ? sizeof(Word) < 8 : W == 64 && !Dense && sizeof(Word) < 4;

template <int W, class Word, bool Dense, bool MaySkip>
std::uint64_t digest_words(const std::byte* data, const DigestLoop& loop) {
  const DigestLoop own = loop;  // which nothing in memory can change
  std::uint64_t sum = 0, place = own.place;
  const Index stride = Dense ? Index(sizeof(Word)) : own.stride;
  const auto skipped = static_cast<Word>(own.skipped);
  const bool skips = MaySkip && own.skips;
  for (Index row = 0; row < own.rows; ++row, data += own.row_stride, place += own.row_step)
    for (Index i = 0; i < own.n; ++i) {
      Word word;
      __builtin_memcpy(&word, data + i * stride, sizeof(Word));
      const std::uint64_t added = word_digest(word, place + std::uint64_t(i) * own.place_step);
      sum += skips && word == skipped ? 0 : added;
      // Nothing that the compiler could put into vectors.
      if constexpr (one_by_one<W, Word, Dense>) __asm__("" : "+r"(sum));
    }
  return sum;
}

template <int W, class Word>
std::uint64_t digest_some(const std::byte* data, const DigestLoop& loop) {
  if (loop.stride != Index(sizeof(Word))) return digest_words<W, Word, false, true>(data, loop);
  return loop.skips ? digest_words<W, Word, true, true>(data, loop) : digest_words<W, Word, true, false>(data, loop);
}

template <int W>
std::uint64_t digest_loop(const std::byte* data, const DigestLoop& loop) {
  switch (loop.width) {
    case 1: return digest_some<W, std::uint8_t>(data, loop);
    case 2: return digest_some<W, std::uint16_t>(data, loop);
    case 4: return digest_some<W, std::uint32_t>(data, loop);
    case 8: return digest_some<W, std::uint64_t>(data, loop);
    default: break;
  }
  std::uint64_t sum = 0, place = loop.place;
  for (Index row = 0; row < loop.rows; ++row, data += loop.row_stride, place += loop.row_step)
    for (Index i = 0; i < loop.n; ++i) {
      std::uint64_t word = 0;
      __builtin_memcpy(&word, data + i * loop.stride, static_cast<std::size_t>(loop.width));
      const std::uint64_t added = word_digest(word, place + std::uint64_t(i) * loop.place_step);
      sum += loop.skips && word == loop.skipped ? 0 : added;
    }
  return sum;
}

}  // namespace
}  // namespace longshore

#include "bit_packing.hpp"

#include <array>
#include <cstring>
#include <utility>

namespace longshore::bit_packing {
namespace {

#define LONGSHORE_INLINE inline __attribute__((always_inline))

// A unit, seen as words. The compilers' vector types: one text for every instruction set.
typedef std::uint32_t Words32 __attribute__((vector_size(16)));
typedef std::uint64_t Words64 __attribute__((vector_size(16)));

template <int Bits>
struct UnitOf;
template <>
struct UnitOf<32> {
  using Word = std::uint32_t;
  using Type = Words32;
};
template <>
struct UnitOf<64> {
  using Word = std::uint64_t;
  using Type = Words64;
};

template <class Unit>
LONGSHORE_INLINE Unit load(const void* from) {
  Unit unit;
  std::memcpy(&unit, from, sizeof unit);
  return unit;
}

template <class Unit>
LONGSHORE_INLINE void store(void* to, Unit unit) {
  std::memcpy(to, &unit, sizeof unit);
}

constexpr std::uint64_t low_bits(int width) {
  return width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
}

template <int Bits>
void pack_words(const std::uint64_t* values, Index n, int width, std::byte* packed) {
  using Unit = typename UnitOf<Bits>::Type;
  using Word = typename UnitOf<Bits>::Word;
  constexpr Index across = 128 / Bits;
  std::array<Word, block_values> words;
  const Index rows = ceil_div(n, across);
  for (Index i = 0; i < n; ++i) words[static_cast<std::size_t>(i)] = static_cast<Word>(values[i]);
  for (Index i = n; i < rows * across; ++i) words[static_cast<std::size_t>(i)] = 0;
  Unit unit{};
  int used = 0;  // of each word's bits
  for (Index row = 0; row < rows; ++row) {
    const Unit next = load<Unit>(words.data() + row * across);
    unit |= next << static_cast<Word>(used);
    used += width;
    if (used < Bits) continue;
    store(packed, unit);
    packed += unit_bytes;
    used -= Bits;
    unit = used > 0 ? next >> static_cast<Word>(width - used) : Unit{};
  }
  if (used > 0) store(packed, unit);
}

LONGSHORE_INLINE Words32 every(std::uint32_t value) { return Words32{value, value, value, value}; }
LONGSHORE_INLINE Words64 every(std::uint64_t value) { return Words64{value, value}; }

template <int W, Index Row>
LONGSHORE_INLINE typename UnitOf<word_bits(W)>::Type unpacked_row(const std::byte* __restrict packed) {
  constexpr int bits = word_bits(W);
  using Unit = typename UnitOf<bits>::Type;
  using Word = typename UnitOf<bits>::Word;
  if constexpr (W == 0) {
    return Unit{};
  } else {
    constexpr Index unit = Row * W / bits;
    constexpr int used = Row * W % bits;
    Unit v = load<Unit>(packed + unit * unit_bytes) >> Word{used};
    if constexpr (used + W > bits) v |= load<Unit>(packed + (unit + 1) * unit_bytes) << Word{bits - used};
    if constexpr (used + W != bits) v &= every(static_cast<Word>(low_bits(W)));
    return v;
  }
}

/// The values of a full block, each with `more` added, as words of word_bits(W) bits.
template <int W>
void unpack_width(const std::byte* __restrict packed, std::uint64_t more, void* __restrict words) {
  const auto added = every(static_cast<typename UnitOf<word_bits(W)>::Word>(more));
  [&]<Index... Row>(std::integer_sequence<Index, Row...>) __attribute__((always_inline)) {
    (store(static_cast<std::byte*>(words) + Row * unit_bytes, unpacked_row<W, Row>(packed) + added), ...);
  }
  (std::make_integer_sequence<Index, block_values / lanes(W)>{});
}

template <int... W>
void unpack_any(const std::byte* packed, int width, std::uint64_t more, void* words, std::integer_sequence<int, W...>) {
  static constexpr decltype(&unpack_width<0>) unpack_widths[] = {&unpack_width<W>...};
  unpack_widths[width](packed, more, words);
}

void unpack(const std::byte* packed, int width, std::uint64_t more, void* words) {
  unpack_any(packed, width, more, words, std::make_integer_sequence<int, 65>{});
}

// From words to what is asked for.

LONGSHORE_INLINE Words64 low_half(Words32 v) { return (Words64)__builtin_shufflevector(v, Words32{}, 0, 4, 1, 5); }
LONGSHORE_INLINE Words64 high_half(Words32 v) { return (Words64)__builtin_shufflevector(v, Words32{}, 2, 6, 3, 7); }
/// Sums of each lane and those before it.
LONGSHORE_INLINE Words32 running_sums(Words32 v) {
  v += __builtin_shufflevector(Words32{}, v, 0, 4, 5, 6);
  return v + __builtin_shufflevector(Words32{}, v, 0, 1, 4, 5);
}
LONGSHORE_INLINE Words64 running_sums(Words64 v) { return v + __builtin_shufflevector(Words64{}, v, 0, 2); }
/// The last lane's value in all lanes.
LONGSHORE_INLINE Words32 every_last(Words32 v) { return __builtin_shufflevector(v, v, 3, 3, 3, 3); }
LONGSHORE_INLINE Words64 every_last(Words64 v) { return __builtin_shufflevector(v, v, 1, 1); }

/// Two 64-bit values to memory, whole or modulo 2^32.
LONGSHORE_INLINE void put(std::uint64_t* out, Words64 v) { store(out, v); }
LONGSHORE_INLINE void put(std::uint32_t* out, Words64 v) {
  const auto low = __builtin_shufflevector((Words32)v, (Words32)v, 0, 2, 0, 2);
  std::memcpy(out, &low, 8);
}

/// Deltas of no bits, which need not wait for each other.
template <class Out>
void count_up(std::uint64_t base, std::uint64_t step, Out* out) {
  const auto steps = every(static_cast<Out>(step));
  constexpr Index across = sizeof steps / sizeof(Out);
  auto v = running_sums(steps) + static_cast<Out>(base - step);
  for (Index i = 0; i < block_values; i += across) {
    store(out + i, v);
    v += steps * static_cast<Out>(across);
  }
}

/// Deltas of more than 32 bits.
template <class Out>
void add_up(const std::byte* packed, int width, std::uint64_t base, std::uint64_t step, Out* __restrict out) {
  alignas(64) std::array<std::uint64_t, block_values> words;
  unpack(packed, width, step, words.data());
  Words64 last = every(base - step);
  for (Index i = 0; i < block_values; i += 2) {
    const Words64 v = running_sums(load<Words64>(words.data() + i)) + last;
    put(out + i, v);
    last = every_last(v);
  }
}

template <int Bits>
std::uint64_t value_in_words(const std::byte* packed, int width, Index position) {
  using Word = typename UnitOf<Bits>::Word;
  constexpr Index across = 128 / Bits;
  const Index bit = position / across * width;
  auto word = [&](Index k) {
    Word value;
    std::memcpy(&value, packed + k * unit_bytes + position % across * static_cast<Index>(sizeof(Word)), sizeof value);
    return std::uint64_t{value};
  };
  const int used = static_cast<int>(bit % Bits);
  std::uint64_t value = word(bit / Bits) >> used;
  if (used + width > Bits) value |= word(bit / Bits + 1) << (Bits - used);
  return value & low_bits(width);
}

}  // namespace

void pack(const std::uint64_t* values, Index n, int width, std::byte* packed) {
  if (width == 0) return;
  width <= 32 ? pack_words<32>(values, n, width, packed) : pack_words<64>(values, n, width, packed);
}

std::uint64_t packed_value(const std::byte* packed, int width, Index position) {
  if (width == 0) return 0;
  return width <= 32 ? value_in_words<32>(packed, width, position) : value_in_words<64>(packed, width, position);
}

void decode_offsets(const std::byte* packed, int width, std::uint64_t base, std::uint32_t* out) {
  if (width <= 32) return unpack(packed, width, base, out);
  alignas(64) std::array<std::uint64_t, block_values> words;
  unpack(packed, width, base, words.data());
  for (Index i = 0; i < block_values; i += 2) put(out + i, load<Words64>(words.data() + i));
}

void decode_offsets(const std::byte* packed, int width, std::uint64_t base, std::uint64_t* __restrict out) {
  if (width > 32) return unpack(packed, width, base, out);
  alignas(64) std::array<std::uint32_t, block_values> words;
  unpack(packed, width, 0, words.data());
  const Words64 more = every(base);
  for (Index i = 0; i < block_values; i += 4) {
    const Words32 v = load<Words32>(words.data() + i);
    put(out + i, low_half(v) + more);
    put(out + i + 2, high_half(v) + more);
  }
}

void decode_deltas(const std::byte* packed, int width, std::uint64_t base, std::uint64_t step,
                   std::uint32_t* __restrict out) {
  if (width == 0) return count_up(base, step, out);
  if (width > 32) return add_up(packed, width, base, step, out);
  alignas(64) std::array<std::uint32_t, block_values> words;
  unpack(packed, width, step, words.data());
  Words32 last = every(static_cast<std::uint32_t>(base - step));
  for (Index i = 0; i < block_values; i += 4) {
    const Words32 v = running_sums(load<Words32>(words.data() + i)) + last;
    store(out + i, v);
    last = every_last(v);
  }
}

void decode_deltas(const std::byte* packed, int width, std::uint64_t base, std::uint64_t step,
                   std::uint64_t* __restrict out) {
  if (width == 0) return count_up(base, step, out);
  if (width > 32) return add_up(packed, width, base, step, out);
  alignas(64) std::array<std::uint32_t, block_values> words;
  unpack(packed, width, 0, words.data());
  const Words64 steps = every(step);
  Words64 last = every(base - step);
  for (Index i = 0; i < block_values; i += 4) {
    const Words32 v = load<Words32>(words.data() + i);
    const Words64 low = running_sums(low_half(v) + steps) + last;
    const Words64 high = running_sums(high_half(v) + steps) + every_last(low);
    put(out + i, low);
    put(out + i + 2, high);
    last = every_last(high);
  }
}

}  // namespace longshore::bit_packing

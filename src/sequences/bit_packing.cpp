#include "bit_packing.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <utility>

namespace longshore::bit_packing {
namespace {

static_assert(std::endian::native == std::endian::little, "the packed words are little-endian, and so are the shuffles");

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

constexpr std::uint64_t low_bits(int width) { return width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1; }

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

// What is done with the rows of values as they are unpacked. `Sink::take<Row>(words)` gets row after row.

LONGSHORE_INLINE Words64 low_half(Words32 v) { return (Words64) __builtin_shufflevector(v, Words32{}, 0, 4, 1, 5); }
LONGSHORE_INLINE Words64 high_half(Words32 v) { return (Words64) __builtin_shufflevector(v, Words32{}, 2, 6, 3, 7); }
LONGSHORE_INLINE Words32 every(std::uint32_t value) { return Words32{value, value, value, value}; }
LONGSHORE_INLINE Words64 every(std::uint64_t value) { return Words64{value, value}; }
/// Sums of each lane and those before it.
LONGSHORE_INLINE Words32 running_sums(Words32 v) {
  v += __builtin_shufflevector(Words32{}, v, 0, 4, 5, 6);
  return v + __builtin_shufflevector(Words32{}, v, 0, 1, 4, 5);
}
LONGSHORE_INLINE Words64 running_sums(Words64 v) { return v + __builtin_shufflevector(Words64{}, v, 0, 2); }

/// Two 64-bit values to memory, whole or modulo 2^32.
LONGSHORE_INLINE void put(std::uint64_t* out, Words64 v) { store(out, v); }
LONGSHORE_INLINE void put(std::uint32_t* out, Words64 v) {
  const auto low = __builtin_shufflevector((Words32)v, (Words32)v, 0, 2, 0, 2);
  std::memcpy(out, &low, 8);
}

template <class Out>
class Offsets {
 public:
  LONGSHORE_INLINE Offsets(std::uint64_t base, Out* out) : base_(every(base)), out_(out) {}

  template <int W, Index Row>
  LONGSHORE_INLINE void take(Words32 v) {
    if constexpr (sizeof(Out) == 4) {
      store(out_ + 4 * Row, v + every(static_cast<std::uint32_t>(base_[0])));
    } else {
      store(out_ + 4 * Row, low_half(v) + base_);
      store(out_ + 4 * Row + 2, high_half(v) + base_);
    }
  }
  template <int W, Index Row>
  LONGSHORE_INLINE void take(Words64 v) {
    put(out_ + 2 * Row, v + base_);
  }

 private:
  const Words64 base_;
  Out* const __restrict out_;
};

template <class Out>
class Deltas {
 public:
  LONGSHORE_INLINE Deltas(std::uint64_t base, std::uint64_t step, Out* out)
      : steps_(every(step)), last_(every(base - step)), last32_(every(static_cast<std::uint32_t>(base - step))), out_(out) {}

  template <int W, Index Row>
  LONGSHORE_INLINE void take(Words32 v) {
    if constexpr (sizeof(Out) == 4) {
      v = running_sums(v + every(static_cast<std::uint32_t>(steps_[0]))) + last32_;
      store(out_ + 4 * Row, v);
      last32_ = __builtin_shufflevector(v, v, 3, 3, 3, 3);
    } else if constexpr (W <= 30) {  // four of them do not overflow 32 bits
      v = running_sums(v);
      const Words64 ramp = running_sums(steps_);
      const Words64 low = low_half(v) + ramp + last_, high = high_half(v) + (ramp + steps_ + steps_) + last_;
      store(out_ + 4 * Row, low);
      store(out_ + 4 * Row + 2, high);
      last_ = __builtin_shufflevector(high, high, 1, 1);
    } else {
      take<W, 2 * Row>(low_half(v));
      take<W, 2 * Row + 1>(high_half(v));
    }
  }
  template <int W, Index Row>
  LONGSHORE_INLINE void take(Words64 v) {
    v = running_sums(v + steps_) + last_;
    put(out_ + 2 * Row, v);
    last_ = __builtin_shufflevector(v, v, 1, 1);
  }

 private:
  const Words64 steps_;
  Words64 last_;    // the last value, in both lanes
  Words32 last32_;  // the same modulo 2^32
  Out* const __restrict out_;
};

template <int W, Index Row>
LONGSHORE_INLINE typename UnitOf<word_bits(W)>::Type unpack_row(const std::byte* __restrict packed) {
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

template <int W, class Sink>
LONGSHORE_INLINE void unpack(const std::byte* __restrict packed, Sink sink) {
  [&]<Index... Row>(std::integer_sequence<Index, Row...>) __attribute__((always_inline)) {
    (sink.template take<W, Row>(unpack_row<W, Row>(packed)), ...);
  }
  (std::make_integer_sequence<Index, block_values / lanes(W)>{});
}

template <int W, class Out>
void offsets_of_width(const std::byte* packed, std::uint64_t base, Out* out) {
  unpack<W>(packed, Offsets<Out>(base, out));
}

template <int W, class Out>
void deltas_of_width(const std::byte* packed, std::uint64_t base, std::uint64_t step, Out* out) {
  unpack<W>(packed, Deltas<Out>(base, step, out));
}

using Widths = std::make_integer_sequence<int, 65>;

template <class Out, int... W>
void offsets(const std::byte* packed, int width, std::uint64_t base, Out* out, std::integer_sequence<int, W...>) {
  static constexpr decltype(&offsets_of_width<0, Out>) decoders[] = {&offsets_of_width<W, Out>...};
  decoders[width](packed, base, out);
}

template <class Out, int... W>
void deltas(const std::byte* packed, int width, std::uint64_t base, std::uint64_t step, Out* out,
            std::integer_sequence<int, W...>) {
  static constexpr decltype(&deltas_of_width<0, Out>) decoders[] = {&deltas_of_width<W, Out>...};
  decoders[width](packed, base, step, out);
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
  offsets(packed, width, base, out, Widths{});
}
void decode_offsets(const std::byte* packed, int width, std::uint64_t base, std::uint64_t* out) {
  offsets(packed, width, base, out, Widths{});
}
void decode_deltas(const std::byte* packed, int width, std::uint64_t base, std::uint64_t step, std::uint32_t* out) {
  deltas(packed, width, base, step, out, Widths{});
}
void decode_deltas(const std::byte* packed, int width, std::uint64_t base, std::uint64_t step, std::uint64_t* out) {
  deltas(packed, width, base, step, out, Widths{});
}

}  // namespace longshore::bit_packing

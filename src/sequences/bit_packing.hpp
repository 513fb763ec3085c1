/// Blocks of 128 unsigned values in `width` bits each, so laid out that four are unpacked together.
///
/// A block is a sequence of units of 16 bytes, each of four 32-bit words, or, for widths above 32, of two 64-bit words:
/// its lanes. Value i is in lane i % lanes; a lane's values follow each other in its words bit by bit, low bits first.
/// So neighbours lie at the same bits of neighbouring words, and the shifts that unpack them are the same for all
/// lanes: they are known when the library is compiled, and every instruction set has them (Lemire and Boytsov,
/// "Decoding billions of integers per second through vectorization", section 4). A block that is not full is the
/// beginning of a full one: the values that are not there are zeros, and units that hold nothing else are left out.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "longshore/core/checked.hpp"

namespace longshore::bit_packing {

constexpr Index block_values = 128;
constexpr Index unit_bytes = 16;

constexpr int word_bits(int width) { return width <= 32 ? 32 : 64; }
constexpr Index lanes(int width) { return 8 * unit_bytes / word_bits(width); }
/// Bits that a value needs; std::bit_width, whose type differs from library to library.
constexpr int bits(std::uint64_t value) { return 64 - std::countl_zero(value); }
/// Units that n <= 128 values take.
constexpr Index units(Index n, int width) { return ceil_div(ceil_div(n, lanes(width)) * width, word_bits(width)); }

/// values[0, n) to units(n, width) units. Bits beyond the width are zero.
void pack(const std::uint64_t* values, Index n, int width, std::byte* packed);

/// One value. The plain twin of the decoders.
std::uint64_t packed_value(const std::byte* packed, int width, Index position);

/// A full block: out[i] = base + packed value i, modulo 2^32 or 2^64.
void decode_offsets(const std::byte* packed, int width, std::uint64_t base, std::uint32_t* out);
void decode_offsets(const std::byte* packed, int width, std::uint64_t base, std::uint64_t* out);
/// A full block: out[0] = base + packed value 0, out[i] = out[i - 1] + step + packed value i.
void decode_deltas(const std::byte* packed, int width, std::uint64_t base, std::uint64_t step, std::uint32_t* out);
void decode_deltas(const std::byte* packed, int width, std::uint64_t base, std::uint64_t step, std::uint64_t* out);

}  // namespace longshore::bit_packing

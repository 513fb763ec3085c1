// The stored form of PackedIntegers, little-endian:
//   the scheme, a byte: 0 offsets, 1 deltas
//   the size, a varint
//   each block's width, a byte
//   each block's base less that of the block before it, a signed varint
//   with deltas, each block's step less that of the block before it, a signed varint
//   the packed bits of all blocks
// A varint has 7 bits a byte, low bits first, the high bit set in all bytes but the last, and no more bytes than it
// needs; a signed one alternates between the signs: 0, -1, 1, -2, ...
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "bit_packing.hpp"
#include "longshore/sequences/packed_integers.hpp"

namespace longshore {
namespace {

using bit_packing::block_values;
using bit_packing::unit_bytes;

std::uint64_t zigzag(Index value) {
  return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
}
Index from_zigzag(std::uint64_t value) { return static_cast<Index>(value >> 1 ^ (0 - (value & 1))); }

std::uint64_t signed_step(Index value, Index before) {
  return zigzag(static_cast<Index>(static_cast<std::uint64_t>(value) - static_cast<std::uint64_t>(before)));
}

Index varint_bytes(std::uint64_t value) { return ceil_div(bit_packing::bits(value | 1), 7); }

void append_varint(std::vector<std::byte>& out, std::uint64_t value) {
  for (; value > 127; value >>= 7) out.push_back(static_cast<std::byte>(value | 128));
  out.push_back(static_cast<std::byte>(value));
}

[[noreturn]] void refuse(Index at, const std::string& what) {
  throw Error(ErrorKind::argument, "packed integers: byte " + std::to_string(at) + ": " + what);
}

/// Reads the stored form from its first byte on and knows where it is.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  Index at() const { return at_; }
  Index left() const { return static_cast<Index>(bytes_.size()) - at_; }

  std::span<const std::byte> take(Index n, const char* what) {
    if (n > left())
      refuse(at_, "the bytes end after " + std::to_string(left()) + " of " + std::to_string(n) + " of " + what);
    const auto taken = bytes_.subspan(static_cast<std::size_t>(at_), static_cast<std::size_t>(n));
    at_ += n;
    return taken;
  }

  std::uint64_t varint(const char* what) {
    std::uint64_t value = 0;
    const Index first = at_;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<std::uint64_t>(take(1, what)[0]);
      if (shift == 63 && byte > 1) refuse(first, std::string(what) + " has more than 64 bits");
      value |= (byte & 127) << shift;
      if (byte > 127) continue;
      if (byte == 0 && shift > 0) refuse(first, std::string(what) + " has more bytes than it needs");
      return value;
    }
  }

 private:
  std::span<const std::byte> bytes_;
  Index at_ = 0;
};

}  // namespace

Index PackedIntegers::stored_bytes() const {
  Index bytes =
      1 + varint_bytes(static_cast<std::uint64_t>(size_)) + static_cast<Index>(blocks_.size()) + packed_bytes();
  Block before;
  for (const Block& block : blocks_) {
    bytes += varint_bytes(signed_step(block.base, before.base));
    if (scheme_ == Scheme::deltas) bytes += varint_bytes(signed_step(block.step, before.step));
    before = block;
  }
  return bytes;
}

void PackedIntegers::append_to(std::vector<std::byte>& out) const {
  out.push_back(static_cast<std::byte>(scheme_));
  append_varint(out, static_cast<std::uint64_t>(size_));
  for (const Block& block : blocks_) out.push_back(static_cast<std::byte>(block.width));
  Index before = 0;
  for (const Block& block : blocks_) append_varint(out, signed_step(block.base, std::exchange(before, block.base)));
  before = 0;
  if (scheme_ == Scheme::deltas)
    for (const Block& block : blocks_) append_varint(out, signed_step(block.step, std::exchange(before, block.step)));
  out.insert(out.end(), packed_.begin(), packed_.end());
}

PackedIntegers PackedIntegers::from_bytes(std::span<const std::byte>& in) {
  Reader reader(in);
  PackedIntegers list;
  const auto scheme = static_cast<int>(reader.take(1, "the scheme")[0]);
  if (scheme > 1) refuse(0, "scheme " + std::to_string(scheme) + " is neither 0 (offsets) nor 1 (deltas)");
  list.scheme_ = static_cast<Scheme>(scheme);
  const std::uint64_t size = reader.varint("the size");
  if (size > static_cast<std::uint64_t>(INT64_MAX))
    refuse(1, "size " + std::to_string(size) + " does not fit in 64 signed bits");
  list.size_ = static_cast<Index>(size);

  // A width and a base are two bytes at least: now memory is bounded by what is there.
  const Index blocks = ceil_div(list.size_, block_values);
  if (blocks > reader.left() / 2)
    refuse(reader.at(), "the bytes end: " + std::to_string(size) + " values are " + std::to_string(blocks) +
                            " blocks, but only " + std::to_string(reader.left()) + " bytes follow");
  list.blocks_.resize(static_cast<std::size_t>(blocks));
  std::uint64_t unit = 0;
  for (Index b = 0; b < blocks; ++b) {
    Block& block = list.blocks_[static_cast<std::size_t>(b)];
    const auto width = static_cast<int>(reader.take(1, "the widths")[0]);
    if (width > 64)
      refuse(reader.at() - 1,
             "width " + std::to_string(width) + " of block " + std::to_string(b) + " is above 64 bits");
    block.width = static_cast<std::uint64_t>(width);
    block.unit = unit;
    unit += static_cast<std::uint64_t>(bit_packing::units(list.count(b), width));
  }
  Index before = 0;
  auto next = [&](const char* what) {
    const auto step = static_cast<std::uint64_t>(from_zigzag(reader.varint(what)));
    return before = static_cast<Index>(static_cast<std::uint64_t>(before) + step);
  };
  for (Block& block : list.blocks_) block.base = next("a base");
  before = 0;
  if (list.scheme_ == Scheme::deltas)
    for (Block& block : list.blocks_) block.step = next("a step");
  const Index bits_at = reader.at();
  const auto bits = reader.take(list.packed_bytes(), "the packed bits");
  list.packed_.assign(bits.begin(), bits.end());
  if (blocks > 0) list.minimum_ = list.maximum_ = list.blocks_[0].base;
  for (Index b = 0; b < blocks; ++b) list.verify(b, bits_at);
  in = in.subspan(static_cast<std::size_t>(reader.at()));
  return list;
}

void PackedIntegers::verify(Index b, Index bits_at) {
  const Block& block = blocks_[static_cast<std::size_t>(b)];
  auto require = [&](bool good, const char* what) {
    if (!good) refuse(bits_at + unit_bytes * static_cast<Index>(block.unit), "block " + std::to_string(b) + " " + what);
  };
  FullBlock full;
  std::array<std::uint64_t, block_values> values;
  bit_packing::decode_offsets(full_block(b, full), block.width, 0, values.data());
  const bool deltas = scheme_ == Scheme::deltas;
  const auto n = values.begin() + count(b), first = values.begin() + (deltas ? 1 : 0);
  require(!deltas || values[0] == 0, "packs a difference before its first value");
  require(std::all_of(n, values.end(), [](std::uint64_t value) { return value == 0; }),
          "has bits set behind its last value");
  if (first == n) {
    require(block.step == 0 && block.width == 0, "has one value, but a step or a width");
  } else {
    const auto [least, largest] = std::minmax_element(first, n);
    require(*least == 0, "packs nothing that is 0: what is least should have been taken off");
    require(bit_packing::bits(*largest) == static_cast<int>(block.width),
            "has more bits a value than its largest needs");
    const auto room =
        static_cast<std::uint64_t>(INT64_MAX) - static_cast<std::uint64_t>(deltas ? block.step : block.base);
    require(*largest <= room, "goes beyond 64 bits");
  }
  decode_block(b, 0, values.data());
  for (auto v = values.begin(); v != n; ++v) {
    minimum_ = std::min(minimum_, static_cast<Index>(*v));
    maximum_ = std::max(maximum_, static_cast<Index>(*v));
  }
}

}  // namespace longshore

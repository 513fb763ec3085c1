/// sequences: `PackedIntegers`, a list of integers in few bits each that is decoded fast from anywhere.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "longshore/core/checked.hpp"

namespace longshore {

/// Any list of 64-bit integers, for the index lists that no formula describes. Blocks of 128 values
/// each are kept as a base and, bit-packed, what is added to it: as many bits a value as the
/// block's largest needs, 0 where all are alike, 64 at worst.
class PackedIntegers {
 public:
  /// What is packed. Both are frames of reference: the least is taken off first,
  /// so that what is packed is never negative. Arithmetic is modulo 2^64.
  enum class Scheme {
    offsets,  ///< value - the block's least value: good where neighbours are near each other in no order
    deltas,   ///< the block's first value, then (value - its predecessor) - the least of these: good for what ascends;
              ///< no bits at all for what has one stride
  };

  PackedIntegers() = default;
  PackedIntegers(std::span<const Index> values, Scheme scheme);
  /// In the scheme whose stored form is smaller; offsets, which are decoded faster, where both are alike.
  static PackedIntegers smallest(std::span<const Index> values);

  Index size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Scheme scheme() const { return scheme_; }
  /// The least and the largest value. They throw `Error(argument)` where there are no values.
  Index minimum() const;
  Index maximum() const;

  /// The value at a position, found by the definition, one value at a time: the plain twin of `read`. Throws
  /// `Error(argument)` outside [0, size()).
  Index operator[](Index position) const;
  /// The values at [first, first + n) to out[0, n). Throws `Error(argument)` where a position is outside [0, size()).
  void read(Index first, Index n, Index* out) const;
  /// The same less `base`, modulo 2^32: offsets from `base` in the short form that copy loops take. The caller knows
  /// that they fit, for example from `minimum()` and `maximum()`.
  void read(Index first, Index n, std::uint32_t* out, Index base) const;

  Index stored_bytes() const;  ///< what `append_to` appends
  Index memory_bytes() const;  ///< held by this object outside itself

  /// Appends the stored form, which is the same on every machine.
  void append_to(std::vector<std::byte>& out) const;
  /// Takes one list off the front of `in`. Accepts what `append_to` writes and nothing else, so that a
  /// list of certain values and scheme has one stored form; throws `Error(argument)`, which says at
  /// which byte, and leaves `in` as it was. Memory taken is in proportion to the bytes that are there,
  /// whatever they say; `size()` is at most 64 times their number.
  static PackedIntegers from_bytes(std::span<const std::byte>& in);

  /// The same values in the same scheme.
  bool operator==(const PackedIntegers&) const = default;

 private:
  struct Block {
    Index base = 0;               ///< offsets: the least value; deltas: the first
    Index step = 0;               ///< deltas: the least difference of neighbours
    std::uint64_t unit : 57 = 0;  ///< where in packed_ its bits begin, in units of 16 bytes
    std::uint64_t width : 7 = 0;  ///< bits of a packed value

    bool operator==(const Block&) const = default;
  };

  using FullBlock = std::array<std::byte, 1024>;  ///< the packed bits of 128 values, of the largest width

  /// Everything but the packed bits.
  static PackedIntegers measured(std::span<const Index> values, Scheme scheme);
  void pack(std::span<const Index> values);
  Index count(Index b) const;  ///< values of a block
  Index packed_bytes() const;
  /// The packed bits of a block; where it is not full, zeros are appended in `room`.
  const std::byte* full_block(Index b, FullBlock& room) const;
  /// A block less `base`, as 128 values, full or not.
  template <class Out>
  void decode_block(Index b, Index base, Out* out) const;
  template <class Out>
  void decode(Index first, Index n, Index base, Out* out) const;
  void check_stretch(Index first, Index n) const;
  /// Refuses a block read from the stored form that `append_to` would not have written, and takes note of its values.
  /// The packed bits begin at byte `bits_at` of the stored form.
  void verify(Index b, Index bits_at);

  Scheme scheme_ = Scheme::offsets;
  Index size_ = 0, minimum_ = 0, maximum_ = 0;
  std::vector<Block> blocks_;
  std::vector<std::byte> packed_;
};

}  // namespace longshore

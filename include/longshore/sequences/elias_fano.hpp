/// sequences: `EliasFano`, an ascending sequence in about 2 +
/// log2(universe / size) bits each, any of which is found at once.
#pragma once

#include <span>
#include <utility>

#include "longshore/sequences/bitmap.hpp"
#include "longshore/sequences/fixed_integers.hpp"

namespace longshore {

/// Elias (1974) and Fano (1971): the low bits of each value as they are, the high
/// bits in unary: value k sets bit (high + k) of a bitmap. Values may repeat.
class EliasFano {
 public:
  EliasFano() = default;
  /// Ascending values in [0, universe). Throws `Error(argument)` where they are not.
  EliasFano(std::span<const Index> values, Index universe);
  static Index bytes_of(Index size, Index universe);
  /// So many are the most: the high bits are counted in 32.
  static constexpr Index most = Bitmap::most / 2;

  /// Takes values one after the other, for those who do not have them in a list.
  class Builder {
   public:
    Builder(Index size, Index universe);
    void push(Index value);
    EliasFano finish();

   private:
    FixedIntegers low_;
    std::vector<std::uint64_t> high_;
    Index size_, universe_, at_ = 0, before_ = 0;
  };

  Index size() const { return size_; }
  Index universe() const { return universe_; }
  Index operator[](Index i) const { return (high_.select(i) - i) << low_.width() | low_[i]; }
  /// How many values are below `value`, 0 <= value <= universe().
  Index below(Index value) const;
  /// The last value of those that are at most `value`, and its position. The caller knows that the first one is.
  struct Entry {
    Index position, value;
  };
  Entry last_up_to(Index value) const;
  /// The first position of a value, 0 <= value < universe(), or -1.
  Index find(Index value) const;
  /// The values at [first, first + n), in order.
  void read(Index first, Index n, Index* out) const;

  Index memory_bytes() const { return low_.memory_bytes() + high_.memory_bytes(); }
  const FixedIntegers& low() const& { return low_; }
  FixedIntegers low() && { return std::move(low_); }
  const Bitmap& high() const& { return high_; }
  Bitmap high() && { return std::move(high_); }
  /// Puts together what `low().words()` and `high().words()` gave.
  /// Throws `Error(argument)` where it is no ascending sequence.
  static EliasFano from_words(Index size, Index universe, std::span<const std::uint64_t> low,
                              std::span<const std::uint64_t> high);

  bool operator==(const EliasFano&) const = default;

 private:
  static int low_bits(Index size, Index universe);
  static Index high_bits(Index size, Index universe, int low) { return checked_add(size, (universe >> low) + 1); }

  FixedIntegers low_;
  Bitmap high_;
  Index size_ = 0, universe_ = 0;
};

}  // namespace longshore

#include "longshore/sequences/elias_fano.hpp"

#include <bit>
#include <string>

namespace longshore {

int EliasFano::low_bits(Index size, Index universe) {
  return size == 0 ? FixedIntegers::bits_of(universe) : std::max(0, FixedIntegers::bits_of(universe / size) - 1);
}

Index EliasFano::bytes_of(Index size, Index universe) {
  const int low = low_bits(size, universe);
  return FixedIntegers::bytes_of(size, low) +
         Bitmap::bytes_of(high_bits(size, universe, low), size, Bitmap::Find::both);
}

EliasFano::Builder::Builder(Index size, Index universe) : size_(size), universe_(universe) {
  if (size < 0 || universe < 0 || size > most || FixedIntegers::bits_of(universe) > FixedIntegers::most_bits)
    throw Error(ErrorKind::argument, "no ascending sequence of " + std::to_string(size) + " values below " +
                                         std::to_string(universe) + " is made; at most " + std::to_string(most) +
                                         " values below 2^57");
  low_ = FixedIntegers(size, low_bits(size, universe));
  high_.resize(std::size_t(Bitmap::words_of(high_bits(size, universe, low_.width()))));
}

void EliasFano::Builder::push(Index value) {
  if (value < before_ || value >= universe_ || at_ == size_)
    throw Error(ErrorKind::argument, "value " + std::to_string(value) + " at " + std::to_string(at_) + " is not in [" +
                                         std::to_string(before_) + ", " + std::to_string(universe_) +
                                         "), or one too many for " + std::to_string(size_));
  before_ = value;
  const int low = low_.width();
  low_.set(at_, value & ((Index{1} << low) - 1));
  const auto bit = std::size_t((value >> low) + at_++);
  high_[bit / 64] |= std::uint64_t{1} << (bit % 64);
}

EliasFano EliasFano::Builder::finish() {
  if (at_ != size_)
    throw Error(ErrorKind::argument,
                "an ascending sequence of " + std::to_string(size_) + " values got " + std::to_string(at_));
  EliasFano sequence;
  sequence.size_ = size_, sequence.universe_ = universe_;
  sequence.high_ = Bitmap(std::move(high_), high_bits(size_, universe_, low_.width()), Bitmap::Find::both);
  sequence.low_ = std::move(low_);
  return sequence;
}

EliasFano::EliasFano(std::span<const Index> values, Index universe) {
  Builder builder(Index(values.size()), universe);
  for (const Index value : values) builder.push(value);
  *this = builder.finish();
}

Index EliasFano::below(Index value) const {
  if (size_ == 0) return 0;
  // The values whose high bits are as many follow the zero that closes those with fewer.
  const int low = low_.width();
  const Index high = value >> low;
  Index at = high == 0 ? 0 : high_.select_zero(high - 1) + 1 - high;
  const Index rest = value & ((Index{1} << low) - 1);
  if (rest == 0) return at;
  for (int near = 0; near < 8; ++near, ++at)
    if (at == size_ || !high_.test(at + high) || low_[at] >= rest) return at;
  Index last = high_.select_zero(high) - high;
  while (at < last) {
    const Index middle = at + (last - at) / 2;
    if (low_[middle] < rest)
      at = middle + 1;
    else
      last = middle;
  }
  return at;
}

EliasFano::Entry EliasFano::last_up_to(Index value) const {
  const Index at = below(value + 1) - 1;
  // Its bit is the last one up to where it would be with the high
  // bits of `value`: often near, and found without a SELECT.
  constexpr int near = 4;
  const Index bit = (value >> low_.width()) + at;
  Index w = bit / 64;
  std::uint64_t word = high_.words()[std::size_t(w)] << (63 - bit % 64) >> (63 - bit % 64);
  for (int k = 0; word == 0 && k < near && w > 0; ++k) word = high_.words()[std::size_t(--w)];
  const Index its = word == 0 ? high_.select(at) : w * 64 + 63 - std::countl_zero(word);
  return {at, (its - at) << low_.width() | low_[at]};
}

Index EliasFano::find(Index value) const {
  const Index at = below(value), high = value >> low_.width();
  const bool there = at < size_ && high_.test(at + high) && low_[at] == (value & ((Index{1} << low_.width()) - 1));
  return there ? at : -1;
}

void EliasFano::read(Index first, Index n, Index* out) const {
  if (n <= 0) return;
  const int low = low_.width();
  Index bit = high_.select(first);
  auto w = std::size_t(bit / 64);
  std::uint64_t word = high_.words()[w] >> (bit % 64) << (bit % 64);
  for (Index i = first; i < first + n; ++i) {
    while (word == 0) word = high_.words()[++w];
    bit = Index(w) * 64 + std::countr_zero(word);
    word &= word - 1;
    *out++ = (bit - i) << low | low_[i];
  }
}

EliasFano EliasFano::from_words(Index size, Index universe, std::span<const std::uint64_t> low,
                                std::span<const std::uint64_t> high) {
  auto refuse = [&](const char* what) {
    throw Error(ErrorKind::argument,
                "a sequence of " + std::to_string(size) + " values below " + std::to_string(universe) + " " + what);
  };
  if (size < 0 || universe < 0 || size > most || FixedIntegers::bits_of(universe) > FixedIntegers::most_bits)
    refuse("cannot be");
  EliasFano sequence;
  sequence.size_ = size, sequence.universe_ = universe;
  sequence.low_ = FixedIntegers::from_words(size, low_bits(size, universe), low);
  const Index bits = high_bits(size, universe, sequence.low_.width());
  if (Index(high.size()) != Bitmap::words_of(bits)) refuse("has too many or too few words");
  sequence.high_ = Bitmap({high.begin(), high.end()}, bits, Bitmap::Find::both);
  if (sequence.high_.ones() != size) refuse("has another number of high parts");
  Index before = 0, values[64];
  for (Index i = 0; i < size; i += 64) {
    const Index n = std::min<Index>(64, size - i);
    sequence.read(i, n, values);
    for (Index k = 0; k < n; before = values[k++])
      if (values[k] < before || values[k] >= universe) refuse("does not ascend");
  }
  return sequence;
}

}  // namespace longshore

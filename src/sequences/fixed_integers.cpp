#include "longshore/sequences/fixed_integers.hpp"

#include <algorithm>
#include <string>

namespace longshore {

namespace {

/// So many have less than 2^63 bits.
constexpr Index most_integers = (Index{1} << 55) - 1;

void check(Index size, int width) {
  if (size < 0 || width < 0 || width > FixedIntegers::most_bits || size > most_integers)
    throw Error(ErrorKind::argument, std::to_string(size) + " integers of " + std::to_string(width) +
                                         " bits; widths are 0 to " + std::to_string(FixedIntegers::most_bits) +
                                         ", and at most " + std::to_string(most_integers) + " integers");
}

}  // namespace

Index FixedIntegers::bytes_of(Index size, int width) { return Index(8 * (ceil_div(checked_mul(size, width), 64) + 1)); }

FixedIntegers::FixedIntegers(Index size, int width) {
  check(size, width);
  size_ = size, width_ = std::uint64_t(width);
  words_ = std::make_unique<std::uint64_t[]>(words_of(size, width));
}

FixedIntegers::FixedIntegers(const FixedIntegers& other) : size_(other.size_), width_(other.width_) {
  const auto words = other.words();
  if (words.empty()) return;
  words_ = std::make_unique_for_overwrite<std::uint64_t[]>(words.size());
  std::copy(words.begin(), words.end(), words_.get());
}

void FixedIntegers::swap(FixedIntegers& other) noexcept {
  words_.swap(other.words_);
  const Index size = size_;
  const std::uint64_t width = width_;
  size_ = other.size_, width_ = other.width_;
  other.size_ = size, other.width_ = width;
}

bool FixedIntegers::operator==(const FixedIntegers& other) const {
  const auto mine = words(), theirs = other.words();
  return size_ == other.size_ && width_ == other.width_ &&
         std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end());
}

FixedIntegers FixedIntegers::of(std::span<const Index> values) {
  std::uint64_t all = 0;
  for (const Index value : values) all |= std::uint64_t(value);
  FixedIntegers list(Index(values.size()), bits_of(Index(all)));
  for (std::size_t k = 0; k < values.size(); ++k) list.set(Index(k), values[k]);
  return list;
}

FixedIntegers FixedIntegers::from_words(Index size, int width, std::span<const std::uint64_t> words) {
  check(size, width);
  auto refuse = [&](const char* what) {
    throw Error(ErrorKind::argument, std::to_string(size) + " integers of " + std::to_string(width) + " bits " + what);
  };
  if (words.size() != words_of(size, width)) refuse("are not what is stored");
  const auto used = std::size_t(size * width);
  const std::uint64_t behind = used % 64 == 0 ? 0 : words[used / 64] >> (used % 64);
  if (behind != 0 || words.back() != 0) refuse("have bits set behind the last");
  FixedIntegers list(size, width);
  std::copy(words.begin(), words.end(), list.words_.get());
  return list;
}

}  // namespace longshore

#include "longshore/sequences/fixed_integers.hpp"

#include <algorithm>
#include <string>

namespace longshore {

std::size_t FixedIntegers::words_of(Index size, int width) {
  return std::size_t(ceil_div(checked_mul(size, width), 64)) + 1;
}

Index FixedIntegers::bytes_of(Index size, int width) { return Index(8 * words_of(size, width)); }

FixedIntegers::FixedIntegers(Index size, int width) : size_(size), width_(width) {
  if (size < 0 || width < 0 || width > most_bits)
    throw Error(ErrorKind::argument, std::to_string(size) + " integers of " + std::to_string(width) + " bits; widths are 0 to " +
                                         std::to_string(most_bits));
  words_.resize(words_of(size, width));
  mask_ = (std::uint64_t{1} << width) - 1;
}

FixedIntegers FixedIntegers::of(std::span<const Index> values) {
  std::uint64_t all = 0;
  for (const Index value : values) all |= std::uint64_t(value);
  FixedIntegers list(Index(values.size()), bits_of(Index(all)));
  for (std::size_t k = 0; k < values.size(); ++k) list.set(Index(k), values[k]);
  return list;
}

FixedIntegers FixedIntegers::from_words(Index size, int width, std::span<const std::uint64_t> words) {
  auto refuse = [&](const char* what) {
    throw Error(ErrorKind::argument,
                std::to_string(size) + " integers of " + std::to_string(width) + " bits " + what);
  };
  if (size < 0 || width < 0 || width > most_bits || size > INT64_MAX / 64) refuse("cannot be");
  if (words.size() != words_of(size, width)) refuse("are not what is stored");
  FixedIntegers list;
  list.size_ = size, list.width_ = width, list.mask_ = (std::uint64_t{1} << width) - 1;
  list.words_.assign(words.begin(), words.end());
  const auto used = std::size_t(size * width);
  const std::uint64_t behind = used % 64 == 0 ? 0 : list.words_[used / 64] >> (used % 64);
  if (behind != 0 || list.words_.back() != 0) refuse("have bits set behind the last");
  return list;
}

}  // namespace longshore

#include "sequences/stored_sequences.hpp"

namespace longshore {

void write_fixed(WordWriter& out, const FixedIntegers& list) {
  out.index(list.width());
  out.list(list.words());
}

FixedIntegers read_fixed(WordReader& in, Index size) {
  const auto width = int(in.within(0, FixedIntegers::most_bits, "a width"));
  const auto words = in.list();
  return FixedIntegers::from_words(size, width, words);
}

void write_sequence(WordWriter& out, const EliasFano& sequence) {
  out.index(sequence.size()), out.index(sequence.universe());
  out.list(sequence.low().words());
  out.list(sequence.high().words());
}

EliasFano read_sequence(WordReader& in, Index most, Index bound) {
  const Index size = in.within(0, most, "a number of values"), universe = in.within(0, bound, "a bound of values");
  const auto low = in.list(), high = in.list();
  return EliasFano::from_words(size, universe, low, high);
}

}  // namespace longshore

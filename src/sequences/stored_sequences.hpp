/// `FixedIntegers` and `EliasFano` among stored words.
#pragma once

#include "longshore/sequences/elias_fano.hpp"
#include "sequences/stored_words.hpp"

namespace longshore {

void write_fixed(WordWriter& out, const FixedIntegers& list);
FixedIntegers read_fixed(WordReader& in, Index size);
void write_sequence(WordWriter& out, const EliasFano& sequence);
/// At most `most` values below `bound` at most.
EliasFano read_sequence(WordReader& in, Index most, Index bound);

}  // namespace longshore

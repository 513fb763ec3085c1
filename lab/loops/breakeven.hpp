/// The loops of `longshore bench breakeven`: assembling a put message from a stored AAPAIR encoding
/// of the identity relation, or while the relation is computed, and the rates that the model of it
/// asks for. Every function returns the seconds of one pass.
#pragma once

#include "tuples.hpp"

namespace longshore::bench {

/// A symbol of the AAPAIR encoding: positions of words of 64 bits.
struct AddressPair {
  Index source, destination;
};

/// What a put message holds of each word.
struct MessageWord {
  Index destination, word;
};

// Instructions of each loop besides making the tuple and reaching memory, as they are written: one addition a pointer,
// a comparison and a branch. GCC 12 and Clang 14 compile them to just these on x86-64.
inline constexpr Index decode_overhead = 4, recompute_overhead = 3, encode_overhead = 3;

/// Computes n tuples in n_g instructions each and stores them (t_g + t_o).
double encode_seconds(Instructions kind, Index n_g, AddressPair* pairs, Index n, Index passes);
/// Assembles n words from stored tuples (t_ac).
double decode_seconds(const AddressPair* pairs, const Index* source, MessageWord* message, Index n, Index passes);
/// Assembles n words while their tuples are computed in n_g instructions each (t_g + t_au).
double recompute_seconds(Instructions kind, Index n_g, const Index* source, MessageWord* message, Index n,
                         Index passes);

/// Issues 1024 instructions of the kind a pass (1024/r_i).
inline constexpr Index instructions_per_pass = 1024;
double issue_seconds(Instructions kind, Index passes);

// Reads or writes each of n words once a pass, a word at a time: one after the other, or in steps
// of about 0.618 n modulo n, which no prefetcher follows. The latter needs n to be a power of two,
// at least 4, and two instructions a word to find the place.
double read_seconds(const Index* words, Index n, Index passes);
double write_seconds(Index* words, Index n, Index passes);
double random_read_seconds(const Index* words, Index n, Index passes);
double random_write_seconds(Index* words, Index n, Index passes);

}  // namespace longshore::bench

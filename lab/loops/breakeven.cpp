/// Decoding, recomputing and encoding. Plain loops of plain words: the barriers keep the compiler from leaving
/// instructions out and from vectorising, so that what is timed is what is counted.
#include "breakeven.hpp"

#include "timed.hpp"

namespace longshore::bench {

namespace {

/// Two stores: the compiler makes no vector of them.
void store(Index& first, Index a, Index& second, Index b) {
  first = a;
  asm volatile("" ::: "memory");
  second = b;
}

template <Instructions kind, Index N>
struct Loops {
  static double encode(AddressPair* pairs, Index n, Index passes) {
    return timed(passes, [=] {
      Tuples<kind, N> tuples;
      for (auto* p = pairs; p != pairs + n; ++p) {
        const Index address = tuples.next();
        store(p->source, address, p->destination, address);
      }
    });
  }
  static double recompute(const Index* source, MessageWord* message, Index n, Index passes) {
    return timed(passes, [=] {
      Tuples<kind, N> tuples;
      for (auto* m = message; m != message + n; ++m) {
        const Index address = tuples.next();
        store(m->destination, address, m->word, source[address]);
      }
    });
  }
};

using Encode = double (*)(AddressPair*, Index, Index);
using Recompute = double (*)(const Index*, MessageWord*, Index, Index);

template <Instructions kind, std::size_t... k>
constexpr std::array<Encode, sizeof...(k)> encode_loops(std::index_sequence<k...>) {
  return {&Loops<kind, Index(k) + 1>::encode...};
}
template <Instructions kind, std::size_t... k>
constexpr std::array<Recompute, sizeof...(k)> recompute_loops(std::index_sequence<k...>) {
  return {&Loops<kind, Index(k) + 1>::recompute...};
}

constexpr auto every_n_g = std::make_index_sequence<std::size_t(most_instructions)>();

std::size_t place(Index n_g) {
  if (n_g < 1 || n_g > most_instructions)
    throw Error(ErrorKind::argument, "n_g is " + std::to_string(n_g) + "; there are loops for 1 to " +
                                         std::to_string(most_instructions) + " instructions");
  return std::size_t(n_g - 1);
}

}  // namespace

double encode_seconds(Instructions kind, Index n_g, AddressPair* pairs, Index n, Index passes) {
  static constexpr auto dependent = encode_loops<Instructions::dependent>(every_n_g);
  static constexpr auto independent = encode_loops<Instructions::independent>(every_n_g);
  return (kind == Instructions::dependent ? dependent : independent)[place(n_g)](pairs, n, passes);
}

double recompute_seconds(Instructions kind, Index n_g, const Index* source, MessageWord* message, Index n,
                         Index passes) {
  static constexpr auto dependent = recompute_loops<Instructions::dependent>(every_n_g);
  static constexpr auto independent = recompute_loops<Instructions::independent>(every_n_g);
  return (kind == Instructions::dependent ? dependent : independent)[place(n_g)](source, message, n, passes);
}

double decode_seconds(const AddressPair* pairs, const Index* source, MessageWord* message, Index n, Index passes) {
  return timed(passes, [=] {
    auto* m = message;
    for (auto* p = pairs; p != pairs + n; ++p, ++m) {
      Index from = p->source, to = p->destination;
      asm volatile("" : "+r"(from), "+r"(to));
      store(m->destination, to, m->word, source[from]);
      asm volatile("" : "+r"(m));  // a pointer of its own
    }
  });
}

}  // namespace longshore::bench

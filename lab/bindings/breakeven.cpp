#include "breakeven.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <numeric>

#include "loops.hpp"
#include "words.hpp"

namespace longshore::bench {

namespace {

Instructions kind_of(const std::string& word) {
  if (word == "dependent") return Instructions::dependent;
  if (word == "independent") return Instructions::independent;
  throw Error(ErrorKind::argument, "instructions are \"dependent\" or \"independent\", not \"" + word + "\"");
}

/// Calls a loop without Python's lock.
template <class F>
double run(Index passes, F&& loop) {
  if (passes < 1) throw Error(ErrorKind::argument, "passes is " + std::to_string(passes) + "; it must be at least 1");
  nb::gil_scoped_release release;
  return loop();
}

/// The memory of the loops: n words at the source, n stored tuples, a message of n words with their destinations.
class AssemblyLoops {
 public:
  explicit AssemblyLoops(Index n) : n_(n) {
    if (n < 4 || (n & (n - 1)) != 0)
      throw Error(ErrorKind::argument, "n is " + std::to_string(n) + " words; it must be a power of two, at least 4");
    source_ = zeroed_words(n);
    pairs_ = zeroed_words(checked_mul(2, n));
    message_ = zeroed_words(2 * n);
    std::iota(source_.get(), source_.get() + n, Index(1) << 32);
  }

  /// Zeroes tuples and message, so that it shows what a loop has written.
  void clear() {
    std::fill_n(pairs_.get(), 2 * n_, 0);
    std::fill_n(message_.get(), 2 * n_, 0);
  }

  double encode(const std::string& kind, Index n_g, Index passes) {
    return run(passes, [&, k = kind_of(kind)] { return encode_seconds(k, n_g, pairs(), n_, passes); });
  }
  double decode(Index passes) {
    return run(passes, [&] { return decode_seconds(pairs(), source_.get(), message(), n_, passes); });
  }
  double recompute(const std::string& kind, Index n_g, Index passes) {
    return run(passes,
               [&, k = kind_of(kind)] { return recompute_seconds(k, n_g, source_.get(), message(), n_, passes); });
  }
  // The rates over the very memory that assembly reads and writes so: tuples and message in order, the source anywhere.
  double read(Index passes) { return rate(&read_seconds, pairs_.get(), 2 * n_, passes); }
  double write(Index passes) { return rate(&write_seconds, message_.get(), 2 * n_, passes); }
  double random_read(Index passes) { return rate(&random_read_seconds, source_.get(), n_, passes); }
  double random_write(Index passes) { return rate(&random_write_seconds, message_.get(), n_, passes); }

  using View = nb::ndarray<nb::numpy, const Index, nb::ndim<2>>;
  View view_pairs() const { return View(pairs_.get(), {std::size_t(n_), 2}, nb::find(this)); }
  View view_message() const { return View(message_.get(), {std::size_t(n_), 2}, nb::find(this)); }

 private:
  AddressPair* pairs() { return reinterpret_cast<AddressPair*>(pairs_.get()); }
  MessageWord* message() { return reinterpret_cast<MessageWord*>(message_.get()); }
  /// Seconds of one word.
  template <class F>
  static double rate(F* loop, Index* words, Index n, Index passes) {
    return run(passes, [=] { return loop(words, n, passes); }) / double(n);
  }

  Index n_;
  Words source_, pairs_, message_;
};

}  // namespace

void bind_breakeven(nb::module_& module) {
  module.attr("most_instructions") = most_instructions;
  module.attr("decode_overhead") = decode_overhead;
  module.attr("recompute_overhead") = recompute_overhead;
  module.attr("encode_overhead") = encode_overhead;
  module.def(
      "issue_seconds",
      [](const std::string& kind, Index passes) {
        const auto instructions = kind_of(kind);
        return run(passes, [&] { return issue_seconds(instructions, passes); }) / double(instructions_per_pass);
      },
      nb::arg("kind"), nb::arg("passes"), "Seconds of an instruction, 1/r_i, of passes of 1024.");

  using Loops = AssemblyLoops;
  const auto kind = nb::arg("kind"), n_g = nb::arg("n_g"), passes = nb::arg("passes");
  nb::class_<Loops>(
      module, "AssemblyLoops",
      "Loops that assemble a put message of n words (a power of two) by the identity relation. Source word k is "
      "2^32 + k. All give the mean seconds of a pass, or of a word; n_g is the instructions that make one tuple.")
      .def(nb::init<Index>(), nb::arg("n"))
      .def("clear", &Loops::clear, "Zeroes tuples and message, so that they show what a loop has written.")
      .def("encode", &Loops::encode, kind, n_g, passes, "Computes the relation and stores it (AAPAIR): t_g + t_o.")
      .def("decode", &Loops::decode, passes, "Assembles from the stored relation: t_ac.")
      .def("recompute", &Loops::recompute, kind, n_g, passes, "Assembles while the relation is computed: t_g + t_au.")
      .def("read", &Loops::read, passes, "Seconds a word, 1/r_rc.")
      .def("write", &Loops::write, passes, "Seconds a word, 1/r_wc.")
      .def("random_read", &Loops::random_read, passes, "Seconds a word, 1/r_rr.")
      .def("random_write", &Loops::random_write, passes, "Seconds a word, 1/r_wr.")
      .def_prop_ro("pairs", &Loops::view_pairs, "The stored (source, destination), read-only.")
      .def_prop_ro("message", &Loops::view_message, "The (destination, word) of the message, read-only.");
}

}  // namespace longshore::bench

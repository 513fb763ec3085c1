/// What benches that ask for ranks have in common: questions as arrays, and how they follow one another.
#pragma once

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include "asked.hpp"
#include "loops.hpp"

namespace longshore::bench {

using Numbers = nb::ndarray<const Index, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

inline std::span<const Index> of(const Numbers& numbers) { return {numbers.data(), numbers.size()}; }

inline bench::Questions questions(const std::string& word) {
  if (word == "independent") return bench::Questions::independent;
  if (word == "dependent") return bench::Questions::dependent;
  throw Error(ErrorKind::argument, "questions are \"independent\" or \"dependent\", not \"" + word + "\"");
}

/// Positions or ranks that a loop will not look at again.
inline void check_questions(const Numbers& numbers, Index bound, Index passes) {
  if (passes < 1) throw Error(ErrorKind::argument, "passes is " + std::to_string(passes) + "; it must be at least 1");
  for (const Index number : of(numbers))
    if (number < 0 || number >= bound)
      throw Error(ErrorKind::argument, std::to_string(number) + " is outside [0, " + std::to_string(bound) + ")");
}

}  // namespace longshore::bench

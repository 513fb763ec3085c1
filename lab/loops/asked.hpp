/// The loop that questions to a set or list of ranks are timed in.
#pragma once

#include <span>

#include "timed.hpp"

namespace longshore::bench {

/// How questions follow one another: all at once, or each waiting for the answer before.
enum class Questions { independent, dependent };

/// Asks for each; a dependent question is known only with the answer before, though it is always the same.
template <class Ask>
double asked(std::span<const Index> questions, Questions how, Index passes, Ask ask) {
  Index sum = 0;
  int shift = 48;
  asm volatile("" : "+r"(shift));
  auto pass = [&] {
    if (how == Questions::independent) {
      for (const Index question : questions) sum += ask(question);
    } else {
      Index before = 0;
      for (const Index question : questions) {
        // Whatever the answer was, less than 2^48, nothing is added; the compiler cannot know.
        before = ask(question + (before >> shift));
      }
      sum += before;
    }
  };
  const double seconds = timed(passes, pass);
  asm volatile("" : : "r"(sum));
  return seconds;
}

}  // namespace longshore::bench

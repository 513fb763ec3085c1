/// Seconds of one pass of a loop.
#pragma once

#include <chrono>

#include <longshore/core/checked.hpp>

namespace longshore::bench {

/// Runs `pass` so many times (at least once) and returns the mean seconds of one.
template <class F>
double timed(Index passes, F&& pass) {
  const auto start = std::chrono::steady_clock::now();
  for (Index k = 0; k < passes; ++k) {
    pass();
    asm volatile("" ::: "memory");  // the next pass does it all again
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / double(passes);
}

}  // namespace longshore::bench

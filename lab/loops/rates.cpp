/// How fast this machine issues instructions and reads and writes words, one at a time as the assembly loops do.
#include "breakeven.hpp"
#include "timed.hpp"

namespace longshore::bench {

namespace {

inline constexpr Index unrolled = 8;

template <Instructions kind>
double issue(Index passes) {
  Tuples<kind, 128> tuples;
  return timed(passes, [&] {
    for (Index k = 0; k < instructions_per_pass; k += 128) tuples.next();
  });
}

void read(const Index& word) { asm volatile("" : : "r"(word)); }

/// A value that the compiler must take for another one at each store, so that it stores words one by one.
void write(Index& word, Index& value) {
  asm volatile("" : "+r"(value));
  word = value;
}

/// Visits every position below n = 2^k >= 4 once, far apart. Four
/// walks, so that a position never waits for the one just before.
template <class F>
void visit_far_apart(Index n, F&& visit) {
  const std::uint64_t mask = std::uint64_t(n) - 1, step = std::uint64_t(0.6180339887498949 * double(n)) | 1;
  std::uint64_t a = 0, b = step, c = 2 * step, d = 3 * step;
  for (Index k = 0; k < n / 4; ++k) {
    visit(a & mask), visit(b & mask), visit(c & mask), visit(d & mask);
    a += 4 * step, b += 4 * step, c += 4 * step, d += 4 * step;
    asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
  }
}

}  // namespace

double issue_seconds(Instructions kind, Index passes) {
  return kind == Instructions::dependent ? issue<Instructions::dependent>(passes)
                                         : issue<Instructions::independent>(passes);
}

double read_seconds(const Index* words, Index n, Index passes) {
  return timed(passes, [=] {
    Index k = 0;
    for (; k + unrolled <= n; k += unrolled) {
      read(words[k]), read(words[k + 1]), read(words[k + 2]), read(words[k + 3]);
      read(words[k + 4]), read(words[k + 5]), read(words[k + 6]), read(words[k + 7]);
    }
    for (; k < n; ++k) read(words[k]);
  });
}

double write_seconds(Index* words, Index n, Index passes) {
  return timed(passes, [=] {
    Index k = 0, value = 1;
    for (; k + unrolled <= n; k += unrolled) {
      write(words[k], value), write(words[k + 1], value), write(words[k + 2], value), write(words[k + 3], value);
      write(words[k + 4], value), write(words[k + 5], value), write(words[k + 6], value), write(words[k + 7], value);
    }
    for (; k < n; ++k) write(words[k], value);
  });
}

double random_read_seconds(const Index* words, Index n, Index passes) {
  return timed(passes, [=] { visit_far_apart(n, [=](std::uint64_t k) { read(words[k]); }); });
}

double random_write_seconds(Index* words, Index n, Index passes) {
  return timed(passes, [=] {
    Index value = 1;
    visit_far_apart(n, [&](std::uint64_t k) { write(words[k], value); });
  });
}

}  // namespace longshore::bench

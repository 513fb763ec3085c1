/// Bytes from outside, whatever they hold: an `Error` in printable words or a value that holds together, in a moment.
#pragma once

#include <cstdlib>
#include <ctime>
#include <iostream>
#include <string>

#include "longshore/core/error.hpp"
#include "support/memory.hpp"
#include "support/seal.hpp"

namespace longshore::test {

inline void require(bool good, const Bytes& bytes, const char* what) {
  if (good) return;
  std::cerr << what << ':' << std::hex;
  for (const auto byte : bytes) std::cerr << ' ' << int(byte);
  std::cerr << '\n';
  std::abort();
}

/// Calls `read`, which throws an `Error(argument)` in printable words or holds. True where it holds.
template <class Read>
bool check_read(const Bytes& bytes, Read&& read) {
  constexpr double patience = 30;  // seconds of the processor; what is followed instead of refused takes hours
  const auto start = std::clock();
  bool good = false;
  try {
    read();
    good = true;
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::argument, bytes, "has an error of another kind");
    for (const char c : std::string(error.what())) require(c >= ' ' && c <= '~', bytes, "has an unprintable error");
  }
  require(double(std::clock() - start) / CLOCKS_PER_SEC < patience, bytes, "takes too long");
  return good;
}

}  // namespace longshore::test

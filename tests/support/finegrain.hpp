/// Worlds of the finegrain engine, in builds that have it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include "longshore/engines/finegrain.hpp"
#include "support/quick.hpp"

namespace longshore::test {

class Finegrain : public testing::Test {
  void SetUp() override {
    if (finegrain::available()) return;
    const char* ci = std::getenv("CI");
    if (ci != nullptr && std::string_view(ci) == "true") FAIL() << "this build has no Boost.Context; CI needs it";
    GTEST_SKIP() << "this build has no Boost.Context";
  }
};

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <class T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}
inline std::span<std::byte> bytes_of(std::vector<Index>& values) { return std::as_writable_bytes(std::span(values)); }

/// A number that a rank, or a member of a communicator, sent.
template <class Receiver>
Index receive(Receiver& me, Index from, Index tag) {
  Index value = -1;
  me.receive(from, tag, bytes_of(value));
  return value;
}

inline std::vector<Index> world_sizes() {
  return quick() ? std::vector<Index>{1, 2, 7, 500} : std::vector<Index>{1, 2, 7, 1000, 10000};
}

}  // namespace longshore::test

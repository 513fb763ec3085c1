/// The NAS parallel benchmarks' random numbers: x -> 5^13 x modulo 2^46, each scaled into (0, 1).
#pragma once

#include "longshore/core/checked.hpp"

namespace longshore::apps {

class NasRandom {
 public:
  static constexpr std::uint64_t multiplier = 1220703125;  // 5^13
  static constexpr std::uint64_t seed = 314159265;

  /// The generator from which `skipped` numbers have been drawn already.
  explicit NasRandom(Index skipped = 0, std::uint64_t from = seed) : state_(from) {
    for (std::uint64_t power = multiplier, rest = std::uint64_t(skipped); rest != 0; rest >>= 1, power *= power)
      if (rest & 1) state_ *= power;  // modulo 2^64, of which 2^46 is a factor
  }
  double operator()() {
    state_ = state_ * multiplier & ((std::uint64_t{1} << 46) - 1);
    return double(state_) * 0x1p-46;
  }

 private:
  std::uint64_t state_;
};

}  // namespace longshore::apps

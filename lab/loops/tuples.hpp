/// Making the tuples (0, 0), (1, 1), ... of the identity relation in a given number of integer instructions.
#pragma once

#include <array>
#include <utility>

#include <longshore/core/checked.hpp>

namespace longshore::bench {

/// What one instruction waits for. A machine that issues several at once does `independent` ones at
/// its issue rate, the paper's r_i; in a `dependent` chain each waits for the one before, from
/// tuple to tuple too, as in an address computed step by step.
enum class Instructions { dependent, independent };

/// The most n_g that loops are compiled for.
inline constexpr Index most_instructions = 64;

/// One addition of two registers that the compiler can neither leave out nor combine with another. (Additions of small
/// constants would not do: some processors carry those out for nothing when they rename registers.)
inline void add(Index& to, Index what) {
  to += what;
  asm volatile("" : "+r"(to));
}

/// `next()` returns 0, 1, 2, ... and executes N >= 1 additions for it.
template <Instructions kind, Index N>
class Tuples {
 public:
  Tuples() { asm volatile("" : "+r"(one_), "+r"(zero_)); }

  Index next() {
    add(address_, one_);
    rest(std::make_index_sequence<std::size_t(N - 1)>());
    return address_;
  }

 private:
  static constexpr std::size_t chains = 6;  // more than additions are done in a cycle

  template <std::size_t... k>
  void rest(std::index_sequence<k...>) {
    if constexpr (kind == Instructions::dependent) {
      ((void(k), add(address_, zero_)), ...);
    } else {
      (add(others_[k % chains], zero_), ...);
    }
  }

  Index address_ = -1, one_ = 1, zero_ = 0;
  std::array<Index, chains> others_{};
};

}  // namespace longshore::bench

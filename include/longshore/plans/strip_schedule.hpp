/// plans: in which strips a transfer comes, so that one is worked on while others are under way (Iancu, Husbands &
/// Chen, "Message strip mining heuristics for high speed networks"). A schedule is a value; its strips are never
/// stored.
#pragma once

#include <iterator>
#include <string>
#include <string_view>

#include "longshore/sequences/interval.hpp"

namespace longshore {

/// The strips of so many elements, in their order: intervals that are not empty and end where the next one begins.
class Strips {
 public:
  class Iterator {
   public:
    using value_type = Interval;
    using difference_type = std::ptrdiff_t;

    Iterator() = default;
    /// Strips of [0, elements): the first one has `size`, each of the others `growth` times that of the one before it,
    /// rounded down.
    Iterator(Index elements, Index size, double growth);
    Interval operator*() const { return strip_; }
    Iterator& operator++();
    Iterator operator++(int) {
      auto before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator&) const = default;
    bool operator==(std::default_sentinel_t) const { return strip_.empty(); }

   private:
    Index elements_ = 0, size_ = 0;
    double growth_ = 1, grown_ = 0;  ///< the size before it is rounded down
    Interval strip_;
  };

  explicit Strips(Iterator begin) : begin_(begin) {}
  Iterator begin() const { return begin_; }
  std::default_sentinel_t end() const { return {}; }

 private:
  Iterator begin_;
};

/// How a loop over remote elements gets them: one by one, all at once, or in strips, of which `depth` (the paper's
/// unroll depth U) are under way while another one is worked on. Sizes are in elements.
class StripSchedule {
 public:
  enum class Kind {
    small,       ///< element by element, each waited for: the loop as it is written without any optimisation
    vectorized,  ///< all in one transfer, which is waited for
    fixed,       ///< strips of S elements
    variable,    ///< strips that grow: S_i = (1 + f) S_{i-1}
  };
  /// Of f, if it is not 0, so that there are never more strips than can be gone through.
  static constexpr double least_growth = 1e-6, most_growth = 1e6;
  static constexpr Index most_depth = 1 << 16;

  static StripSchedule small() { return {Kind::small, 1, 0, 0}; }
  static StripSchedule vectorized() { return {Kind::vectorized, INT64_MAX, 0, 0}; }
  /// These throw `Error(argument)` for a size below 1, a depth outside [1, `most_depth`], and an f that is neither 0
  /// nor in [`least_growth`, `most_growth`].
  static StripSchedule fixed(Index size, Index depth = 1);
  static StripSchedule variable(Index first_size, double growth, Index depth = 1);
  /// What `to_string` writes; depths may be left out. Throws `Error(argument)` that says at which character what is
  /// expected.
  static StripSchedule parse(std::string_view text);

  Kind kind() const { return kind_; }
  Index size() const { return size_; }  ///< of the first strip: S, or S_0; 1 for `small`, INT64_MAX for `vectorized`
  double growth() const { return growth_; }  ///< f; 0 where strips do not grow
  Index depth() const { return depth_; }     ///< U; 0 for `small` and `vectorized`, which never have two strips

  /// The strips of this many elements: the last one is what is left. Throws `Error(argument)` where there are fewer
  /// than none, as do the functions below.
  Strips strips(Index elements) const;
  /// Of these. Takes no time but for strips that grow, which are gone through.
  Index count(Index elements) const;
  /// Elements that the largest n consecutive strips have together, n >= 1. Whoever issues strip i + U before strip i is
  /// worked on, as figures 4 and 5 of the paper do, holds U + 1 at once; who does so afterwards, in the place of strip
  /// i, holds U of them, and with U = 1 nothing is under way meanwhile.
  Index buffer(Index elements, Index strips) const;

  /// "small", "vectorized", "fixed(4096, 2)" or "variable(1024, 0.3, 2)".
  std::string to_string() const;
  bool operator==(const StripSchedule&) const = default;

 private:
  StripSchedule(Kind kind, Index size, double growth, Index depth)
      : kind_(kind), size_(size), growth_(growth), depth_(depth) {}

  Kind kind_;
  Index size_;
  double growth_;
  Index depth_;
};

}  // namespace longshore

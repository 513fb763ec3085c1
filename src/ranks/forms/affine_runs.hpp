/// A list of affine runs, in any order: where each begins, at which rank, and by how much it goes on.
#pragma once

#include "ranks/forms/common.hpp"

namespace longshore::ranks {

class AffineRunsForm {
 public:
  static constexpr std::string_view name = "affine-runs";
  explicit AffineRunsForm(std::span<const AffineRun> runs);
  static Index bytes_of(Index runs, Index size, Index highest, Index widest_step);

  Index size() const { return size_; }
  Index select(Index i) const {
    const Index j = run_of(i);
    return firsts_[j] + step(j) * (i - starts_[j]);
  }
  Index rank(Index w) const;
  void read(Index first, Index n, Index* out) const;
  Index bytes() const {
    return starts_.memory_bytes() + firsts_.memory_bytes() + steps_.memory_bytes() + directory_.memory_bytes() +
           by_rank_.memory_bytes();
  }
  void write(WordWriter& out) const;
  static AffineRunsForm stored(WordReader& in, const FormHead& head);
  Checked check(const FormHead& head) const;

  Index runs() const { return starts_.size(); }
  AffineRun run(Index j) const;

 private:
  Index step(Index j) const { return least_step_ + steps_[j]; }
  Index run_of(Index i) const;
  Index end_of(Index j) const { return j + 1 < starts_.size() ? starts_[j + 1] : size_; }

  Index size_ = 0, least_step_ = 0;
  FixedIntegers starts_, firsts_, steps_;
  FixedIntegers directory_;  ///< the run of each position that is a multiple of 2^shift_, and the last run
  int shift_ = 0;
  bool apart_ = false;  ///< no two runs' extents overlap: by_rank_ orders them, unless they ascend as they are
  FixedIntegers by_rank_;
};

}  // namespace longshore::ranks

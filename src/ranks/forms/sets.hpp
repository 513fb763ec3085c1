/// Ascending ranks: Elias–Fano, its complement, a bitmap with
/// counts for each 512 bits, runs as two Elias–Fano sequences.
#pragma once

#include "ranks/forms/common.hpp"

namespace longshore::ranks {

/// The members themselves.
class EliasFanoForm {
 public:
  static constexpr std::string_view name = "elias-fano";
  EliasFanoForm(const Members& members, Index lowest, Index highest);
  static Index bytes_of(Index size, Index span) { return EliasFano::bytes_of(size, span); }

  Index size() const { return members_.size(); }
  Index select(Index i) const { return base_ + members_[i]; }
  Index rank(Index w) const {
    const Index value = w - base_;
    if (value < 0 || value >= members_.universe()) return nobody;
    const auto found = members_.find(value);
    return found < 0 ? nobody : found;
  }
  void read(Index first, Index n, Index* out) const {
    members_.read(first, n, out);
    for (Index k = 0; k < n; ++k) out[k] += base_;
  }
  Index bytes() const { return members_.memory_bytes(); }
  void write(WordWriter& out) const;
  static EliasFanoForm stored(WordReader& in, const FormHead& head);
  Checked check(const FormHead& head) const;

 private:
  EliasFanoForm() = default;
  Index base_ = 0;
  EliasFano members_;
};

/// Those who are no members, for maps of almost all of a stretch: number of members before each hole. SELECT(i) is i
/// and the holes that have at most i members before them.
class HolesForm {
 public:
  static constexpr std::string_view name = "holes";
  HolesForm(const Members& members, Index lowest, Index highest);
  static Index bytes_of(Index size, Index span) { return EliasFano::bytes_of(span - size, size + 1); }

  Index size() const { return size_; }
  Index select(Index i) const { return base_ + i + before_.below(i + 1); }
  Index rank(Index w) const;
  void read(Index first, Index n, Index* out) const;
  Index bytes() const { return before_.memory_bytes(); }
  void write(WordWriter& out) const;
  static HolesForm stored(WordReader& in, const FormHead& head);
  Checked check(const FormHead& head) const;

  Index holes() const { return before_.size(); }
  /// visit(first, last) for the stretches between holes.
  template <class Visit>
  void each_stretch(Visit visit) const {
    Index position = 0, next;
    for (Index hole = 0; hole <= holes(); ++hole, position = next) {
      next = hole < holes() ? before_[hole] : size_;
      if (next > position) visit(base_ + position + hole, base_ + next + hole);
    }
  }

 private:
  HolesForm() = default;
  Index base_ = 0, size_ = 0;
  EliasFano before_;
};

/// A bit for each rank from the lowest member to the highest.
class BitmapForm {
 public:
  static constexpr std::string_view name = "bitmap512";
  BitmapForm(const Members& members, Index lowest, Index highest);
  /// From bits that are there already: bit 0 is rank `base`.
  BitmapForm(Index base, std::vector<std::uint64_t> words, Index bits)
      : base_(base), bits_(std::move(words), bits, Bitmap::Find::ones) {}
  static Index bytes_of(Index size, Index span) { return Bitmap::bytes_of(span, size, Bitmap::Find::ones); }

  Index size() const { return bits_.ones(); }
  Index select(Index i) const { return base_ + bits_.select(i); }
  Index rank(Index w) const {
    const Index bit = w - base_;
    return bit < 0 || bit >= bits_.size() || !bits_.test(bit) ? nobody : bits_.rank(bit);
  }
  void read(Index first, Index n, Index* out) const;
  Index bytes() const { return bits_.memory_bytes(); }
  void write(WordWriter& out) const;
  static BitmapForm stored(WordReader& in, const FormHead& head);
  Checked check(const FormHead& head) const;
  Index base() const { return base_; }
  const Bitmap& bits() const { return bits_; }

 private:
  Index base_;
  Bitmap bits_;
};

/// Maximal runs of consecutive ranks: where each begins among the ranks and among the members.
class RunsForm {
 public:
  static constexpr std::string_view name = "runs";
  explicit RunsForm(const Members& members);
  static Index bytes_of(Index runs, Index size, Index span) {
    return EliasFano::bytes_of(runs, span) + EliasFano::bytes_of(runs, size);
  }

  Index size() const { return positions_.universe(); }
  Index select(Index i) const {
    const auto [j, position] = positions_.last_up_to(i);
    return base_ + starts_[j] + i - position;
  }
  Index rank(Index w) const;
  void read(Index first, Index n, Index* out) const;
  Index bytes() const { return starts_.memory_bytes() + positions_.memory_bytes(); }
  void write(WordWriter& out) const;
  static RunsForm stored(WordReader& in, const FormHead& head);
  Checked check(const FormHead& head) const;

  Index runs() const { return starts_.size(); }
  /// visit(first, last) for each run.
  template <class Visit>
  void each(Visit visit) const {
    for (Index j = 0; j < runs(); ++j) visit(base_ + starts_[j], base_ + starts_[j] + end_of(j) - positions_[j]);
  }

 private:
  RunsForm() = default;
  Index end_of(Index j) const { return j + 1 < positions_.size() ? positions_[j + 1] : size(); }

  Index base_ = 0;
  EliasFano starts_, positions_;
};

}  // namespace longshore::ranks

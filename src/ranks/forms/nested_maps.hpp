/// Forms made of other maps: a map in terms of its parent, an outer list of firsts with the same inner loops, chunks.
#pragma once

#include "ranks/forms/common.hpp"

namespace longshore::ranks {

/// Member i is the parent's member at positions[i].
class ChildForm {
 public:
  static constexpr std::string_view name = "child";
  ChildForm(RankMap parent, RankMap positions)
      : maps_(std::make_unique<const Maps>(Maps{std::move(parent), std::move(positions)})) {}

  Index size() const { return positions().size(); }
  Index select(Index i) const { return parent().select(positions().select(i)); }
  Index rank(Index w) const {
    const Index position = parent().rank(w);
    return position == nobody ? nobody : positions().rank(position);
  }
  void read(Index first, Index n, Index* out) const;
  Index bytes() const { return parent().bytes() + positions().bytes() + Index(sizeof(Maps)); }
  void write(WordWriter& out) const;
  static ChildForm stored(WordReader& in, const FormHead& head);
  Checked check(const FormHead& head) const;

  const RankMap& parent() const { return maps_->parent; }
  const RankMap& positions() const { return maps_->positions; }

 private:
  /// Apart from the form, as every form takes as much as the largest.
  struct Maps {
    RankMap parent, positions;
  };
  std::unique_ptr<const Maps> maps_;
};

/// Member i is base + unit * outer[i / m] + inner[i % m], m members of the inner loops; they stay below `unit`.
class ProductForm {
 public:
  static constexpr std::string_view name = "product";
  static constexpr Index parts_bytes = sizeof(RankMap);  ///< beside what the outer map and the inner loops keep
  ProductForm(RankMap outer, AffineNest inner, Index base, Index unit);

  Index size() const { return outer().size() * inner().size(); }
  Index select(Index i) const {
    const Index m = inner().size(), o = shift_ < 0 ? i / m : i >> shift_;
    return base_ + unit_ * outer().select(o) + inner().select(i - o * m);
  }
  Index rank(Index w) const;
  void read(Index first, Index n, Index* out) const;
  Index bytes() const { return outer().bytes() + inner().bytes() + parts_bytes; }
  void write(WordWriter& out) const;
  static ProductForm stored(WordReader& in, const FormHead& head);
  Checked check(const FormHead& head) const;

  const RankMap& outer() const { return parts_->outer; }
  ProductForm with_outer(RankMap outer) const { return ProductForm(std::move(outer), inner(), base_, unit_); }

 private:
  struct Parts {
    RankMap outer;
    AffineNest inner;
  };
  const AffineNest& inner() const { return parts_->inner; }

  std::unique_ptr<const Parts> parts_;
  Index base_, unit_;
  int shift_;  ///< where the inner loops have a power of two of members, which; else -1
};

/// Maps of 4096 members each, the last perhaps of fewer.
class ChunksForm {
 public:
  static constexpr std::string_view name = "chunks";
  static constexpr Index chunk = 4096;
  ChunksForm(const Members& members, Index world, bool ascending);

  Index size() const { return chunks_.empty() ? 0 : (Index(chunks_.size()) - 1) * chunk + chunks_.back().size(); }
  Index select(Index i) const { return chunks_[std::size_t(i / chunk)].select(i % chunk); }
  Index rank(Index w) const;
  void read(Index first, Index n, Index* out) const;
  Index bytes() const;
  void write(WordWriter& out) const;
  static ChunksForm stored(WordReader& in, const FormHead& head);
  Checked check(const FormHead& head) const;

 private:
  ChunksForm(std::vector<RankMap> chunks, bool ascending) : chunks_(std::move(chunks)), ascending_(ascending) {}
  std::vector<RankMap> chunks_;
  bool ascending_;
};

}  // namespace longshore::ranks

/// Forms made of other maps: a map in terms of its parent, an outer list of firsts with the same inner loops, chunks,
/// and the forms of users' modules.
#pragma once

#include "ranks/forms/common.hpp"

namespace longshore::ranks {

/// Member i is the parent's member at positions[i].
class ChildForm {
 public:
  static constexpr std::string_view name = "child";
  ChildForm(RankMap parent, RankMap positions) : parent_(std::move(parent)), positions_(std::move(positions)) {}

  Index size() const { return positions_.size(); }
  Index select(Index i) const { return parent_.select(positions_.select(i)); }
  Index rank(Index w) const {
    const Index position = parent_.rank(w);
    return position == nobody ? nobody : positions_.rank(position);
  }
  void read(Index first, Index n, Index* out) const;
  Index bytes() const { return parent_.bytes() + positions_.bytes() + 2 * Index(sizeof(RankMap)); }
  void write(WordWriter& out) const;
  static ChildForm stored(WordReader& in, const FormHead& head);
  Checked check(const FormHead& head) const;

  const RankMap& parent() const { return parent_; }
  const RankMap& positions() const { return positions_; }

 private:
  RankMap parent_, positions_;
};

/// Member i is base + unit * outer[i / m] + inner[i % m], m members of the inner loops; they stay below `unit`.
class ProductForm {
 public:
  static constexpr std::string_view name = "product";
  ProductForm(RankMap outer, AffineNest inner, Index base, Index unit);

  Index size() const { return outer_.size() * inner_.size(); }
  Index select(Index i) const {
    const Index m = inner_.size(), o = shift_ < 0 ? i / m : i >> shift_;
    return base_ + unit_ * outer_.select(o) + inner_.select(i - o * m);
  }
  Index rank(Index w) const;
  void read(Index first, Index n, Index* out) const;
  Index bytes() const { return outer_.bytes() + inner_.bytes() + 2 * Index(sizeof(Index)) + Index(sizeof(RankMap)); }
  void write(WordWriter& out) const;
  static ProductForm stored(WordReader& in, const FormHead& head);
  Checked check(const FormHead& head) const;

  const RankMap& outer() const { return outer_; }
  ProductForm with_outer(RankMap outer) const { return ProductForm(std::move(outer), inner_, base_, unit_); }

 private:
  RankMap outer_;
  AffineNest inner_;
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

/// What a user's module made. It is stored as a packed list, for this library cannot read it back.
class UserForm {
 public:
  static constexpr std::string_view name = "user";
  explicit UserForm(std::shared_ptr<const CustomForm> form) : form_(std::move(form)) {}

  Index size() const { return form_->size(); }
  Index select(Index i) const { return form_->select(i); }
  Index rank(Index w) const { return form_->rank(w).value_or(unknown); }
  void read(Index first, Index n, Index* out) const { read_each(*this, first, n, out); }
  Index bytes() const { return form_->bytes(); }
  std::string_view own_name() const { return form_->name(); }

 private:
  std::shared_ptr<const CustomForm> form_;
};

}  // namespace longshore::ranks

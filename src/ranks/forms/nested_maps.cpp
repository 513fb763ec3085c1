#include "ranks/forms/nested_maps.hpp"

#include <bit>

#include "ranks/analysis.hpp"
#include "ranks/make.hpp"

namespace longshore::ranks {

namespace {

FormHead one_deeper(const FormHead& head) {
  if (head.depth >= most_depth)
    throw Error(ErrorKind::argument, "the map has more than " + std::to_string(most_depth) + " maps within maps");
  FormHead inner = head;
  ++inner.depth;
  return inner;
}

void require(bool good, const char* what) {
  if (!good) throw Error(ErrorKind::argument, what);
}

}  // namespace

void ChildForm::read(Index first, Index n, Index* out) const {
  positions().read(first, n, out);
  for (Index k = 0; k < n; ++k) out[k] = parent().select(out[k]);
}

void ChildForm::write(WordWriter& out) const {
  write_map(out, parent());
  write_map(out, positions());
}

ChildForm ChildForm::stored(WordReader& in, const FormHead& head) {
  const auto deeper = one_deeper(head);
  auto parent = read_map(in, deeper);
  auto positions = read_map(in, deeper);
  return ChildForm(std::move(parent), std::move(positions));
}

Checked ChildForm::check(const FormHead& head) const {
  require(positions().world() == parent().size(), "child: the positions are not those of the parent");
  require(parent().world() == head.world, "child: the parent is of another world");
  return head.ascending && !(parent().ascending() && positions().ascending()) ? Checked::structure : Checked::all;
}

ProductForm::ProductForm(RankMap outer, AffineNest inner, Index base, Index unit)
    : parts_(std::make_unique<const Parts>(Parts{std::move(outer), std::move(inner)})),
      base_(base),
      unit_(unit),
      shift_(-1) {
  if (const auto m = std::uint64_t(parts_->inner.size()); std::has_single_bit(m)) shift_ = std::countr_zero(m);
}

Index ProductForm::rank(Index w) const {
  const Index way = w - base_;
  if (way < 0) return nobody;
  const Index within = inner().rank(way % unit_);
  if (within == nobody || way / unit_ >= outer().world()) return nobody;
  const Index o = outer().rank(way / unit_);
  return o == nobody ? nobody : o * inner().size() + within;
}

void ProductForm::read(Index first, Index n, Index* out) const {
  const Index m = inner().size();
  if (m == 1) {
    outer().read(first, n, out);
    for (Index k = 0; k < n; ++k) out[k] = base_ + unit_ * out[k] + inner().lowest();
    return;
  }
  for (Index end = first + n; first < end;) {
    const Index from = first % m, here = std::min(end - first, m - from),
                more = base_ + unit_ * outer().select(first / m);
    inner().read(from, here, out);
    for (Index k = 0; k < here; ++k) out[k] += more;
    first += here, out += here;
  }
}

void ProductForm::write(WordWriter& out) const {
  out.index(base_), out.index(unit_);
  write_map(out, outer());
  write_map(out, RankMap::of_nest(inner(), unit_));
}

ProductForm ProductForm::stored(WordReader& in, const FormHead& head) {
  const auto deeper = one_deeper(head);
  const Index base = in.within(0, head.world, "a base"), unit = in.within(1, head.world, "a unit");
  auto outer = read_map(in, deeper);
  const auto inner = read_map(in, deeper);
  if (inner.nest() == nullptr || inner.world() > unit) in.refuse("has an inner map that is not loops below the unit");
  if (checked_mul(outer.size(), inner.size()) != head.size)
    in.refuse("has another number of members than its parts say");
  return ProductForm(std::move(outer), *inner.nest(), base, unit);
}

Checked ProductForm::check(const FormHead& head) const {
  if (size() == 0) return Checked::all;
  const Index room = head.world - base_ - 1 - inner().highest();
  require(room >= 0 && outer().world() <= room / unit_ + 1, "product: ranks beyond the world");
  return head.ascending && !(outer().ascending() && inner().ascending()) ? Checked::structure : Checked::all;
}

ChunksForm::ChunksForm(const Members& members, Index world, bool ascending) : ascending_(ascending) {
  static const Modules simple{&rank_module("nest"),      &rank_module("affine-runs"), &rank_module("elias-fano"),
                              &rank_module("bitmap512"), &rank_module("linear"),      &rank_module("runs"),
                              &rank_module("packed")};
  const Strategy small{0.1, simple, LookupKind::none};
  members.each_piece([&](Index, std::span<const Index> values) {
    static_assert(chunk == 4096, "pieces are chunks");
    const Members part(values);
    chunks_.push_back(make_analysed(part, analyse_simply(part, world), small));
  });
  chunks_.shrink_to_fit();
}

Index ChunksForm::rank(Index w) const {
  if (!ascending_) return unknown;
  std::size_t low = 0, high = chunks_.size();  // the last chunk that begins at w or below
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (chunks_[middle].select(0) <= w)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == 0) return nobody;
  const Index within = chunks_[low - 1].rank(w);
  return within == nobody ? nobody : (Index(low) - 1) * chunk + within;
}

void ChunksForm::read(Index first, Index n, Index* out) const {
  for (Index end = first + n; first < end;) {
    const Index from = first % chunk, here = std::min(end - first, chunk - from);
    chunks_[std::size_t(first / chunk)].read(from, here, out);
    first += here, out += here;
  }
}

Index ChunksForm::bytes() const {
  Index bytes = Index(chunks_.size() * sizeof(RankMap));
  for (const auto& map : chunks_) bytes += map.bytes();
  return bytes;
}

void ChunksForm::write(WordWriter& out) const {
  out.index(Index(chunks_.size())), out.word(ascending_);
  for (const auto& map : chunks_) write_map(out, map);
}

ChunksForm ChunksForm::stored(WordReader& in, const FormHead& head) {
  auto deeper = one_deeper(head);
  deeper.depth = most_depth;  // a chunk is made of no other maps, each of which would be looked at
  std::vector<RankMap> chunks;
  const Index n = in.count(1);
  const bool ascending = in.within(0, 1, "an order") != 0;
  for (Index k = 0; k < n; ++k) {
    chunks.push_back(read_map(in, deeper));
    const auto& map = chunks.back();
    if (map.world() != head.world || map.empty() || map.size() > chunk || (k + 1 < n && map.size() < chunk))
      in.refuse("has a chunk " + std::to_string(k) + " that does not fit");
  }
  ChunksForm form(std::move(chunks), ascending);
  if (form.size() != head.size || ascending != head.ascending) in.refuse("has chunks of another map");
  return form;
}

Checked ChunksForm::check(const FormHead&) const {
  if (!ascending_) return Checked::structure;
  for (std::size_t k = 0; k < chunks_.size(); ++k)
    require(
        chunks_[k].ascending() && (k == 0 || chunks_[k].select(0) > chunks_[k - 1].select(chunks_[k - 1].size() - 1)),
        "chunks: the ranks do not ascend");
  return Checked::all;
}

}  // namespace longshore::ranks

#include "ranks/forms/sets.hpp"

#include <bit>

namespace longshore::ranks {

namespace {

/// Forms of sets are made of ascending members only.
[[noreturn]] void refuse_order(std::string_view form) {
  throw Error(ErrorKind::argument, std::string(form) + ": the ranks do not ascend");
}

constexpr Index most_bound = RankMap::largest_world + 1;  ///< of values of a sequence

void check_extent(std::string_view form, Index lowest, Index highest, const FormHead& head) {
  if (!head.ascending) refuse_order(form);
  if (lowest < 0 || highest >= head.world)
    throw Error(ErrorKind::argument, std::string(form) + ": ranks " + std::to_string(lowest) + " to " +
                                         std::to_string(highest) + " are not all in [0, " + std::to_string(head.world) +
                                         ")");
}

}  // namespace

EliasFanoForm::EliasFanoForm(const Members& members, Index lowest, Index highest) : base_(lowest) {
  EliasFano::Builder builder(members.size(), members.size() == 0 ? 0 : highest - lowest + 1);
  members.each_piece([&](Index, std::span<const Index> values) {
    for (const Index value : values) builder.push(value - lowest);
  });
  members_ = builder.finish();
}

void EliasFanoForm::write(WordWriter& out) const {
  out.index(base_);
  write_sequence(out, members_);
}

EliasFanoForm EliasFanoForm::stored(WordReader& in, const FormHead& head) {
  EliasFanoForm form;
  form.base_ = in.within(0, head.world, "a base");
  form.members_ = read_sequence(in, head.size, most_bound);
  return form;
}

Checked EliasFanoForm::check(const FormHead& head) const {
  if (size() == 0) return Checked::all;
  check_extent(name, select(0), select(size() - 1), head);
  return Checked::structure;  // values may repeat in the sequence, not in the map
}

HolesForm::HolesForm(const Members& members, Index lowest, Index highest) : base_(lowest), size_(members.size()) {
  EliasFano::Builder builder(highest - lowest + 1 - size_, size_ + 1);
  Index next = lowest;
  members.each_piece([&](Index first, std::span<const Index> values) {
    for (const Index value : values) {
      for (; next < value; ++next) builder.push(first);
      ++next, ++first;
    }
  });
  before_ = builder.finish();
}

Index HolesForm::rank(Index w) const {
  const Index r = w - base_;
  if (r < 0 || r >= size_ + before_.size()) return nobody;
  Index low = 0, high = before_.size();  // the holes below w; hole j is at before[j] + j
  while (low < high) {
    const Index middle = low + (high - low) / 2;
    if (before_[middle] + middle < r)
      low = middle + 1;
    else
      high = middle;
  }
  return low < before_.size() && before_[low] + low == r ? nobody : r - low;
}

void HolesForm::read(Index first, Index n, Index* out) const {
  Index hole = before_.below(first + 1), next = hole < before_.size() ? before_[hole] : size_;
  for (Index i = first; i < first + n; ++i) {
    for (; next <= i && hole < before_.size(); next = hole < before_.size() ? before_[hole] : size_) ++hole;
    *out++ = base_ + i + hole;
  }
}

void HolesForm::write(WordWriter& out) const {
  out.index(base_);
  write_sequence(out, before_);
}

HolesForm HolesForm::stored(WordReader& in, const FormHead& head) {
  HolesForm form;
  form.base_ = in.within(0, head.world, "a base");
  form.size_ = head.size;
  form.before_ = read_sequence(in, head.world, most_bound);
  if (form.before_.universe() != head.size + 1) in.refuse("has holes among another number of members");
  return form;
}

Checked HolesForm::check(const FormHead& head) const {
  if (size_ > 0) check_extent(name, base_, select(size_ - 1), head);
  return Checked::all;
}

BitmapForm::BitmapForm(const Members& members, Index lowest, Index highest) : base_(lowest) {
  const Index bits = members.size() == 0 ? 0 : highest - lowest + 1;
  std::vector<std::uint64_t> words(std::size_t(Bitmap::words_of(bits)));
  Index before = lowest - 1;
  members.each_piece([&](Index, std::span<const Index> values) {
    for (const Index value : values) {
      if (value <= before) refuse_order(name);
      before = value;
      words[std::size_t(value - lowest) / 64] |= std::uint64_t{1} << ((value - lowest) % 64);
    }
  });
  bits_ = Bitmap(std::move(words), bits, Bitmap::Find::ones);
}

void BitmapForm::read(Index first, Index n, Index* out) const {
  if (n <= 0) return;
  const Index bit = bits_.select(first);
  auto w = std::size_t(bit / 64);
  std::uint64_t word = bits_.words()[w] >> (bit % 64) << (bit % 64);
  for (; n > 0; --n) {
    while (word == 0) word = bits_.words()[++w];
    *out++ = base_ + Index(w) * 64 + std::countr_zero(word);
    word &= word - 1;
  }
}

void BitmapForm::write(WordWriter& out) const {
  out.index(base_), out.index(bits_.size());
  out.list(bits_.words());
}

BitmapForm BitmapForm::stored(WordReader& in, const FormHead& head) {
  const Index base = in.within(0, head.world, "a base"), bits = in.within(0, head.world - base, "a number of bits");
  const auto words = in.list();
  if (Index(words.size()) != Bitmap::words_of(bits)) in.refuse("has another number of words than its bits say");
  BitmapForm form(base, {words.begin(), words.end()}, bits);
  if (form.size() != head.size)
    in.refuse("has " + std::to_string(form.size()) + " bits set for " + std::to_string(head.size) + " members");
  return form;
}

Checked BitmapForm::check(const FormHead& head) const {
  check_extent(name, base_, base_ + bits_.size() - 1, head);
  return Checked::all;
}

RunsForm::RunsForm(const Members& members) {
  std::vector<Index> starts, positions;
  Index position = 0;
  for (const auto& [first, last] : members.intervals()) {
    starts.push_back(first), positions.push_back(position);
    position += last - first;
  }
  if (!starts.empty()) base_ = starts[0];
  const Index universe = starts.empty() ? 0 : starts.back() - base_ + 1;
  for (auto& start : starts) start -= base_;
  starts_ = EliasFano(starts, universe);
  positions_ = EliasFano(positions, members.size());
}

Index RunsForm::rank(Index w) const {
  const Index r = w - base_;
  if (r < 0 || positions_.size() == 0) return nobody;
  const auto [j, start] = starts_.last_up_to(std::min(r, starts_.universe() - 1));
  const Index i = positions_[j] + r - start;
  return i < end_of(j) ? i : nobody;
}

void RunsForm::read(Index first, Index n, Index* out) const {
  if (n <= 0) return;
  Index j = positions_.below(first + 1) - 1;
  for (Index end = first + n; first < end; ++j) {
    const Index value = base_ + starts_[j] + first - positions_[j], here = std::min(end, end_of(j)) - first;
    for (Index k = 0; k < here; ++k) out[k] = value + k;
    first += here, out += here;
  }
}

void RunsForm::write(WordWriter& out) const {
  out.index(base_);
  write_sequence(out, starts_);
  write_sequence(out, positions_);
}

RunsForm RunsForm::stored(WordReader& in, const FormHead& head) {
  RunsForm form;
  form.base_ = in.within(0, head.world, "a base");
  form.starts_ = read_sequence(in, head.size, most_bound);
  form.positions_ = read_sequence(in, head.size, most_bound);
  if (form.positions_.universe() != head.size || form.starts_.size() != form.positions_.size() ||
      form.starts_.universe() > head.world)
    in.refuse("has runs that do not hold " + std::to_string(head.size) + " members");
  if (head.size > 0 && (form.positions_.size() == 0 || form.positions_[0] != 0 || form.starts_[0] != 0))
    in.refuse("has runs that do not begin where the map does");
  return form;
}

Checked RunsForm::check(const FormHead& head) const {
  Index starts[64], positions[64], end = 0, before = 0;
  const Index runs = positions_.size();
  for (Index j = 0; j < runs; j += 64) {
    const Index n = std::min<Index>(64, runs - j);
    starts_.read(j, n, starts);
    positions_.read(j, n, positions);
    for (Index k = 0; k < n; ++k) {
      if (j + k == 0) continue;
      const Index length = positions[k] - before;
      end = (k == 0 ? starts_[j - 1] : starts[k - 1]) + length;
      if (length < 1 || starts[k] < end)
        throw Error(ErrorKind::argument,
                    "runs: run " + std::to_string(j + k) + " begins before the one before it ends");
      before = positions[k];
    }
  }
  if (runs > 0) check_extent(name, base_, base_ + starts_[runs - 1] + size() - positions_[runs - 1] - 1, head);
  return Checked::all;
}

}  // namespace longshore::ranks

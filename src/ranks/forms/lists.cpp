#include "ranks/forms/lists.hpp"

#include <algorithm>
#include <bit>

namespace longshore::ranks {

ArrayForm::ArrayForm(const Members& members, Index world) {
  auto fill = [&](auto& list) {
    list.resize(std::size_t(members.size()));
    members.each_piece([&](Index first, std::span<const Index> values) {
      for (std::size_t k = 0; k < values.size(); ++k)
        list[std::size_t(first) + k] = static_cast<std::remove_reference_t<decltype(list[0])>>(values[k]);
    });
  };
  if (world > INT32_MAX)
    fill(wide_);
  else
    fill(narrow_);
}

void ArrayForm::read(Index first, Index n, Index* out) const {
  if (wide_.empty())
    std::copy_n(narrow_.begin() + first, n, out);
  else
    std::copy_n(wide_.begin() + first, n, out);
}

void ArrayForm::write(WordWriter& out) const {
  for (Index i = 0; i < size(); ++i) out.index(select(i));
}

ArrayForm ArrayForm::stored(WordReader& in, const FormHead& head) {
  const auto words = in.take(std::size_t(head.size));
  std::vector<Index> values(words.begin(), words.end());
  for (Index i = 0; i < head.size; ++i)
    if (values[std::size_t(i)] < 0 || values[std::size_t(i)] >= head.world)
      refuse_rank(values[std::size_t(i)], i, head.world);
  return ArrayForm(Members(values), head.world);
}

PackedForm::PackedForm(const Members& members, Index world)
    : values_(members.size(), FixedIntegers::bits_of(std::max<Index>(world, 1) - 1)) {
  members.each_piece([&](Index first, std::span<const Index> values) {
    for (const Index value : values) values_.set(first++, value);
  });
}

LineFit fit_line(const Index* values, Index n) {
  const auto fit = [&](float slope) {
    LineFit line{0, slope, 0};
    Index least = values[0], most = least;
    for (Index k = 1; k < n; ++k) {
      const Index residual = values[k] - line.at(k);
      least = std::min(least, residual), most = std::max(most, residual);
    }
    line.base = least, line.width = FixedIntegers::bits_of(most - least);
    return line;
  };
  const LineFit sloped = fit(n > 1 ? float(double(values[n - 1] - values[0]) / double(n - 1)) : 0.0f),
                level = fit(0.0f);
  return level.width <= sloped.width ? level : sloped;
}

LinearForm::LinearForm(const Members& members) : size_(members.size()) {
  Index unit = 0;
  members.each_piece([&](Index, std::span<const Index> piece) {
    for (std::size_t first = 0; first < piece.size(); first += std::size_t(block)) {
      const Index* values = piece.data() + first;
      const Index n = std::min(block, Index(piece.size() - first));
      const auto line = fit_line(values, n);
      if (unit + line.width > Index(UINT32_MAX))
        throw Error(ErrorKind::argument, "linear: more than 64 GiB of residuals");
      Head head;
      head.base = line.base, head.width = std::uint64_t(line.width), head.slope = line.slope,
      head.unit = std::uint32_t(unit);
      packed_.resize(std::size_t((unit + line.width) * unit_bytes + spare_bytes));
      std::byte* bits = packed_.data() + unit * unit_bytes;
      for (Index k = 0; k < n; ++k)
        put_bits(bits, std::uint64_t(k * line.width), std::uint64_t(values[k] - head.line(k)));
      unit += line.width;
      heads_.push_back(head);
    }
  });
  packed_.shrink_to_fit(), heads_.shrink_to_fit();
}

void LinearForm::read(Index first, Index n, Index* out) const {
  for (Index end = first + n; first < end;) {
    const Head& head = heads_[std::size_t(first / block)];
    const Index from = first % block, here = std::min(end - first, block - from);
    for (Index k = 0; k < here; ++k) out[k] = at(head, from + k);
    first += here, out += here;
  }
}

void LinearForm::write(WordWriter& out) const {
  for (const auto& head : heads_) {
    out.word(std::uint64_t(head.base) << 7 | head.width);
    out.word(std::bit_cast<std::uint32_t>(head.slope));
  }
  out.bytes(packed_);
}

LinearForm LinearForm::stored(WordReader& in, const FormHead& head) {
  LinearForm form;
  form.size_ = head.size;
  const Index blocks = ceil_div(head.size, block);
  if (blocks > in.left() / 2) in.refuse("has too few words for " + std::to_string(blocks) + " blocks");
  Index unit = 0;
  for (Index b = 0; b < blocks; ++b) {
    const std::uint64_t word = in.word(), slope = in.word();
    Head h;
    h.base = Index(word) >> 7, h.width = word & 127;
    h.slope = std::bit_cast<float>(std::uint32_t(slope));
    h.unit = std::uint32_t(unit);
    // Within these bounds no sum along the line leaves 64 bits.
    if (slope > UINT32_MAX || h.width > most_width || std::abs(Index(h.base)) > Index{1} << 50 ||
        !(std::fabs(h.slope) <= float(Index{1} << 41)))
      in.refuse("has a line in block " + std::to_string(b) + " that no ranks lie along");
    unit += Index(h.width);
    if (unit > Index(UINT32_MAX)) in.refuse("has too many residuals");
    form.heads_.push_back(h);
  }
  form.packed_ = in.bytes();
  const Index bytes = blocks == 0 ? 0 : unit * unit_bytes + spare_bytes;
  if (Index(form.packed_.size()) != bytes) in.refuse("has another number of residuals than its widths say");
  return form;
}

}  // namespace longshore::ranks

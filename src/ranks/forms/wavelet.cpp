#include "ranks/forms/wavelet.hpp"

#include <algorithm>

namespace longshore::ranks {

namespace {

/// The last entry of an ascending list, begun with 0, that is at most `at`.
Index run_at(const FixedIntegers& starts, Index at) {
  Index low = 0, high = starts.size() - 1;
  while (low < high) {
    const Index middle = low + (high - low + 1) / 2;
    if (starts[middle] <= at)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

}  // namespace

WaveletForm::WaveletForm(const Members& permutation) : size_(permutation.size()) {
  // The run that each value comes from.
  std::vector<std::int32_t> run_of(std::size_t(size_), -1);
  std::vector<Index> starts;
  Index before = -1;
  permutation.each_piece([&](Index first, std::span<const Index> values) {
    for (const Index value : values) {
      if (value < 0 || value >= size_ || run_of[std::size_t(value)] >= 0)
        throw Error(ErrorKind::argument, "wavelet: no permutation of [0, " + std::to_string(size_) + ")");
      if (starts.empty() || value < before) starts.push_back(first);
      if (Index(starts.size()) > most_runs)
        throw Error(ErrorKind::argument, "wavelet: more than " + std::to_string(most_runs) + " runs");
      run_of[std::size_t(value)] = std::int32_t(starts.size()) - 1;
      before = value, ++first;
    }
  });
  const auto runs = Index(starts.size());
  starts_ = FixedIntegers::of(starts);
  starts.push_back(size_);
  std::vector<Index> splits, offsets;
  std::vector<std::uint64_t> words;
  Index bits = 0;
  struct Pending {
    Index from, to;
    std::vector<std::int32_t> runs;
  };
  std::vector<Pending> stack;
  if (runs > 1) stack.push_back({0, runs, std::move(run_of)});
  while (!stack.empty()) {
    const Pending node = std::move(stack.back());
    stack.pop_back();
    const Index half = starts[std::size_t(node.from)] + Index(node.runs.size()) / 2;
    const auto first = starts.begin() + node.from + 1, last = starts.begin() + node.to;
    auto cut = std::lower_bound(first, last - 1, half);
    if (cut != first && half - *(cut - 1) < *cut - half) --cut;
    const Index split = cut - starts.begin();
    splits.push_back(split), offsets.push_back(bits);
    words.resize(std::size_t(ceil_div(bits + Index(node.runs.size()), 64)));
    Pending left{node.from, split, {}}, right{split, node.to, {}};
    left.runs.reserve(std::size_t(starts[std::size_t(split)] - starts[std::size_t(node.from)]));
    for (const auto run : node.runs) {
      if (run >= split) words[std::size_t(bits / 64)] |= std::uint64_t{1} << (bits % 64);
      (run >= split ? right : left).runs.push_back(run);
      ++bits;
    }
    if (right.to - right.from > 1) stack.push_back(std::move(right));
    if (left.to - left.from > 1) stack.push_back(std::move(left));
  }
  splits_ = FixedIntegers::of(splits), offsets_ = FixedIntegers::of(offsets);
  bits_ = Bitmap(std::move(words), bits, Bitmap::Find::both);
}

Index WaveletForm::bytes_of(Index runs, Index size, double bits_a_member) {
  const auto bits = Index(bits_a_member * double(size));
  auto bytes = [](Index n, Index most) { return FixedIntegers::bytes_of(n, FixedIntegers::bits_of(most)); };
  return bytes(runs, size) + bytes(runs, runs) + bytes(runs, bits) +
         Bitmap::bytes_of(bits, bits / 2, Bitmap::Find::both);
}

Index WaveletForm::select(Index i) const {
  const Index run = run_at(starts_, i);
  struct Step {
    Index node;
    bool right;
  };
  std::vector<Step> way;
  for (Node node = root(); !node.leaf();) {
    const bool right = run >= splits_[node.number];
    way.push_back({node.number, right});
    node = child(node, right);
  }
  Index at = i - starts_[run];
  for (auto step = way.rbegin(); step != way.rend(); ++step) {
    const Index offset = offsets_[step->node], ones = bits_.rank(offset);
    at = (step->right ? bits_.select(ones + at) : bits_.select_zero(offset - ones + at)) - offset;
  }
  return at;
}

Index WaveletForm::rank(Index w) const {
  if (w < 0 || w >= size_) return nobody;
  Node node = root();
  while (!node.leaf()) {
    const Index offset = offsets_[node.number], ones = bits_.rank(offset + w) - bits_.rank(offset);
    const bool right = bits_.test(offset + w);
    w = right ? ones : w - ones;
    node = child(node, right);
  }
  return starts_[node.from] + w;
}

void WaveletForm::write(WordWriter& out) const {
  // The bits are those of a sort; the permutation says as much, and nothing has to be believed when it is read.
  const FixedIntegers values = [&] {
    FixedIntegers list(size_, FixedIntegers::bits_of(std::max<Index>(size_, 1) - 1));
    for (Index i = 0; i < size_; ++i) list.set(i, select(i));
    return list;
  }();
  write_fixed(out, values);
}

WaveletForm WaveletForm::stored(WordReader& in, const FormHead& head) {
  const auto list = read_fixed(in, head.size);
  std::vector<Index> values(std::size_t(head.size));
  for (Index i = 0; i < head.size; ++i) values[std::size_t(i)] = list[i];
  return WaveletForm(Members(values));
}

}  // namespace longshore::ranks

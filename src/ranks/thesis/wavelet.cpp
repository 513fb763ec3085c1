// A permutation as a wavelet tree on its ascending runs (Barbay and Navarro; section 4.2.1), and both of its
// directions.
#include <cmath>

#include "longshore/sequences/bitmap.hpp"
#include "ranks/thesis/modules.hpp"
#include "sequences/stored_sequences.hpp"

namespace longshore::thesis {

namespace {

/// The tree that a merge sort of the runs would go through: a node has a bit for each of its values in order, which
/// says whether the value comes from its left runs or from its right ones. Runs are split where both sides weigh about
/// the same: balanced by weight, not by Hu and Tucker's algorithm. That too keeps to the entropy of their lengths
/// within two bits a member, and needs no table of codes.
class WaveletTree : public CustomForm {
 public:
  static constexpr Index most_runs = Index{1} << 20;

  /// Of a permutation of [0, members.size()).
  explicit WaveletTree(const Members& permutation);
  static Index bytes_of(Index runs, Index size, double bits_a_member);

  std::string_view name() const override { return "wavelet"; }
  Index size() const override { return size_; }
  Index select(Index i) const override;
  std::optional<Index> rank(Index w) const override;
  Index bytes() const override {
    return Index(sizeof *this) + starts_.memory_bytes() + splits_.memory_bytes() + offsets_.memory_bytes() +
           bits_.memory_bytes();
  }
  std::optional<std::vector<std::uint64_t>> words() const override;

 private:
  /// A node and the runs [from, to) below it. Nodes are numbered so that the left child follows its parent and the
  /// right one all those of the left: of r runs, r - 1 nodes.
  struct Node {
    Index number, from, to;
    bool leaf() const { return to - from == 1; }
  };
  Node root() const { return {0, 0, starts_.size()}; }
  Node child(const Node& node, bool right) const {
    const Index split = splits_[node.number];
    return right ? Node{node.number + split - node.from, split, node.to} : Node{node.number + 1, node.from, split};
  }

  Index size_ = 0;
  FixedIntegers starts_;   ///< the position of each run
  FixedIntegers splits_;   ///< of each node: the first run on its right
  FixedIntegers offsets_;  ///< of each node: where its bits begin
  Bitmap bits_;
};

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

WaveletTree::WaveletTree(const Members& permutation) : size_(permutation.size()) {
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

Index WaveletTree::bytes_of(Index runs, Index size, double bits_a_member) {
  const auto bits = Index(bits_a_member * double(size));
  auto bytes = [](Index n, Index most) { return FixedIntegers::bytes_of(n, FixedIntegers::bits_of(most)); };
  return with_form<WaveletTree>(bytes(runs, size) + bytes(runs, runs) + bytes(runs, bits) +
                                Bitmap::bytes_of(bits, bits / 2, Bitmap::Find::both));
}

Index WaveletTree::select(Index i) const {
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

std::optional<Index> WaveletTree::rank(Index w) const {
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

std::optional<std::vector<std::uint64_t>> WaveletTree::words() const {
  // The bits are those of a sort; the permutation says as much, and nothing has to be believed when it is read.
  FixedIntegers values(size_, FixedIntegers::bits_of(std::max<Index>(size_, 1) - 1));
  for (Index i = 0; i < size_; ++i) values.set(i, select(i));
  WordWriter out;
  write_fixed(out, values);
  return out.words();
}

double entropy(const Analysis& a) { return std::log2(double(a.ascents)); }

/// The thesis's sets, which its permutations are of.
Strategy of_sets() { return {0, {&stride_module(), &bdd_module(), &bitmap_module(), &gap_module()}, LookupKind::none}; }

/// The set of a list, as far as it is known without sorting. Of members at random, the largest gap is the mean one
/// times ln(size).
Index bytes_of_set(const Analysis& a) {
  if (a.span() == a.size) return AffineNest::stride(a.lowest, a.size, 1).bytes();
  Analysis set = a;
  const double gap = double(a.span()) / double(a.size) * std::max(std::log(double(a.size)), 1.0);
  set.ascending = true, set.largest_step = std::min(Index(gap), a.span() - a.size + 1);
  double least = gap_module().estimate(Members(std::span<const Index>()), set).bytes;
  const auto bitmap = bitmap_module().estimate(Members(std::span<const Index>()), set);
  return Index(bitmap.possible ? std::min(least, bitmap.bytes) : least);
}

class WaveletModule : public RankModule {
 public:
  std::string_view name() const override { return "wavelet"; }
  Estimate estimate(const Members&, const Analysis& a) const override {
    if (a.ascending) return Estimate::impossible("the ranks ascend: there is nothing to permute");
    if (const char* why = no_list(a)) return Estimate::impossible(why);
    const auto runs = std::to_string(a.ascents) + " ascending runs";
    if (a.ascents > WaveletTree::most_runs) return Estimate::impossible(runs);
    Index bytes = WaveletTree::bytes_of(a.ascents, a.size, entropy(a));
    if (a.size < a.world)
      bytes += bytes_of_set(a) + 2 * Index(sizeof(RankMap)) + 2 * RankForm::counts_bytes;  // a child
    return Estimate::of(a, bytes, 25 + 25 * entropy(a), 20 + 14 * entropy(a), 2, runs);
  }
  RankMap::Form build(const Members& members, const Analysis& a) const override {
    std::vector<Index> list(std::size_t(members.size())), sorted;
    members.read(0, members.size(), list.data());
    sorted = list;
    std::sort(sorted.begin(), sorted.end());
    for (auto& w : list) w = std::lower_bound(sorted.begin(), sorted.end(), w) - sorted.begin();
    auto permutation = custom(std::make_shared<WaveletTree>(Members(list)));
    if (members.size() == a.world) return permutation;
    const auto set = RankMap::of(sorted, a.world, of_sets());
    return RankMap::child(set, RankMap(std::move(permutation), members.size(), false)).form();
  }
  std::shared_ptr<const CustomForm> read(std::span<const std::uint64_t> words, Index size, Index) const override {
    WordReader in(words, "the rank map");
    const auto stored = read_fixed(in, size);
    in.end();
    std::vector<Index> values(std::size_t(size), 0);
    for (Index i = 0; i < size; ++i) values[std::size_t(i)] = stored[i];
    return std::make_shared<WaveletTree>(Members(values));
  }
};

}  // namespace

const RankModule& wavelet_module() {
  static const WaveletModule module;
  return module;
}

}  // namespace longshore::thesis

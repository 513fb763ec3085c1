#include "ranks/forms/decision_dag.hpp"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "sequences/bit_ops.hpp"

namespace longshore::ranks {

namespace {

constexpr int leaf_bits = DagForm::leaf_bits;

/// What makes nodes equal. The level belongs to it: of two nodes with a full half, the higher one has more members.
struct Key {
  Index low, high;
  int level;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const {
    const auto mixed = std::uint64_t(key.low) * 0x9E3779B97F4A7C15u ^
                       (std::uint64_t(key.high) + std::uint64_t(key.level)) * 0xC2B2AE3D27D4EB4Fu;
    return std::size_t(mixed ^ mixed >> 29);
  }
};

/// Finds out which part a stretch of ranks is, making those that are new. 0 is empty, 1 full; leaf k is -1 - k, node k
/// is 2 + k, until it is known how many leaves there are.
class Builder {
 public:
  Builder(std::span<const Interval> intervals, Index most) : intervals_(intervals), most_(most) {}

  /// Of ranks [base, base + 2^level), where intervals [from, to) lie.
  Index part(Index base, int level, std::size_t from, std::size_t to) {
    if (from == to) return 0;
    const Index end = base + (Index{1} << level);
    if (intervals_[from].first <= base && intervals_[from].last >= end) return 1;
    if (level == leaf_bits) return leaf(base, from, to);
    const Index middle = base + (Index{1} << (level - 1));
    const auto begin = intervals_.begin();
    const auto cut = std::size_t(std::partition_point(begin + Index(from), begin + Index(to),
                                                      [&](const Interval& i) { return i.last <= middle; }) -
                                 begin);
    const std::size_t low_end = cut < to && intervals_[cut].first < middle ? cut + 1 : cut;
    const Index lower = part(base, level - 1, from, low_end), higher = part(middle, level - 1, cut, to);
    const auto [at, is_new] = nodes_.try_emplace({lower, higher, level}, Index(low.size()) + 2);
    if (is_new) low.push_back(lower), high.push_back(higher), levels.push_back(level), check();
    return at->second;
  }

  std::vector<std::uint64_t> leaves;
  std::vector<Index> low, high;
  std::vector<int> levels;

 private:
  Index leaf(Index base, std::size_t from, std::size_t to) {
    std::uint64_t word = 0;
    for (std::size_t k = from; k < to; ++k) {
      const Index first = std::max(intervals_[k].first - base, Index{0}),
                  last = std::min(intervals_[k].last - base, Index{64});
      word |= (last - first == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << (last - first)) - 1) << first;
    }
    const auto [at, is_new] = leaves_.try_emplace(word, -1 - Index(leaves.size()));
    if (is_new) leaves.push_back(word), check();
    return at->second;
  }
  void check() const {
    if (Index(low.size() + leaves.size()) > most_)
      throw Error(ErrorKind::argument, "dag: more than " + std::to_string(most_) + " nodes");
  }

  std::span<const Interval> intervals_;
  Index most_;
  std::unordered_map<std::uint64_t, Index> leaves_;
  std::unordered_map<Key, Index, KeyHash> nodes_;
};

}  // namespace

DagForm::DagForm(std::span<const Interval> intervals, int bits, Index most) : bits_(std::max(bits, leaf_bits)) {
  Builder builder(intervals, most);
  const Index root = builder.part(0, bits_, 0, intervals.size());
  leaves_ = std::move(builder.leaves);
  auto number = [&](Index part) {
    return part < 0 ? first_leaf - 1 - part : part < 2 ? part : part - 2 + first_node();
  };
  for (auto* halves : {&builder.low, &builder.high})
    for (auto& half : *halves) half = number(half);
  root_ = number(root);
  pack(builder.low, builder.high, builder.levels);
}

void DagForm::pack(std::span<const Index> low, std::span<const Index> high, std::span<const int> levels) {
  const auto n = Index(low.size());
  const int id_bits = FixedIntegers::bits_of(first_node() + n - 1);
  halves_ = FixedIntegers(2 * n, id_bits);
  std::vector<Index> members(low.size()), lower(low.size());  // of each node and of its lower half
  auto count = [&](Index part, int level) {
    if (part == empty) return Index{0};
    if (part == full) return Index{1} << level;
    return part < first_node() ? Index(std::popcount(leaves_[std::size_t(part - first_leaf)]))
                               : members[std::size_t(part - first_node())];
  };
  for (Index k = 0; k < n; ++k) {
    const auto at = std::size_t(k);
    halves_.set(2 * k, low[at]), halves_.set(2 * k + 1, high[at]);
    lower[at] = count(low[at], levels[at] - 1);
    members[at] = lower[at] + count(high[at], levels[at] - 1);
  }
  counts_ = FixedIntegers::of(lower);
  size_ = count(root_, bits_);
}

Index DagForm::bytes_of(Index nodes, Index leaves, Index size) {
  const int id = FixedIntegers::bits_of(nodes + leaves + first_leaf - 1);
  return FixedIntegers::bytes_of(2 * nodes, id) + FixedIntegers::bytes_of(nodes, FixedIntegers::bits_of(size)) +
         8 * leaves;
}

Index DagForm::select(Index i) const {
  Index part = root_, value = 0;
  int level = bits_;
  for (const Index nodes = first_node(); part >= nodes;) {
    const Index k = part - nodes, before = counts_[k];
    const bool high = i >= before;
    --level;
    part = half(k, high);
    i -= high ? before : 0;
    value |= Index(high) << level;
  }
  return value + (part == full ? i : bit_ops().in_word(leaves_[std::size_t(part - first_leaf)], int(i)));
}

Index DagForm::rank(Index w) const {
  if (w < 0 || w >> bits_ != 0) return nobody;
  Index part = root_, i = 0;
  int level = bits_;
  for (const Index nodes = first_node(); part >= nodes;) {
    const Index k = part - nodes;
    const bool high = w >> --level & 1;
    part = half(k, high);
    i += high ? counts_[k] : 0;
  }
  const Index within = w & ((Index{1} << level) - 1);
  if (part == empty) return nobody;
  if (part == full) return i + within;
  const std::uint64_t word = leaves_[std::size_t(part - first_leaf)];
  return word >> within & 1 ? i + std::popcount(word & ((std::uint64_t{1} << within) - 1)) : nobody;
}

void DagForm::write(WordWriter& out) const {
  std::vector<int> levels(std::size_t(nodes()),
                          bits_);  // a node's is one less than that of those it is part of, which follow it
  for (Index k = nodes(); k-- > 0;)
    for (const Index part : {half(k, false), half(k, true)})
      if (part >= first_node()) levels[std::size_t(part - first_node())] = levels[std::size_t(k)] - 1;
  out.index(bits_), out.index(root_);
  out.list(leaves_);
  out.index(nodes());
  for (Index k = 0; k < nodes(); ++k)
    out.index(half(k, false)), out.index(half(k, true)), out.index(levels[std::size_t(k)]);
}

DagForm DagForm::stored(WordReader& in, const FormHead& head) {
  DagForm form;
  form.bits_ = int(in.within(leaf_bits, 41, "a number of bits"));
  const Index root = in.index();
  const auto leaves = in.list();
  form.leaves_.assign(leaves.begin(), leaves.end());
  const Index n = in.count(3);
  std::vector<Index> low, high;
  std::vector<int> levels;
  std::vector<bool> named(std::size_t(n), false);
  auto check_part = [&](Index part, Index before, int level) {
    const Index node = part < 0 ? before : part - form.first_node();
    const bool good =
        node < before && (part < first_leaf || (node < 0 ? level == leaf_bits : levels[std::size_t(node)] == level));
    if (!good) in.refuse("has a node of part " + std::to_string(part) + ", which does not fit there");
    if (node >= 0) named[std::size_t(node)] = true;
  };
  for (Index k = 0; k < n; ++k) {
    low.push_back(in.index()), high.push_back(in.index());
    const int level = int(in.within(leaf_bits + 1, form.bits_, "a level"));
    check_part(low.back(), k, level - 1), check_part(high.back(), k, level - 1);
    levels.push_back(level);
  }
  check_part(root, n, form.bits_);
  // A node's level is known from those that name it.
  if (const auto lost = std::find(named.begin(), named.end(), false); lost != named.end())
    in.refuse("has a node " + std::to_string(lost - named.begin()) + " that is part of nothing");
  form.root_ = root;
  form.pack(low, high, levels);
  if (form.size() != head.size) in.refuse("has a diagram of " + std::to_string(form.size()) + " members");
  return form;
}

Checked DagForm::check(const FormHead& head) const {
  if (size_ > 0 && (!head.ascending || select(size_ - 1) >= head.world))
    throw Error(ErrorKind::argument, "dag: ranks beyond the world");
  return Checked::all;
}

}  // namespace longshore::ranks

/// A set as a decision diagram on the bits of a rank, equal parts
/// kept once, with counts: unions of faces of binary cubes.
#pragma once

#include "ranks/forms/common.hpp"

namespace longshore::ranks {

/// Levels from the highest bit down to leaves of 64 ranks. Nodes
/// that are equal are one; what is empty or full has no node.
class DagForm {
 public:
  static constexpr std::string_view name = "dag";
  static constexpr int leaf_bits = 6;

  /// Of disjoint ascending intervals below 2^bits. Throws `Error(argument)` beyond `most` nodes.
  DagForm(std::span<const Interval> intervals, int bits, Index most);
  static Index bytes_of(Index nodes, Index leaves, Index size);

  Index size() const { return size_; }
  Index select(Index i) const;
  Index rank(Index w) const;
  void read(Index first, Index n, Index* out) const { read_each(*this, first, n, out); }
  Index bytes() const { return halves_.memory_bytes() + counts_.memory_bytes() + Index(leaves_.size()) * 8; }
  void write(WordWriter& out) const;
  static DagForm stored(WordReader& in, const FormHead& head);
  Checked check(const FormHead& head) const;

  Index nodes() const { return counts_.size(); }
  Index leaves() const { return Index(leaves_.size()); }

 private:
  static constexpr Index empty = 0, full = 1, first_leaf = 2;  ///< leaf k has number 2 + k, node k follows the leaves

  DagForm() = default;
  Index first_node() const { return first_leaf + leaves(); }
  Index half(Index node, bool high) const { return halves_[2 * node + high]; }
  /// Counts what is in the lower halves; `low` and `high` name parts that come before them.
  void pack(std::span<const Index> low, std::span<const Index> high, std::span<const int> levels);

  int bits_ = leaf_bits;
  Index root_ = empty, size_ = 0;
  std::vector<std::uint64_t> leaves_;
  FixedIntegers halves_;  ///< of each node, the lower one first
  FixedIntegers counts_;  ///< members in its lower half
};

}  // namespace longshore::ranks

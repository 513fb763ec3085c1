/// A permutation as a wavelet tree on its ascending runs (Barbay
/// and Navarro; thesis section 4.2.1), and both of its directions.
#pragma once

#include "ranks/forms/common.hpp"

namespace longshore::ranks {

/// The tree that a merge sort of the runs would go through: a node has a bit for each of its values in order, which
/// says whether the value comes from its left runs or from its right ones. Runs are split where both sides weigh about
/// the same: balanced by weight, not by Hu and Tucker's algorithm. That too keeps to the entropy of their lengths
/// within two bits a member, and needs no table of codes.
class WaveletForm {
 public:
  static constexpr std::string_view name = "wavelet";
  static constexpr Index most_runs = Index{1} << 20;

  /// Of a permutation of [0, members.size()).
  explicit WaveletForm(const Members& permutation);
  static Index bytes_of(Index runs, Index size, double bits_a_member);

  Index size() const { return size_; }
  Index select(Index i) const;
  Index rank(Index w) const;
  void read(Index first, Index n, Index* out) const { read_each(*this, first, n, out); }
  Index bytes() const {
    return starts_.memory_bytes() + splits_.memory_bytes() + offsets_.memory_bytes() + bits_.memory_bytes();
  }
  void write(WordWriter& out) const;
  static WaveletForm stored(WordReader& in, const FormHead& head);
  Checked check(const FormHead&) const { return Checked::structure; }

 private:
  /// A node and the runs [from, to) below it. Nodes are numbered so that the left child follows its parent and the
  /// right one all those of the left: of r runs, r - 1 nodes.
  struct Node {
    Index number, from, to;
    bool leaf() const { return to - from == 1; }
  };
  WaveletForm() = default;
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

}  // namespace longshore::ranks

/// `LoopNest`: a regular address relation, kept as a product of one-dimensional relations and never enumerated.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "longshore/relations/offset_runs.hpp"
#include "longshore/relations/paired_runs.hpp"
#include "longshore/sequences/affine_run.hpp"

namespace longshore {

/// Of what goes from somewhere to somewhere.
enum class Side { source, destination };

/// One factor of the product: index pairs, and how many bytes one index is on each side.
struct RelationAxis {
  PairedRuns runs;
  Index source_stride = 0, destination_stride = 0;
  bool operator==(const RelationAxis&) const = default;
};

/// How one side of a relation visits its memory, innermost first: `block_bytes` contiguous bytes, then loops of
/// (count, stride in bytes). `regular` is false where some loop has no single stride (block-cyclic meets block-cyclic):
/// the loops then describe the commonest run.
struct AccessPattern {
  Index block_bytes = 0;
  std::vector<Loop> loops;
  bool regular = true;
};

/// An address relation as a product of axes, outermost first. The order of the pairs, which is the order of the
/// elements in a message, is the lexicographic order of the axes' positions.
class LoopNest {
 public:
  /// Bytes of one element (> 0) and the axes in message order. Offsets are relative to the two arrays' first bytes.
  LoopNest(Index element_bytes, std::vector<RelationAxis> axes, Index source_base = 0, Index destination_base = 0);

  Index element_bytes() const { return element_bytes_; }
  Index elements() const { return elements_; }
  Index bytes() const { return elements_ * element_bytes_; }
  bool empty() const { return elements_ == 0; }
  const std::vector<RelationAxis>& axes() const& { return axes_; }
  std::vector<RelationAxis> axes() && { return std::move(axes_); }
  Index source_base() const { return source_base_; }
  Index destination_base() const { return destination_base_; }

  using Pair = OffsetPair;
  /// The pair at a position of the message. Throws `Error(argument)` outside [0, elements()).
  Pair at(Index position) const;

  /// The same pairs in the same order with redundant structure removed: unit axes dropped, contiguous axes merged.
  LoopNest canonical() const;
  /// Source -> message: what the sender needs. The message is dense, in message order.
  LoopNest assembly() const;
  /// Message -> destination: what the receiver needs.
  LoopNest disassembly() const;
  LoopNest inverse() const;
  /// The same relation moved so that its first pair is (0, 0): relations that are alike but for where they begin become
  /// equal.
  LoopNest from_origin() const;
  /// The pairs whose position on axis `axis` lies in [first, last).
  LoopNest restrict(std::size_t axis, Index first, Index last) const;
  /// The pairs at the message's positions [first, last): nests
  /// to be carried out one after the other, at most two an axis.
  std::vector<LoopNest> slice(Index first, Index last) const;

  /// The pairs at the message's positions [first, last), as runs
  /// along the innermost axis. The nest must outlive the reader.
  std::unique_ptr<RunReader> reader(Index first, Index last) const;

  /// The bytes that each side touches; [0, 0) where it touches none. Throws `Error(overflow)` where an offset does not
  /// fit in 64 bits.
  Interval source_extent() const;
  Interval destination_extent() const;
  /// True when source offsets ascend strictly with the message position, without overlapping. False may also mean that
  /// this cannot be told without enumerating.
  bool ascending_source() const;
  bool ascending_destination() const;
  /// True when no two destination elements overlap; false may also mean that it cannot be told without enumerating.
  bool distinct_destinations() const;

  /// The byte offset of the message in the source (destination) if it lies there contiguously and in message order.
  std::optional<Index> contiguous_source() const;
  std::optional<Index> contiguous_destination() const;

  AccessPattern source_pattern() const;
  AccessPattern destination_pattern() const;

  /// The plain twin of `CopyProgram`: element by element, in message order.
  void move_plain(std::byte* destination, const std::byte* source) const;

  bool operator==(const LoopNest&) const = default;

 private:
  Index element_bytes_;
  std::vector<RelationAxis> axes_;
  Index source_base_, destination_base_;
  Index elements_;
};

}  // namespace longshore

/// What does not repeat: equal blocks at listed places, the lists bit-packed
/// (the paper's open question of irregular relations, section 7).
#pragma once

#include <memory>
#include <utility>

#include "longshore/relations/offset_runs.hpp"
#include "longshore/sequences/packed_integers.hpp"

namespace longshore {

/// An ordered list of (source offset, destination offset) of blocks of `block` contiguous elements. A value.
class PackedList {
 public:
  /// The pairs of a reader, which is given twice: the block is the largest that all contiguous stretches are made of. A
  /// side that goes on in one stride takes no bits, whatever the scheme.
  PackedList(Index element_bytes, RunReader& pairs, RunReader& again, PackedIntegers::Scheme scheme);
  /// Offsets are base + unit * value; the unit divides a block. Throws
  /// `Error(argument)` where it does not, or where the two lists are not equally long.
  PackedList(Index element_bytes, Index block, Index unit, Index source_base, Index destination_base,
             PackedIntegers source, PackedIntegers destination);

  Index element_bytes() const { return element_bytes_; }
  Index elements() const { return block_ * source_.size(); }
  Index block() const { return block_; }  ///< elements
  Index unit() const { return unit_; }    ///< bytes
  Index source_base() const { return source_base_; }
  Index destination_base() const { return destination_base_; }
  const PackedIntegers& source() const& { return source_; }
  PackedIntegers source() && { return std::move(source_); }
  const PackedIntegers& destination() const& { return destination_; }
  PackedIntegers destination() && { return std::move(destination_); }
  /// Throws `Error(overflow)` where an offset does not fit in 64 bits.
  Interval source_extent() const;
  Interval destination_extent() const { return inverse().source_extent(); }
  Index workspace_bytes() const { return Index(sizeof *this) + source_.memory_bytes() + destination_.memory_bytes(); }

  PackedList inverse() const;
  PackedList assembly() const;  ///< a dense message on the destination's side
  /// The elements [first, last) as runs of at most a block. The list must outlive the reader.
  std::unique_ptr<RunReader> reader(Index first, Index last) const;
  bool operator==(const PackedList&) const = default;

 private:
  Index element_bytes_, block_, unit_, source_base_ = 0, destination_base_ = 0;
  PackedIntegers source_, destination_;
};

}  // namespace longshore

/// model: what a relation's copies are to the memory system, in the terms of the copy-transfer model.
#pragma once

#include "longshore/model/copy_transfer.hpp"
#include "longshore/relations/address_relation.hpp"

namespace longshore {

/// How programs visit what a relation names.
enum class CopyLoops {
  rows,     ///< words or blocks in loops that both sides follow
  tiles,    ///< source and destination run across each other, as in a transpose: in tiles that fit a cache
  joint,    ///< with what other ranks have in the same cache lines: each line is visited once
  aliased,  ///< rows with strides of a power of two or multiples of one, which find few sets of a cache
  sparse    ///< listed words that lie in a cache line each
};

/// The basic transfer xCy that a relation's copies are. Strides and blocks count words of so many bytes.
struct CopyShape {
  ReferencePattern read, write;
  Index word_bytes = 8;
  CopyLoops loops = CopyLoops::rows;
  /// On the read and on the written side: of lists, words for each listed one; of tiles, how many words further on
  /// the next elements lie on the side that runs across, 0 on the other one.
  Index gap = 1, write_gap = 1;
  Index run_bytes = 0;  ///< that are moved one after the other, the last word of them not always full; 0: full words
  /// Bytes of an innermost loop, and of the two that one call of a kernel carries out; 0: of the whole.
  Index row_bytes = 0, leaf_bytes = 0;

  BasicTransfer copy() const { return {TransferKind::copy, read, write, {}}; }
  /// Its half at a sender, into a dense message, and at a receiver, out of one.
  CopyShape packing() const { return half(read, ReferencePattern()); }
  CopyShape unpacking() const { return half(ReferencePattern(), write); }
  bool contiguous() const { return read == ReferencePattern() && write == ReferencePattern(); }
  /// Of less than a cache line, with gaps on both sides.
  bool in_short_runs() const;
  bool operator==(const CopyShape&) const = default;

  /// With one of the two patterns, the other side contiguous: in rows, where nothing is shared or runs across any more.
  CopyShape half(ReferencePattern from, ReferencePattern to) const {
    CopyShape one = *this;
    one.read = from, one.write = to;
    const bool across = (from == ReferencePattern() ? write_gap : gap) > 0;
    if (one.loops == CopyLoops::joint || (one.loops == CopyLoops::tiles && !across)) one.loops = CopyLoops::rows;
    if (one.contiguous()) one = {};
    return one;
  }
};

/// Of a nest its innermost loops count, and of loops without a single stride the commonest run. Single elements have
/// words of their own size, longer runs words of 8 bytes, rounded down.
CopyShape copy_shape(const LoopNest& nest);
/// Of several parts the one with the most bytes counts. Lists are indexed on both sides.
CopyShape copy_shape(const AddressRelation& relation);

}  // namespace longshore

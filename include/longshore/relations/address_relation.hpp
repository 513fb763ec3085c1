/// relations: offsets to offsets. `AddressRelation`: an ordered sequence of (source offset, destination offset) pairs
/// over elements of one size (Dinda & O'Hallaron, section 2). Regular stretches stay loop nests, the rest is lists.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "longshore/relations/loop_nest.hpp"
#include "longshore/relations/packed_list.hpp"
#include "longshore/relations/reduction.hpp"

namespace longshore {

/// The paper's total orders (section 4), and the order a relation was given in.
enum class PairOrder { given, source_first, destination_first };

/// `bytes` contiguous bytes from `offset` on: an `iovec`, relative to an array.
struct Segment {
  Index offset = 0, bytes = 0;
  bool operator==(const Segment&) const = default;
};

/// `elements` contiguous elements on both sides: the symbol (s, d, l) of AABLK, in bytes and elements.
struct OffsetBlock {
  Index source = 0, destination = 0, elements = 0;
  bool operator==(const OffsetBlock&) const = default;
};

/// A value: immutable, comparable. Offsets are in bytes, relative to two arrays' first bytes, within 2^60 of them, and
/// may be negative. A source may go to several destinations (replication). Destinations do not overlap each other,
/// unless the relation has a `Reduction`. The order of the pairs is the order of the elements in a message.
class AddressRelation {
 public:
  using Pair = OffsetPair;
  using PairList = std::vector<OffsetPair>;
  using RunList = std::vector<OffsetRun>;
  using Part = std::variant<LoopNest, RunList, PairList, PackedList>;

  /// No pairs, over elements of so many bytes (> 0).
  explicit AddressRelation(Index element_bytes = 1, Reduction reduction = {});
  /// All constructors below throw `Error(argument)` naming the two pairs where destinations
  /// overlap and there is no reduction, `Error(overflow)` where an offset is beyond 2^60,
  /// `Error(type)` where element size and reduction disagree.
  AddressRelation(LoopNest nest, Reduction reduction = {});  // NOLINT: a nest is a relation
  static AddressRelation from_pairs(Index element_bytes, std::span<const Pair> pairs, Reduction reduction = {});
  /// Element k goes from element source[k] of one array to element destination[k]
  /// of the other. Throws `Error(shape)` where the two are not equally long.
  static AddressRelation from_indices(Index element_bytes, std::span<const std::int64_t> source,
                                      std::span<const std::int64_t> destination, Reduction reduction = {});
  static AddressRelation from_indices(Index element_bytes, std::span<const std::int32_t> source,
                                      std::span<const std::int32_t> destination, Reduction reduction = {});
  static AddressRelation from_runs(Index element_bytes, RunList runs, Reduction reduction = {});
  static AddressRelation from_blocks(Index element_bytes, std::span<const OffsetBlock> blocks,
                                     Reduction reduction = {});
  /// Gather lists: the bytes of the source segments, one after the other, go to the bytes of the destination segments.
  /// Throws `Error(shape)` where the totals differ or a segment is no whole number of elements.
  static AddressRelation from_segments(Index element_bytes, std::span<const Segment> source,
                                       std::span<const Segment> destination, Reduction reduction = {});
  /// A box of elements with strides in bytes on both sides, the last dimension running fastest.
  static AddressRelation strided(Index element_bytes, std::span<const Index> extents,
                                 std::span<const Index> source_strides, std::span<const Index> destination_strides,
                                 Index source_base = 0, Index destination_base = 0, Reduction reduction = {});
  static AddressRelation from_parts(Index element_bytes, std::vector<Part> parts, Reduction reduction = {});
  /// What a reader has, folded into nests where it repeats. Throws `Error(argument)` where a run has no elements.
  static AddressRelation from_reader(Index element_bytes, RunReader& reader, Reduction reduction = {});

  Index element_bytes() const { return element_bytes_; }
  Index elements() const { return elements_; }
  Index bytes() const { return elements_ * element_bytes_; }
  bool empty() const { return elements_ == 0; }
  const Reduction& reduction() const& { return reduction_; }
  Reduction reduction() && { return std::move(reduction_); }
  const std::vector<Part>& parts() const& { return parts_; }
  std::vector<Part> parts() && { return std::move(parts_); }
  Interval source_extent() const { return source_extent_; }
  Interval destination_extent() const { return destination_extent_; }
  /// The pair at a position of the message. Throws `Error(argument)` outside [0, elements()).
  Pair at(Index position) const;
  /// All pairs. Time and memory proportional to the elements.
  PairList pairs() const;
  /// The pairs at positions [first, last) as runs; the relation must outlive the reader.
  std::unique_ptr<RunReader> reader(Index first, Index last) const;
  std::unique_ptr<RunReader> reader() const { return reader(0, elements_); }
  /// One side as a gather list, in message order; neighbours that touch are one segment.
  std::vector<Segment> source_segments() const;
  std::vector<Segment> destination_segments() const;
  /// Memory that this object holds.
  Index workspace_bytes() const;

  // --- algebra, as PETSc's star forests have it

  /// Source and destination exchanged. A replicated source becomes
  /// a destination of several pairs: that needs a reduction.
  AddressRelation inverse(Reduction reduction = {}) const;
  /// First this relation, then `next`, whose source array is this one's destination array: the pairs (a, c) with (a, b)
  /// here and (b, c) there, in the order of this relation, then of `next`.
  AddressRelation compose(const AddressRelation& next, Reduction reduction = {}) const;
  /// The pairs at the message's positions [first, last).
  AddressRelation restrict(Index first, Index last) const;
  /// The pairs of one relation after the other. All have the same element size and reduction.
  static AddressRelation concatenate(std::span<const AddressRelation> relations);
  /// The same pairs in another order. A nest whose loops need only be exchanged stays a nest; else time n log n.
  AddressRelation sorted(PairOrder order) const;
  /// The same pairs in that order where exchanging the loops of a nest is enough, in no time; else none.
  std::optional<AddressRelation> nest_in_order(PairOrder order) const;
  /// True when the pairs are in that order. `given` is always true.
  bool is_sorted(PairOrder order) const;
  /// The same pairs in the same order in the least structure: repetitions folded into nests, nests merged.
  AddressRelation canonical() const;
  /// The same pairs in the same order over elements of the same size, however each relation is kept.
  bool operator==(const AddressRelation& other) const;
  /// The same set of pairs, in any order.
  bool same_pairs(const AddressRelation& other) const;

  /// Source -> dense message: what the sender keeps in the send/receive model (section 2).
  AddressRelation assembly() const;
  /// Dense message -> destination: what the receiver keeps.
  AddressRelation disassembly() const;

  /// The plain twin of `RelationProgram`: element by element, in message order.
  void move_plain(std::byte* destination, const std::byte* source) const;

 private:
  friend class Encoding;  // whose pairs are known to be distinct
  AddressRelation(Index element_bytes, std::vector<Part> parts, Reduction reduction);
  void check_destinations() const;

  Index element_bytes_, elements_ = 0;
  Reduction reduction_;
  std::vector<Part> parts_;
  std::vector<Index> starts_;  ///< the first position of each part
  Interval source_extent_, destination_extent_;
};

}  // namespace longshore

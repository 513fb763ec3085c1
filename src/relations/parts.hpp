/// What relations and encodings do with one part of a relation.
#pragma once

#include "longshore/relations/address_relation.hpp"

namespace longshore {

/// Reads a list of pairs; neighbours in step are left to whoever folds.
class PairReader : public RunReader {
 public:
  explicit PairReader(std::span<const OffsetPair> pairs) : pairs_(pairs) {}
  std::size_t read(std::span<OffsetRun> out) override;

 private:
  std::span<const OffsetPair> pairs_;
};

/// Throws `Error(overflow)`.
Index elements_of(const AddressRelation::Part& part);
/// The pairs at its positions [first, last). The part must outlive the reader.
std::unique_ptr<RunReader> reader_of(const AddressRelation::Part& part, Index first, Index last);
/// Source and destination exchanged.
AddressRelation::Part inverted(const AddressRelation::Part& part);
/// A dense message from `message` on takes the place of the destinations.
AddressRelation::Part assembled(const AddressRelation::Part& part, Index element_bytes, Index message);

/// The bytes that both sides of some parts or runs of elements of one size touch. Throws `Error(overflow)`.
class Extents {
 public:
  explicit Extents(Index element_bytes) : element_(element_bytes) {}
  void add(const AddressRelation::Part& part);
  void add(const OffsetRun& run);
  /// Throws `Error(overflow)` where they reach so far that distances may not fit in 64 bits.
  void check() const;

  Interval source, destination;

 private:
  void add(Interval from, Interval to);
  Index element_;
  bool any_ = false;
};

}  // namespace longshore

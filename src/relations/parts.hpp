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

/// Source and destination exchanged.
AddressRelation::Part inverted(const AddressRelation::Part& part);

}  // namespace longshore

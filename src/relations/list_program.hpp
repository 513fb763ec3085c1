/// A list of equal blocks, compiled: 32-bit indices on the sides that are not dense.
#pragma once

#include <string>
#include <vector>

#include "longshore/relations/address_relation.hpp"
#include "longshore/relations/kernels.hpp"

namespace longshore {

class ListProgram {
 public:
  /// Blocks of `block` bytes at these pairs of offsets.
  ListProgram(Index block, std::span<const OffsetPair> pairs);

  /// Moves the blocks [first, last).
  void run(const KernelTable& table, Stores stores, std::byte* destination, const std::byte* source, Index first, Index last) const;
  OffsetPair at(Index k) const;  ///< of block k
  Index block() const { return block_; }
  Index workspace_bytes() const;
  std::string describe() const;

 private:
  /// A stretch of the list whose offsets fit in 32 bits, counted in units from a base.
  struct Stretch {
    Index first, last;  ///< of the list
    Index source, destination;
  };
  Index block_, unit_ = 1, count_;
  bool dense_source_ = false, dense_destination_ = false;
  std::vector<Stretch> stretches_;
  std::vector<std::uint32_t> source_, destination_;  ///< empty where dense
};

}  // namespace longshore

/// Lists of equal blocks, compiled: 32-bit indices on the sides that are not dense, kept or unpacked as one goes.
#pragma once

#include <string>
#include <vector>

#include "longshore/copies/kernels.hpp"
#include "longshore/relations/address_relation.hpp"

namespace longshore {

/// Where blocks of a list are on one side.
struct BlockPlaces {
  Index base = 0;  ///< bytes from the array's beginning
  /// in units from the base; null: dense, one block after the other from the base on
  const std::uint32_t* index = nullptr;
};

/// n blocks from places to places. Where both sides are dense they are one copy.
void move_blocks(const KernelTable& table, Stores stores, std::byte* destination, const BlockPlaces& to,
                 const std::byte* source, const BlockPlaces& from, Index n, Index block, Index unit);

/// Pairs with an index each.
class ListProgram {
 public:
  /// Blocks of `block` bytes at these pairs of offsets.
  ListProgram(Index block, std::span<const OffsetPair> pairs);

  /// Moves the blocks [first, last).
  void run(const KernelTable& table, Stores stores, std::byte* destination, const std::byte* source, Index first,
           Index last) const;
  OffsetPair at(Index k) const;  ///< of block k
  Index block() const { return block_; }
  Index workspace_bytes() const;
  std::string describe() const;

 private:
  /// Blocks of the list whose offsets fit in 32 bits, counted in units from these.
  struct Window {
    Interval blocks;
    Index source, destination;
  };
  Index block_, unit_ = 1, count_;
  bool dense_source_ = false, dense_destination_ = false;
  std::vector<Window> windows_;
  std::vector<std::uint32_t> source_, destination_;  ///< empty where dense
};

/// A packed list, unpacked a piece at a time into the first-level cache.
class PackedProgram {
 public:
  explicit PackedProgram(const PackedList& list);

  void run(const KernelTable& table, Stores stores, std::byte* destination, const std::byte* source, Index first,
           Index last) const;
  OffsetPair at(Index k) const;
  Index block() const { return block_; }
  Index workspace_bytes() const { return list_.workspace_bytes(); }
  std::string describe() const;

 private:
  PackedList list_;
  Index block_;  ///< bytes
  bool dense_source_, dense_destination_, narrow_;
};

}  // namespace longshore

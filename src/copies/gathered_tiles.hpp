/// Transposition where rows or columns are too short for one: several loops of either side make them longer.
#pragma once

#include <optional>
#include <vector>

#include "longshore/copies/kernels.hpp"

namespace longshore {

/// A loop over blocks on both sides; strides in bytes.
struct BlockStep {
  Index n = 1, source = 0, destination = 0;
};

/// Loops that are dense in the destination one after the other, and others that are dense in the source, carried out
/// as one matrix: some of it at a time is gathered into cache, as long pieces of the source, transposed there, and
/// leaves as long pieces of the destination. Either step is left out where a side is one loop.
class GatheredTiles {
 public:
  /// Bytes of a loop that needs no other: a line.
  static constexpr Index long_enough = 64;
  /// Takes the loops that make the matrix out of `loops`, which are of blocks of this size. None, and nothing is taken,
  /// where the first loop of either side is long enough by itself, or has no other to go with.
  static std::optional<GatheredTiles> find(std::vector<BlockStep>& loops, Index block);

  void run(const KernelTable& table, Stores stores, std::byte* destination, const std::byte* source) const;
  Index rows() const { return from_.together * from_.last.n; }
  Index columns() const { return to_.together * to_.last.n; }

 private:
  /// Loops that follow each other on one side: the first, those between, the last, which is taken some at a time. A
  /// single loop is the last.
  struct Chain {
    BlockStep first, last;
    std::vector<BlockStep> between;
    Index together = 1;  ///< all but the last
    Index some = 1;      ///< of the last, in a tile
    bool single() const { return together == 1; }
    Index most() const { return together * some; }
  };
  void run_plainly(const KernelTable& table, std::byte* destination, const std::byte* source) const;
  static Chain chain(const std::vector<BlockStep>& loops, Index block);
  template <class F>
  static void for_each_between(const Chain& chain, const F& f);

  Index block_ = 0, gathered_pitch_ = 0, written_pitch_ = 0;
  Chain from_;  ///< dense in the destination: what is gathered from the source
  Chain to_;    ///< dense in the source: what is scattered over the destination
};

}  // namespace longshore

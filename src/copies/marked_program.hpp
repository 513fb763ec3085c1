/// Ascending lists with few gaps, compiled for the receiver: one bit a place in place of an index an element.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "longshore/copies/kernels.hpp"
#include "longshore/relations/offset_runs.hpp"

namespace longshore {

/// A dense message's blocks to ascending places.
class MarkedProgram {
 public:
  /// Blocks of `block` bytes, each a run of the reader. Nothing where the source is not dense, the places do not
  /// ascend, or scattering them by their indices is faster.
  static std::optional<MarkedProgram> make(const KernelTable& table, Index block, RunReader& blocks);

  /// Moves the blocks [first, last).
  void run(const KernelTable& table, Stores stores, std::byte* destination, const std::byte* source, Index first,
           Index last) const;
  OffsetPair at(Index k) const { return {source_ + k * block_, destination_ + place(k) * block_}; }  ///< of block k
  Index block() const { return block_; }
  Index workspace_bytes() const { return Index(sizeof *this + marks_.size() + before_.size() * sizeof(Index)); }
  std::string describe() const;

 private:
  MarkedProgram() = default;
  bool take(OffsetPair pair);  ///< appends a block, if it goes on in the way it must
  bool finish();               ///< whether it is worth it
  Index place(Index k) const;  ///< of block k

  static constexpr Index stride = 4096;  ///< places between those of which is known how many blocks come before
  Index block_ = 0, count_ = 0, source_ = 0, destination_ = 0, places_ = 0;
  std::vector<std::uint8_t> marks_;
  std::vector<Index> before_;
};

}  // namespace longshore

/// engines/mpi: how the processes of one node find each other's memory when a plan is bound.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "mpi/communicator.hpp"
#include "mpi/ring.hpp"
#include "mpi/shared_segment.hpp"

namespace longshore::mpi {

/// Who carries a motion between two processes of a node, or that it goes through MPI.
enum class Carrier { pull, push, ring, messages };

/// One process's mailbox and incoming rings, as it lies at the start of its control segment: two flags of its own,
/// `Flag done[n]` and `RingShape rings[n]` for the n processes of the node, then the rings.
class ControlBlock {
 public:
  ControlBlock() = default;
  ControlBlock(std::byte* segment, int node_size) : segment_(segment), node_size_(node_size) {}
  static Index header_bytes(int node_size) {
    return ceil_div((Index(sizeof(Flag)) + Index(sizeof(RingShape))) * node_size, 64) * 64 + 2 * Index(sizeof(Flag));
  }
  /// The move that the owner has started: its sources may be read and its destinations written.
  Flag& ready() const { return flags()[0]; }
  /// Not 0: the owner's mover has broken off or is gone, and will do no more than it has done.
  Flag& left() const { return flags()[1]; }
  /// The move in which process `from` has finished with the owner's arrays.
  Flag& done(int from) const { return flags()[2 + from]; }
  /// The ring in which process `from` sends to the owner.
  RingShape& ring(int from) const { return reinterpret_cast<RingShape*>(&done(node_size_))[from]; }
  std::byte* segment() const { return segment_; }
  explicit operator bool() const { return segment_ != nullptr; }

 private:
  Flag* flags() const { return reinterpret_cast<Flag*>(segment_); }
  std::byte* segment_ = nullptr;
  int node_size_ = 0;
};

/// Every process's control block that this process has to do with.
class ControlBlocks {
 public:
  /// Collective over the node. `ring_bytes[i]`: the bytes that process i of the node sends here through a ring in one
  /// move; `partners`: the processes whose blocks are needed. `budget` bounds the bytes of all rings here. What a
  /// process sends in a move finds room all at once if it is no more than `eager_bytes`.
  ControlBlocks(const Communicator& communicator, const std::vector<Index>& ring_bytes, const std::set<int>& partners,
                Index element_bytes, Index budget, Index eager_bytes = 0);
  /// False: there is an obstacle to shared control memory, in words; everything goes through MPI.
  bool usable() const { return obstacle_.empty(); }
  const std::string& obstacle() const { return obstacle_; }
  const ControlBlock& mine() const { return blocks_[std::size_t(me_)]; }
  const ControlBlock& of(int node_rank) const { return blocks_[std::size_t(node_rank)]; }
  Index ring_bytes() const { return ring_bytes_; }
  /// Of the rings and all else in the control segment.
  Index held_bytes() const { return segment_ ? segment_->held_bytes() : 0; }

 private:
  int me_;
  std::string obstacle_;
  Index ring_bytes_ = 0;
  std::shared_ptr<SharedSegment> segment_;
  std::vector<std::shared_ptr<SegmentView>> views_;
  std::vector<ControlBlock> blocks_;
};

}  // namespace longshore::mpi

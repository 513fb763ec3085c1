/// engines/mpi: how the processes of one node find each other's memory when a plan is bound.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "engines/mpi/parts.hpp"
#include "longshore/movers/local_moves.hpp"
#include "mpi/communicator.hpp"
#include "mpi/ring.hpp"
#include "mpi/shared_segment.hpp"

namespace longshore::mpi {

/// Who carries a motion between two processes of a node, or that it goes through MPI.
enum class Carrier { pull, push, ring, messages };

/// The shared parts of a node: which layout ranks' arrays others can see, and those that this process has mapped.
class SharedParts {
 public:
  /// Collective over the node. `wanted`: false makes nothing visible (the same on all ranks).
  SharedParts(const Communicator& communicator, const MotionPlan& plan, const HeldParts& parts, bool wanted);

  bool source_visible(Index rank) const { return sources_.count(rank) > 0; }
  bool destination_visible(Index rank) const { return destinations_.count(rank) > 0; }
  Direction direction() const { return direction_; }
  const std::vector<std::shared_ptr<SegmentView>>& views() const { return views_; }
  /// Why nothing is visible although it was wanted, in words; the same on all ranks of the node.
  const std::string& obstacle() const { return obstacle_; }
  /// The same answer on both ends.
  Carrier carrier(const Motion& motion) const;
  /// The tasks of this process: local motions, and those that it pulls and pushes.
  std::vector<CopyTask> tasks(const MotionPlan& plan, const HeldParts& parts, const Combine& combine,
                              Index task_bytes) const;

 private:
  struct Mapped {
    SharedSegment::Address address;
    Index offset = 0;
    std::byte* data = nullptr;  ///< once mapped, if needed here
  };
  void map(const Communicator& communicator, const HeldParts& parts);
  Direction direction_;
  std::map<Index, Mapped> sources_, destinations_;  ///< by layout rank
  std::vector<std::shared_ptr<SegmentView>> views_;
  std::string obstacle_;
};

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

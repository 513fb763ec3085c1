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

/// What a mover has at one process for the others of its node, as it lies in that process's memory: two flags of its
/// own, a line for each of the n processes, then the rings in which they send.
class ControlBlock {
 public:
  ControlBlock() = default;
  explicit ControlBlock(std::byte* data) : data_(data) {}
  static Index header_bytes(int node_size) { return 2 * Index(sizeof(Flag)) + node_size * Index(sizeof(FromPeer)); }
  /// The move that the owner has started: its sources may be read and its destinations written.
  Flag& ready() const { return flags()[0]; }
  /// Not 0: the owner's mover has broken off or is gone, and will do no more than it has done.
  Flag& left() const { return flags()[1]; }
  /// The move in which process `from` has finished with the owner's arrays.
  std::atomic<std::uint64_t>& done(int from) const { return line(from).done; }
  /// Not 0: process `from` will not look at this block again.
  std::atomic<std::uint64_t>& gone(int from) const { return line(from).gone; }
  /// The ring in which process `from` sends to the owner.
  RingShape& ring(int from) const { return line(from).ring; }
  std::byte* data() const { return data_; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  struct alignas(64) FromPeer {
    std::atomic<std::uint64_t> done{0}, gone{0};
    RingShape ring;
  };
  static_assert(sizeof(FromPeer) == 64);
  Flag* flags() const { return reinterpret_cast<Flag*>(data_); }
  FromPeer& line(int from) const { return reinterpret_cast<FromPeer*>(flags() + 2)[from]; }
  std::byte* data_ = nullptr;
};

/// What a process asks the others of its node to use of its memory.
struct ControlOffer {
  SharedSegment::Address address;
  Index offset = 0;
};

/// What rings to a process must be like.
struct RingTerms {
  Index element_bytes = 1;
  Index budget = INT64_MAX;           ///< bytes of all of them
  Index eager_bytes = 0;              ///< what a process sends in a move finds room all at once if it is no more
  Index line_phase = 0;               ///< of what is received (`RingShape`)
  Index most_slot_bytes = INT64_MAX;  ///< if an element is no longer
};

/// Every process's control block that this process has to do with.
class ControlBlocks {
 public:
  /// `ring_bytes[i]`: the bytes that process i of the node sends here through a ring in one move; `partners`: the
  /// processes whose blocks are needed, and who need this one. Not collective.
  ControlBlocks(const std::shared_ptr<Communicator>& communicator, const std::vector<Index>& ring_bytes,
                const std::set<int>& partners, const RingTerms& terms);
  /// The blocks of others are let go. This one is used again when all partners have let it go.
  ~ControlBlocks();
  ControlBlocks(const ControlBlocks&) = delete;
  ControlBlocks& operator=(const ControlBlocks&) = delete;

  const ControlOffer& offer() const { return offer_; }
  /// What everybody of the node offers, all partners something. Throws where a block cannot be mapped.
  void see(const std::vector<ControlOffer>& offers);
  /// All partners have seen this block, or will. Before that it is nobody else's affair.
  void confirm() { confirmed_ = true; }
  bool is_confirmed() const { return confirmed_; }

  const ControlBlock& mine() const { return blocks_[std::size_t(me_)]; }
  const ControlBlock& of(int node_rank) const { return blocks_[std::size_t(node_rank)]; }
  Index ring_bytes() const { return ring_bytes_; }
  /// Of the rings and all else in this process's block.
  Index held_bytes() const { return block_.bytes; }

 private:
  std::shared_ptr<Communicator> communicator_;
  int me_;
  std::vector<int> partners_;
  Index ring_bytes_ = 0;
  NodeMemory::Block block_;
  ControlOffer offer_;
  std::vector<std::shared_ptr<SegmentView>> views_;
  std::vector<ControlBlock> blocks_;
  bool confirmed_ = false;
};

}  // namespace longshore::mpi

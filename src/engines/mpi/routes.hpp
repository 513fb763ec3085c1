/// engines/mpi: which way each transfer takes.
#pragma once

#include <map>
#include <tuple>

#include "engines/mpi/mpi_mover.hpp"
#include "movers/share.hpp"
#include "mpi/shared_segment.hpp"

namespace longshore::mpi {

/// How processes of a node move what is theirs.
struct NodeWays {
  bool shared = true;       ///< straight between arrays, where one of them can be seen
  bool short_runs = false;  ///< those with short runs, too: by rule, who owns the source packs them
  bool rings = true;        ///< the rest; false: in messages
};

class Routes {
 public:
  /// Collective over the node: finds out who can see whose memory, and who carries what. What neither is seen nor has a
  /// ring is left over for messages. What fails here is left in `mine`, to be told when all agree next. Shares have
  /// been resolved.
  Routes(const std::shared_ptr<Communicator>& communicator, std::vector<Share*> shares, NodeWays ways,
         const Options& options, const Budget& budget, Submission& mine);

  /// Whether anything of this process goes through MPI.
  bool has_messages() const;
  /// Whether this process cannot see the flags of one that it needs.
  bool is_blocked() const { return blocked_.has_value(); }
  /// Collective over the node, where some process of any node is blocked: on a node that has such a process everything
  /// goes through MPI.
  void give_way(Submission& mine);
  /// To seeing each other's memory, in words; empty where there is none.
  std::string obstacle() const;
  Index ring_bytes() const { return control_ ? control_->ring_bytes() : 0; }
  /// What goes through MPI. The routes must outlive the sides.
  MessageSide outgoing() { return side(true); }
  MessageSide incoming() { return side(false); }
  /// How many processes there is something for (from) through MPI, in ascending order.
  std::vector<int> receivers() const { return peers(true); }
  std::vector<int> senders() const { return peers(false); }
  /// Makes the copy programs. Not collective, so that it may fail.
  NodeTraffic compile();
  /// All have agreed: flags and rings are in use.
  void confirm() {
    if (control_) control_->confirm();
  }

 private:
  /// One field's transfers by who carries them, each list by peers. Fields that are alike have one of them.
  struct Sorted {
    std::vector<Transfer> pulled, pushed, ring_out, ring_in, message_out, message_in;
  };
  /// Memory that all storages of a rank lie in, or one block by itself, here or at another process of the node.
  struct Storage {
    SharedSegment::Address address;
    Index offset = 0;
    Index blocks = 0;           ///< more than 0: so many lie by themselves, and this is where to look for none of them
    std::byte* data = nullptr;  ///< once mapped, if needed here
  };
  using StorageKey = std::tuple<std::size_t, Side, Index, Index>;  ///< field, side, rank, and block or all

  template <class Work>
  void here(Submission& mine, Work&& work);
  void share_storage(Submission& mine);
  void share_blocks(Submission& mine, const std::vector<Index>& words);
  void map_storage();
  void sort();
  void make_control(Submission& mine);
  void all_in_messages();
  void leave_to_messages(std::vector<Transfer>& rings, std::vector<Transfer>& messages, bool outgoing);
  std::shared_ptr<Sorted> sorted_like(std::size_t field) const;
  Carrier carrier(std::size_t field, const Transfer& transfer) const;
  std::byte* seen(std::size_t field, Side side, const Transfer& transfer) const;
  std::string private_arrays() const;
  void compile_copies(NodeWork& work);
  void compile_rings(NodeWork& work);
  MessageSide side(bool outgoing);
  std::vector<int> peers(bool outgoing) const;
  std::map<int, std::vector<std::unique_ptr<Message>>> ring_messages(bool outgoing);

  const std::shared_ptr<Communicator> communicator_;
  std::vector<Share*> shares_;
  const NodeWays ways_;
  const Options& options_;
  int me_;
  Budget budget_;
  std::map<StorageKey, Storage> storage_;
  std::vector<std::shared_ptr<SegmentView>> views_;
  std::vector<std::shared_ptr<const Memory>> shown_;  ///< of this process, to others
  std::vector<std::shared_ptr<Sorted>> sorted_;
  std::vector<Index> ring_bytes_;                 ///< by node rank: what arrives here through rings
  std::set<int> partners_, accessors_, writers_;  ///< by node rank
  std::shared_ptr<ControlBlocks> control_;
  std::optional<std::string> blocked_;  ///< by what, in words; none where it is another process's affair
  std::string obstacle_, refusal_;      ///< of the node; of arrays here
};

}  // namespace longshore::mpi

/// engines/mpi: which way each motion between blocks takes.
#pragma once

#include <map>

#include "engines/mpi/mpi_mover.hpp"
#include "movers/block_copies.hpp"
#include "mpi/shared_segment.hpp"

namespace longshore::mpi {

class BlockRoutes {
 public:
  /// Collective over the node: finds out who can see whose memory. The arrays have been checked. What fails here is
  /// left in `mine`, to be told when all agree next.
  BlockRoutes(const Communicator& communicator, const BlockPlan& plan, const XArray& source, const XArray& destination,
              const ExchangeOptions& options, const Budget& budget, Submission& mine);

  /// To seeing each other's memory, in words; empty where there is none.
  const std::string& obstacle() const { return obstacle_; }
  Index ring_bytes() const { return control_ ? control_->ring_bytes() : 0; }
  Index moved_bytes() const { return moved_bytes_; }
  /// What goes through MPI. The routes must outlive the sides.
  MessageSide outgoing();
  MessageSide incoming();
  /// How many processes there is something for (from) through MPI, in ascending order.
  std::vector<int> receivers() const { return peers_of(message_out_); }
  std::vector<int> senders() const { return peers_of(message_in_); }
  /// Makes the copy programs. Not collective, so that it may fail. Call it once.
  NodeTraffic compile();

 private:
  /// Motions by the process at the other end, each list in the order that both ends have in common.
  using ByPeer = std::map<int, std::vector<BlockMotion>>;
  /// Another process's source array, mapped here.
  struct Mapped {
    std::shared_ptr<SegmentView> view;
    GridPlaces places;
  };

  static std::vector<int> peers_of(const ByPeer& motions);
  void find_motions(const BlockPlan& plan, ByPeer& outgoing, ByPeer& incoming);
  void share(const ByPeer& incoming);
  void sort(ByPeer motions, bool outgoing, std::vector<Index>& ring_bytes, std::set<int>& partners);
  bool pulled(int process, const BlockMotion& motion) const;
  Grid source_grid(int process, const BlockMotion& motion) const;
  Index bytes_of(const std::vector<BlockMotion>& motions) const;
  std::vector<Stretch> assemblies(const std::vector<BlockMotion>& motions);
  std::vector<Stretch> disassemblies(const std::vector<BlockMotion>& motions);
  std::vector<BlockMotion> woven(const std::vector<BlockMotion>& motions) const;
  MessageSide side(const ByPeer& motions, bool outgoing);

  const Communicator& communicator_;
  const XArray &source_, &destination_;
  const ExchangeOptions& options_;
  int me_;
  BlockCopies copies_;
  std::vector<bool> visible_;     ///< by node rank: whose sources can be seen
  std::map<int, Mapped> mapped_;  ///< by node rank
  std::unique_ptr<ControlBlocks> control_;
  std::vector<BlockMotion> local_;
  ByPeer pull_, ring_out_, ring_in_, message_out_, message_in_;
  std::set<int> touchers_;
  std::string obstacle_;
  Index moved_bytes_ = 0;
};

}  // namespace longshore::mpi

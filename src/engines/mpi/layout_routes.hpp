/// engines/mpi: which way each motion between two layouts takes.
#pragma once

#include "engines/mpi/node_traffic.hpp"
#include "mpi/agreement.hpp"

namespace longshore::mpi {

class LayoutRoutes {
 public:
  /// Collective over the node: finds out who carries what. Whatever has neither visible memory nor a ring is left over
  /// for messages. What fails here is left in `mine`, to be told when all agree next.
  LayoutRoutes(const Communicator& communicator, const MotionPlan& plan, const HeldParts& parts, const Options& options,
               Index ring_budget, Submission& mine);

  /// The motions that go through MPI, in their order.
  const std::vector<HeldMotion>& outgoing_left() const { return outgoing_left_; }
  const std::vector<HeldMotion>& incoming_left() const { return incoming_left_; }
  /// To seeing each other's memory, in words; empty where there is none.
  const std::string& obstacle() const { return obstacle_; }
  Index ring_bytes() const { return control_ ? control_->ring_bytes() : 0; }

  /// Makes the copy programs. Not collective, so that it may fail. Call it once.
  NodeTraffic compile(const HeldParts& parts, const Combine& combine);

 private:
  void compile_copies(NodeWork& work, const HeldParts& parts, const Combine& combine) const;
  void compile_rings(NodeWork& work, const Combine& combine) const;

  const Communicator& communicator_;
  const MotionPlan& plan_;
  int me_;
  SharedParts shared_;
  std::unique_ptr<ControlBlocks> control_;
  std::vector<int> touchers_;
  std::vector<HeldMotion> ring_out_, ring_in_, outgoing_left_, incoming_left_;
  std::string obstacle_;
};

/// The motions as messages in packets of at most `capacity` bytes; none: each in one. Not collective.
std::vector<PeerEnd> messages_of(const MotionPlan& plan, const std::vector<HeldMotion>& motions, bool outgoing,
                                 const Combine& combine, std::optional<Index> capacity);

}  // namespace longshore::mpi

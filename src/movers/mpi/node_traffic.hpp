/// movers/mpi: what one process does within its node while a plan moves: copies between visible arrays, and rings.
#pragma once

#include <vector>

#include "movers/mpi/node_setup.hpp"

namespace longshore::mpi {

class NodeTraffic {
 public:
  /// Collective over the node: finds out who carries what. Whatever has neither visible memory nor a ring is left over
  /// for messages.
  NodeTraffic(const Communicator& communicator, const MotionPlan& plan, const HeldParts& parts, SharedParts shared,
              bool rings, Index ring_budget);
  /// Makes the copy programs. Not collective, so that it may fail.
  void compile(const MotionPlan& plan, const HeldParts& parts, const Combine& combine);

  /// The motions that go through MPI, in their order.
  const std::vector<HeldMotion>& outgoing_left() const { return outgoing_left_; }
  const std::vector<HeldMotion>& incoming_left() const { return incoming_left_; }

  void start();
  /// Does a bounded piece of work: at most one copy task and one packet a ring. True if anything was done.
  bool advance();
  bool done() const { return tasks_done_ && rings_done_ && awaited_.empty(); }

  Index ring_bytes() const { return control_ ? control_->ring_bytes() : 0; }
  void describe(std::string& text) const;

 private:
  /// A process of the node whose arrays this process's tasks touch.
  struct Partner {
    ControlBlock block;
    std::size_t tasks = 0, left = 0;
    bool ready = false;
  };
  struct Task {
    CopyTask copy;
    std::vector<std::size_t> partners;
    bool run = false;
  };
  bool run_task();
  bool behind_arrivals() const;
  bool runnable(const Task& task);
  void finish(const Task& task);

  void compile_copies(const MotionPlan& plan, const HeldParts& parts, const Combine& combine);
  void compile_rings(const MotionPlan& plan, const Combine& combine);

  const Communicator& communicator_;
  int me_;
  SharedParts shared_;
  std::unique_ptr<ControlBlocks> control_;
  ControlBlock mine_;
  std::uint64_t move_ = 0;

  std::vector<Task> tasks_;
  std::vector<Partner> partners_;
  std::size_t first_task_ = 0;  ///< all before it have run
  bool tasks_done_ = true;

  std::vector<RingSender> senders_;
  std::vector<RingReceiver> receivers_;
  bool rings_done_ = true;

  std::vector<int> touchers_;  ///< those who read or write the arrays here
  std::vector<int> awaited_;   ///< those of them who have not finished with this move
  std::vector<HeldMotion> ring_out_, ring_in_, outgoing_left_, incoming_left_;
  Index pulled_bytes_ = 0, local_bytes_ = 0, pushed_bytes_ = 0, sent_bytes_ = 0, received_bytes_ = 0;
};

}  // namespace longshore::mpi

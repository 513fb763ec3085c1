/// engines/mpi: what one process does within its node while a plan moves: copies between visible arrays, and rings.
#pragma once

#include <vector>

#include "engines/mpi/node_setup.hpp"
#include "longshore/movers/local_moves.hpp"
#include "movers/arrivals.hpp"
#include "movers/helpers.hpp"
#include "movers/task_queue.hpp"
#include "mpi/patience.hpp"

namespace longshore::mpi {

/// The node's share of a plan, as routes of layouts or of blocks have worked it out.
struct NodeWork {
  struct Task {
    CopyTask copy;
    std::vector<int> peers;   ///< by node rank, each once: whose arrays it reads or writes
    std::uint32_t share = 0;  ///< whose of those that are carried out together
  };
  struct Bytes {
    Index local = 0, pulled = 0, pushed = 0, sent = 0, received = 0;
    void add(const Bytes& other) {
      local += other.local, pulled += other.pulled, pushed += other.pushed;
      sent += other.sent, received += other.received;
    }
  };
  /// What is local, but copied when packets from a process of the node are unpacked: whose share, and which motion.
  struct Along {
    std::uint32_t share = 0, motion = 0;
    int peer = 0;  ///< by node rank
  };
  std::vector<Task> tasks;  ///< in the order in which they are best run
  std::vector<Along> along;
  std::vector<RingSender> senders;
  std::vector<RingReceiver> receivers;
  bool in_step = false;                              ///< packets of several are best taken in step
  std::vector<int> accessors;                        ///< by node rank: who reads or writes the arrays here
  std::vector<int> writers;                          ///< of these, who writes
  std::vector<std::shared_ptr<SegmentView>> views;   ///< what the tasks reach into
  std::vector<std::shared_ptr<const Memory>> shown;  ///< what those of others reach into
  Bytes bytes;
  Index workspace_bytes = 0;  ///< of what the tasks have in common
};

/// Carries it out. Not collective.
class NodeTraffic {
 public:
  /// `control` may be null where there is nothing but local work.
  NodeTraffic(int me, std::shared_ptr<ControlBlocks> control, NodeWork work);

  /// What the rings have room for goes out, so that others find it whatever is done here meanwhile; not if it is waited
  /// for `blocking`: then packets leave and arrive in turns, and what two of them touch is still in cache. `helpers`
  /// may be null; else they call run_next().
  void start(const Communicator& communicator, bool blocking, Helpers* helpers);
  /// Does a bounded piece of work: at most one copy task and one packet a ring. True if anything was done.
  /// Throws `Error(transport)` where arrays that were read or written here are gone.
  bool advance(const Communicator& communicator);
  bool done() const { return tasks_done_ && rings_done_ && awaited_.empty(); }
  /// Those without whom it does not get on.
  std::vector<Awaited> awaited(const Communicator& communicator) const;
  /// Of arrivals here, by motions of shares of which `first` is the first: what tasks bring, and which of it has come
  /// since that was last asked about in this move.
  void expect(Arrivals& arrivals, std::size_t first) const;
  void tell(Arrivals& arrivals, std::size_t first);
  /// Adds the ranks of those who have yet to write something here, or to send it through a ring.
  void add_missing(const Communicator& communicator, std::set<int>& ranks) const;
  /// Whether another process has given up. False where that cannot be seen.
  bool has_left(const Communicator& communicator, int rank) const;
  /// Runs a task that may be run, if there is one. By helpers.
  bool run_next();
  /// Tells those who wait for this process that no more is done here, and sees to it.
  void leave();
  /// No longer holds what others reach into, but for what nobody else holds, of which it gives the bytes.
  Index leave_memory();
  /// Whether what others reach into is still there, since it is not held.
  bool memory_is_there() const;

  /// Of the rings alone.
  Index staging_bytes() const { return control_ ? control_->ring_bytes() : 0; }
  Index workspace_bytes() const { return workspace_bytes_; }
  const NodeWork::Bytes& bytes() const { return bytes_; }
  std::size_t tasks() const { return tasks_.size(); }

 private:
  /// A process of the node whose arrays this process's tasks touch.
  struct Partner {
    int peer;
    ControlBlock block;
    std::size_t tasks = 0, left = 0;
    bool ready = false;
  };
  struct Task {
    CopyTask copy;
    std::vector<std::size_t> partners;
    std::uint32_t share = 0;
    bool offered = false, run = false, told = false;
  };
  bool run_task(const Communicator& communicator);
  void offer();
  bool behind_arrivals() const;
  const RingReceiver* furthest_behind() const;
  bool runnable(const Task& task);
  void finish(const Task& task, const Communicator& communicator);

  int me_;
  std::shared_ptr<ControlBlocks> control_;
  std::vector<std::shared_ptr<SegmentView>> views_;
  std::vector<std::shared_ptr<const Memory>> shown_;
  std::vector<std::weak_ptr<const Memory>> left_;  ///< what was shown and is not held any more
  ControlBlock mine_;
  std::uint64_t move_ = 0;

  std::vector<Task> tasks_;
  std::vector<Partner> partners_;
  std::unique_ptr<TaskQueue> queue_;     ///< of those that were offered
  Helpers* helpers_ = nullptr;           ///< of this move
  std::vector<std::size_t> unfinished_;  ///< those that were offered and have not been seen to be done
  std::size_t offered_task_ = 0;         ///< all before it have been offered
  std::size_t run_tasks_ = 0;            ///< so many have run
  std::size_t last_task_ = 0;            ///< it and all behind it have not
  std::size_t told_task_ = 0;            ///< all before it have been told of
  bool tasks_done_ = true;

  std::vector<RingSender> senders_;
  std::vector<RingReceiver> receivers_;
  bool in_step_;
  std::vector<NodeWork::Along> along_;
  std::size_t told_along_ = 0;
  bool rings_done_ = true;
  int looks_ = 0;  ///< in vain, since something was done

  std::vector<int> accessors_, writers_;
  std::vector<int> awaited_;  ///< those of them who have not finished with this move
  NodeWork::Bytes bytes_;
  Index workspace_bytes_;
};

}  // namespace longshore::mpi

/// mpi: `Communicator`, the engine's private duplicate of the user's communicator and what it knows of the node.
#pragma once

#include <sched.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "longshore/core/checked.hpp"
#include "longshore/mpi/communicator.hpp"
#include "mpi/liveness.hpp"
#include "mpi/mpi_header.hpp"
#include "mpi/node_board.hpp"
#include "mpi/node_memory.hpp"
#include "mpi/slot_stores.hpp"

namespace longshore::mpi {

/// A move under way, which whoever waits for another one can push on.
class Flight {
 public:
  virtual ~Flight() = default;
  /// A bounded piece of work, unless somebody is at it. True if anything was
  /// done. Throws nothing: what goes wrong is told to whom the move belongs.
  virtual bool help() noexcept = 0;
};

/// Throws `Error(transport)` with MPI's own words unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* call);

/// Collective. A duplicate for this library's own messages, which returns errors. MPICH gives a new communicator the
/// context of one that was freed, and with it the messages that were sent there and that nobody has received: they are
/// taken out before anybody sends.
MPI_Comm duplicate(MPI_Comm comm);

/// One for each communicator of the user's, cached as its attribute and freed with it.
class Communicator {
 public:
  /// Finds or makes it. Collective over `comm` the first time. Throws `Error(argument)` for what is no usable
  /// communicator.
  static std::shared_ptr<Communicator> of(CommHandle comm);
  ~Communicator();

  MPI_Comm world() const;  ///< the private duplicate; throws once the user has freed the communicator
  MPI_Comm node() const;   ///< those of `world()` on this node
  int rank() const { return rank_; }
  int size() const { return size_; }
  int node_rank() const { return node_rank_; }
  int node_size() const { return int(node_ranks_.size()); }
  int world_rank_of(int node_rank) const { return node_ranks_[node_rank]; }
  int node_rank_of(int world_rank) const;  ///< -1: on another node
  /// More processes on the node than processors that they may use: waiting processes must step aside at once.
  bool crowded() const { return crowded_; }
  /// Something has been written that a process of the node may be waiting for.
  void wake(int node_rank) const {
    if (board_) board_->wake(node_rank);
  }
  /// For who waits for others of the node: see `NodeBoard::step_aside`.
  template <class Look>
  void step_aside(Look&& look) const {
    if (board_)
      board_->step_aside(look);
    else
      sched_yield();
  }
  /// A tag for one mover; the same on all ranks because binding is collective.
  int next_tag() { return int(movers_++ % tags_); }
  /// A number for one mover, which no other one gets; the same on all ranks, as tags are.
  Index next_number() { return ++numbers_; }
  /// Sends these ranks the word that this one takes no more part in a mover's moves; nobody waits for it.
  void give_up(Index mover, const std::set<int>& ranks) const;
  /// Whether a rank's word has come that it takes no more part in a mover's moves.
  bool has_given_up(int rank, Index mover);
  /// From start to completion of a move: its owner may wait for another one first, and others for it.
  void take_off(std::shared_ptr<Flight> flight);
  void land(const Flight& flight);
  /// Pushes on the moves under way but for `mine`. True if anything was done.
  bool help_others(const Flight& mine);
  /// Whether a rank of `world()` is known to have ended: none of another node is.
  bool has_ended(int world_rank) const;
  std::int64_t process_number(int world_rank) const;  ///< of a rank of this node
  /// Where movers have what they share with the processes of the node.
  NodeMemory& memory() const { return *memory_; }
  /// By node rank.
  const std::shared_ptr<MeasuredStores>& measured_stores() const { return measured_stores_; }
  /// Null where there is none.
  NodeBoard* board() const { return board_.get(); }
  /// Lets MPI make progress for everybody else's communication while we wait in shared memory.
  void poke() const;
  /// The same from a thread of this library's own. False once MPI must not be touched any more: it is being finalised,
  /// or threads are kept out.
  bool poke_unless_finalising() const;
  /// Has `what` called by whoever waits for others here or lets MPI get on, in this process's turn in MPI, until it is
  /// taken back by its name. It must not throw.
  void add_besides(const void* name, std::function<void()> what);
  void remove_besides(const void* name);
  /// Calls all of them, unless another thread has the turn and so may be doing that.
  void do_besides() const;
  /// Whoever calls MPI again and again until something has come counts himself here: a thread for progress rests then.
  std::atomic<int>& callers() const { return callers_; }
  /// After the user freed the communicator (collectively) nothing of it can be used.
  void release();

 private:
  explicit Communicator(MPI_Comm comm);
  void learn_node();
  void probe() const;

  MPI_Comm world_ = MPI_COMM_NULL, node_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1, node_rank_ = 0;
  std::vector<int> node_ranks_;  // ascending
  std::vector<ProcessId> node_processes_;
  bool crowded_ = false;
  std::mutex mutex_;  // of the following: several threads may have moves under way
  std::vector<std::shared_ptr<Flight>> flights_;
  std::atomic<int> flying_ = 0;
  unsigned movers_ = 0, tags_ = 32766;  // of movers; of the last two one is give_up()'s, one is nobody's
  Index numbers_ = 0;
  std::set<std::pair<int, Index>> given_up_;  // ranks, and movers
  std::unique_ptr<NodeMemory> memory_;
  std::unique_ptr<NodeBoard> board_;
  std::shared_ptr<MeasuredStores> measured_stores_ = std::make_shared<MeasuredStores>();
  mutable std::atomic<int> callers_ = 0;
  std::vector<std::pair<const void*, std::function<void()>>> besides_;  // in this process's turn in MPI
  std::atomic<bool> has_besides_ = false;
};

/// Keeps threads for progress out of MPI: libraries that allow calls from several threads are not all good at it.
std::unique_lock<std::mutex> turn_in_mpi();

/// From now on none of them calls MPI.
void keep_threads_out();

/// Throws `Error(argument)` unless MPI is initialised and not finalised.
void check_running();
/// The same, at the cost of a look, where there has been a `Communicator`. Else MPI may end the process.
void check_not_finalised();
/// Checks that MPI runs and that this is an intracommunicator.
MPI_Comm usable(CommHandle comm);
/// False once MPI_Finalize has been called or begun: nothing of MPI may be touched any more.
bool mpi_alive();

}  // namespace longshore::mpi

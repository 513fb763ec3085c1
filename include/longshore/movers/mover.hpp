/// movers: carry out plans. A `Mover` is plans bound to memory and to an engine: start(), wait(), again and again.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "longshore/layouts/xarray.hpp"
#include "longshore/movers/arrival.hpp"
#include "longshore/plans/block_plan.hpp"
#include "longshore/plans/motion_plan.hpp"
#include "longshore/relations/update.hpp"

namespace longshore {

/// A rank's local array as its owner gives it. `strides` in bytes. Movers hold on to `owner`.
struct LocalArray {
  std::byte* data = nullptr;
  Point shape;
  Point strides;
  bool read_only = false;
  std::shared_ptr<const MemoryOwner> owner;
};

/// The memory of an array that a mover is bound to, and what to call the array: "source array of rank" 3.
struct BoundMemory {
  std::shared_ptr<const MemoryOwner> owner;
  const char* what = "";
  Index number = 0;
};

/// One rank's array of one layout, held by this process.
struct Part {
  Index rank = 0;  ///< of the layout
  LocalArray array;
};

/// Which process holds what belongs to a rank of a plan: the one of the same number, or rank modulo their number. The
/// `threads` engine has one process, which holds all.
enum class Placement { direct, wrap };

/// Whether halos are carried out dimension by dimension (see `phases`), which writes the same. `automatic`: where that
/// is known to be faster; `always`: or `Error(argument)` is thrown, saying why not.
enum class Phases { automatic, never, always };

/// How plans are bound, to whatever engine.
struct MoveOptions {
  Update update;      ///< what is done where it writes; fields that have one of their own say so themselves
  int threads = 0;    ///< that copy; 0: one, on the `threads` engine as many as the process may run on
  Index max_mem = 0;  ///< bytes the mover may hold beyond the arrays; 0: no bound
  /// Of blocks: the order in which points of regions of different shape are paired; see `visiting_order`.
  std::optional<Order> visit = {};
  Placement placement = Placement::direct;
  Phases phases = Phases::automatic;  ///< of blocks: whether halos go dimension by dimension
  /// A thread of the mover's own carries the move out, from start() on: real overlap, for a core of its own.
  bool proxy = false;
  /// The safety-checking mode: sums over all that is read and written, at start() and in wait(), which
  /// throws `Error(buffer)` where a source was written in between and `Error(transport)` where
  /// something else arrived than was sent. Twice the work and more.
  bool checked = false;
};

class Arrivals;
struct Incoming;
class Share;

/// A plan, one process's arrays for it, and what is done where it writes. Several of them, of plans between layouts and
/// between blocks, are moved together by one mover: one agreement, one message a peer, one start and wait. The plan
/// must outlive the binding.
class Field {
 public:
  /// `element`: what an element is ("<f8"), compared between the ranks; may be empty.
  Field(const MotionPlan& plan, std::vector<Part> sources, std::vector<Part> destinations, Update update = {},
        std::string element = {});
  /// Where source and destination are the same array, it is an endogenous copy, as halos are.
  Field(const BlockPlan& plan, XArray source, XArray destination, Update update = {}, std::optional<Order> visit = {},
        std::string element = {}, Phases phases = Phases::automatic);
  /// The same where a process has the blocks of several ranks: an array for each of them.
  Field(const BlockPlan& plan, std::vector<XArray> sources, std::vector<XArray> destinations, Update update = {},
        std::optional<Order> visit = {}, std::string element = {}, Phases phases = Phases::automatic);
  Share& share() const { return *share_; }
  const std::shared_ptr<Share>& shared() const { return share_; }

 private:
  std::shared_ptr<Share> share_;
};

/// A plan bound to memory. Movable between threads, used by one at a time: who calls start(), test(), wait() or move()
/// while another thread is in one of them gets `Error(argument)`, and the other goes on. Any number of movers may be in
/// flight: those of one communicator push each other on, so that ranks may wait for them in
/// different orders. A rank that waits may need the others to test() or wait() too, whatever for:
/// nobody should block elsewhere while others wait (or take a `proxy`).
class Mover {
 public:
  virtual ~Mover() = default;
  /// Begins the move: the sources must not be written, the destinations not be touched, until wait() returns. Throws
  /// `Error(argument)` where a move is under way, `Error(buffer)` where an array is not what it was when it was bound.
  void start();
  /// Makes progress without blocking; true when the move is complete: then wait() returns at once, and start() may
  /// begin the next. Throws `Error(argument)` before start().
  bool test();
  /// Completes the move that start() began. Throws `Error(argument)` where none did. After another error the move is
  /// over, its destinations hold anything, and the mover may have to be bound anew.
  void wait();
  /// The next piece of a destination here that the move which start() began has completed, and that may be read. Each
  /// is handed over once a move, in whatever order they are complete; what is not asked for is there after wait().
  /// Makes progress like test(), and if `blocking` waits until there is one. None: blocking, all have been handed over
  /// and the move is complete, and wait() returns at once; otherwise there is none yet, or no other, which test()
  /// tells.
  ///
  /// Pieces come as soon as engines can tell: on `threads` a task at a time, with one thread a motion at a time; on
  /// `mpi` when all that goes the same way from a process is there, a task at a time where this process itself copies.
  /// What meets in a point, as in reductions, comes together. With `proxy` and `checked` and on `finegrain` everything
  /// comes at the end. Throws `Error(argument)` where no move was started, and what wait() throws. Not collective. The
  /// first call finds out what the pieces are, some hundred bytes each, and the mover keeps that.
  std::optional<Arrival> next_arrival(bool blocking = true);
  /// start() and wait() at once: where nothing is to be done meanwhile, engines go another and faster way.
  void move();
  /// From now on the arrays are not this mover's to hold or to look at: whoever moves knows that they are there, and
  /// are what they were when it was bound. Bytes that it goes on holding; none where it cannot do without them.
  virtual std::optional<Index> leave_memory() {
    memory_.clear();
    return workspace_bytes();
  }
  /// Bytes this mover holds beyond the two arrays: programs, buffers, rings, what it shares with others.
  virtual Index workspace_bytes() const = 0;
  /// Of these, the rings and buffers that data goes through: what `max_mem` bounds under MPI.
  virtual Index staging_bytes() const { return 0; }
  /// Bytes that one move writes into the destinations held here.
  virtual Index moved_bytes() const = 0;
  /// Which way the data takes, in words, one line a kind of path.
  virtual std::string describe() const = 0;
  /// What makes data take a slower way than there might be, in words: that memory cannot be shared, or that arrays lie
  /// in memory of one process alone, and what to do about it. Empty where nothing does.
  virtual std::string obstacle() const { return {}; }

 protected:
  /// `memory` is held as long as the mover, and looked at before each move.
  explicit Mover(std::vector<BoundMemory> memory = {}) : memory_(std::move(memory)) {}
  bool under_way() const { return state_ == State::moving; }
  /// Of a mover that this one carries out: this one holds the memory too, and looks at it in place of the other.
  static std::vector<BoundMemory> looked_at_for(Mover& other) {
    other.looks_ = false;
    return other.memory_;
  }
  static void give_up_for(Mover& other, const Error& error) { other.give_up(error); }
  /// Of plans that are kept for arrivals and that nobody else has: those of a halo's phases.
  Index kept_plans_bytes() const;
  /// Somebody may read or write the arrays after this mover is gone: they are never let go.
  void keep_memory_for_good() { new std::vector<BoundMemory>(std::move(memory_)); }

 private:
  enum class State { idle, moving, moved };
  // What engines do, each called in its turn only.
  virtual void begin() = 0;
  virtual bool advance() = 0;  ///< a bounded piece of work; true when the move is complete
  virtual void finish() = 0;
  virtual void begin_and_finish() { begin(), finish(); }
  /// An array is not what it was: this mover will do no more, and those who wait for it should hear that.
  virtual void give_up(const Error&) {}

  /// Somebody asks for arrivals. Engines that can tell what has arrived before all has say in how many units of work
  /// the pieces come, and return true: then they tell which units are done since this move began, or since last asked,
  /// and may take smaller steps.
  virtual bool expect(Arrivals&) { return false; }
  virtual void tell(Arrivals&) {}
  virtual bool advance_one_unit() { return advance(); }

  friend class Arrivals;
  class Turn;
  void make_ready();
  std::vector<BoundMemory> memory_;
  bool looks_ = true;  ///< at the memory, before each move
  State state_ = State::idle;
  std::shared_ptr<const std::vector<Incoming>> incoming_;  ///< null: nobody is told
  std::shared_ptr<Arrivals> arrivals_;                     ///< null: nobody has asked
  int process_ = 0;
  bool arrives_in_units_ = false, follows_ = false;  ///< this engine; this move
  std::atomic<const char*> call_ = nullptr;          ///< that a thread is in
};

/// In which order points of regions of different shape are paired: that which is given, else the memory order of both
/// arrays, and C where they have different ones.
Order visiting_order(std::optional<Order> given, const XArray& source, const XArray& destination);
/// Checks one local array against the layout: shape, strides, protection, and that it holds
/// memory where it must. Throws `Error(buffer)` or `Error(shape)` that names the rank, the
/// dimension and both values. `what` is "source" or "destination".
void check_local_array(const LocalArray& array, const Layout& layout, Index rank, Index element_bytes,
                       const char* what);
/// Of a rank that takes no part in the layout: it may bring an
/// array as long as nothing is in it. Throws `Error(shape)`.
void check_no_array(const LocalArray& array, const Layout& layout, Index rank, const char* what);
/// The `threads` engine: every rank's array is in this process; data goes straight from source to destination. Throws
/// `Error(shape)`, `Error(buffer)`, `Error(type)` and `Error(argument)` that name rank or block; also for motions
/// outside the arrays, for races, and for one rank's plan between blocks.
std::unique_ptr<Mover> bind_threads(const std::vector<Field>& fields, const MoveOptions& options = {});
/// `sources[p]` belongs to process p of the source layout, `destinations[p]` to process p of the destination layout.
std::unique_ptr<Mover> bind_threads(const MotionPlan& plan, std::vector<LocalArray> sources,
                                    std::vector<LocalArray> destinations, const MoveOptions& options = {});

/// Both arrays have storage for all blocks.
std::unique_ptr<Mover> bind_threads(const BlockPlan& plan, XArray source, XArray destination,
                                    const MoveOptions& options = {});

}  // namespace longshore

/// engines/finegrain: the `finegrain` engine. Many ranks in one process, each on a small stack of its own, taking turns
/// (Kamal and Wagner's fine-grain MPI has the idea): a plan over ten thousand ranks runs for real on a laptop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "longshore/movers/mover.hpp"

namespace longshore::finegrain {

/// Whether this build has the engine: it needs Boost.Context. Without it `run` throws `Error(argument)`.
bool available();

struct Options {
  /// Which of the ranks that can go on has its turn: 0 for one after the other, anything else for a pseudo-random
  /// order. Equal seeds give equal orders, on all machines.
  std::uint64_t seed = 0;
  /// A rank's stack; memory is taken for what is touched of it. What moves copy and combine takes nothing of it (sums
  /// of checked moves do). A rank that overflows its stack ends the process with SIGSEGV, and nobody says which rank it
  /// was: the 64 KiB below are guarded where the system has guards for so many ranks. Where it has none they belong to
  /// nobody, and an overflow is an error afterwards if it has touched their end.
  Index stack_bytes = 64 << 10;
  /// Ranks that ask again and again, `while (!mover->test())`, wait for nobody. With a number here it is a deadlock too
  /// when all that can go on have had so many turns and nobody has sent, started, waited or returned; 0: never. Choose
  /// it above the turns that a rank gives away while it computes.
  Index idle_turns = 0;
};

/// What a world has done.
struct Statistics {
  Index switches = 0;  ///< turns of ranks
  Index stacks = 0;    ///< in use at one time; a rank that has not begun or has returned needs none
  Index messages = 0;
};

class Communicator;
class World;

/// A rank as its program sees it. Only that program may use it, and only until it returns.
class Rank {
 public:
  Index rank() const { return rank_; }
  Index size() const;

  /// Never waits: what nobody receives yet is kept. Messages between
  /// two ranks with one tag arrive in their order; tags are 0 or more.
  void send(Index to, Index tag, std::span<const std::byte> message);
  /// Waits for a message. The sender is always named, so that what arrives depends on no order of turns. Throws
  /// `Error(shape)` that names both sizes where they differ.
  void receive(Index from, Index tag, std::span<std::byte> message);
  /// The same for a message of any size.
  std::vector<std::byte> receive(Index from, Index tag);

  // Collective: all ranks of the world call the same, and nobody goes on before all
  // have come. They throw `Error(disagreement)` where another rank has called another
  // one, or with other sizes; then nothing has been written.
  void barrier();
  /// As many bytes of every rank, by ascending ranks, into the root's `all`; elsewhere `all` is not looked at.
  void gather(Index root, std::span<const std::byte> mine, std::span<std::byte> all);
  /// The same into everybody's.
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all);
  /// The root's message into everybody's.
  void broadcast(Index root, std::span<std::byte> message);
  /// Combines everybody's numbers, by ascending ranks, so that sums of floating-point numbers depend on no order of
  /// turns either. Of functions of one's own, rank 0's is called.
  void all_reduce(std::span<std::byte> numbers, const Reduction& reduction);

  /// Lets others have their turn. A rank that has nothing else to wait for, such as one that asks `Mover::test()`,
  /// which does this too, is found in a deadlock by `Options::idle_turns` only.
  void yield();

 private:
  friend class World;
  friend class Communicator;
  friend std::unique_ptr<Mover> bind(const std::vector<Field>&, Rank&, const MoveOptions&);
  Rank(World& world, Index rank) : world_(world), rank_(rank) {}
  World& world_;
  Index rank_;
};

/// Runs the program once for each rank, all by the calling thread, and returns when all have returned.
///
/// The first exception that leaves a program ends the world: the other ranks are unwound from where they wait (by an
/// exception that derives from nothing; what catches it with `catch (...)` should pass it on), and `run` throws an
/// `Error` that names the rank, of the same kind if it was one, with the original nested in it. Where nobody can go on,
/// it throws `Error(deadlock)` that says who waits for whom: around a circle, or up to a rank that has returned.
/// Messages that nobody has received are `Error(disagreement)`.
///
/// While a rank is being unwound, whatever it calls here (but bind() and Communicator::create(), which have
/// nothing to return) returns at once, with nothing done, so that destructors may wait() for moves. But a
/// destructor that is waiting on an ordinary way out when the world ends ends the process, as all destructors
/// that throw do: wait for moves before their scope is left.
Statistics run(Index ranks, const std::function<void(Rank&)>& program, const Options& options = {});

/// Binds fields: every rank of the world calls it, with fields of its own (a `Field` is one rank's), of equal plans
/// (between blocks one rank's own share, or everybody's: one object that all ranks bind is looked at once) and equal
/// options but `max_mem`. Arrays of blocks have storage for the blocks that `placement` gives the rank, or for all. All
/// ranks get a mover, or all get the same error, `Error(disagreement)` saying who was given what.
///
/// Data goes straight from source to destination: start() says that this rank's arrays may be read; whoever is the last
/// of those that a rank reads from and of itself to start, copies for it; wait() lets others have their turn until this
/// rank has got what it reads, and those who read from it have. What a combining function throws, wait() or test() of
/// the rank that it combined for throws; it must not wait for anything itself. A mover that is destroyed in flight
/// holds up nobody else. Threads and `proxy` mean nothing here; the latter is refused.
std::unique_ptr<Mover> bind(const std::vector<Field>& fields, Rank& me, const MoveOptions& options = {});
/// One plan between blocks.
std::unique_ptr<Mover> bind(const BlockPlan& plan, Rank& me, XArray source, XArray destination,
                            const MoveOptions& options = {});
/// One plan between layouts, whose ranks are those of the world. A rank
/// that takes no part in a layout brings an empty array.
std::unique_ptr<Mover> bind(const MotionPlan& plan, Rank& me, LocalArray source, LocalArray destination,
                            const MoveOptions& options = {});

}  // namespace longshore::finegrain

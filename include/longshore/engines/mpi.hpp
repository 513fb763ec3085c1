/// engines/mpi: the `mpi` engine. Same-node data goes through shared memory, the rest in one message a peer.
///
/// This header names no MPI type, so that it can be included without mpi.h: hand over your `MPI_Comm` as it is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "longshore/movers/mover.hpp"
#include "longshore/mpi/communicator.hpp"
#include "longshore/mpi/shared_segment.hpp"

namespace longshore::mpi {

/// An array for `rank` of a layout, all zeros, where the engine moves fastest (ordinary memory where that is
/// forbidden). Not collective; `comm` is the communicator that it will be bound with.
Part allocate(const Layout& layout, Index rank, Index element_bytes, CommHandle comm);

using longshore::Placement;

/// How data moves between processes of one node. `automatic`: the fastest that is possible. The others are for tests
/// and benchmarks: `direct` copies straight between arrays where one of them is shared (messages otherwise), `ring`
/// stages through a small shared ring, `messages` treats the peer as if it were on another node.
enum class NodePath { automatic, direct, ring, messages };

/// What a move is expected to take in each way between processes of one node, in seconds; 0: nobody knows.
struct WaySeconds {
  double direct = 0, ring = 0, messages = 0;
};

/// How the messages between processes of different nodes travel.
enum class Exchange {
  automatic,       ///< all_to_all where every process has something for every other one, else point_to_point
  point_to_point,  ///< a message a peer
  neighborhood,    ///< one collective among those who have something for each other
  all_to_all       ///< one collective among all
};

/// How plans are bound to MPI. All but `max_mem`, of which the smallest counts, `expected` and `proxy` must be the same
/// on all ranks.
struct Options : MoveOptions {
  NodePath node = NodePath::automatic;
  /// For `automatic`, where all processes are of one node: what is expected to be clearly faster is taken in place of
  /// what goes by rule. Of each way the slowest rank counts.
  WaySeconds expected{};
  std::string element{};  ///< what an element is ("<f8"), compared between the ranks; may be empty
  /// one message a peer; false: one a motion, contiguous ones from where they lie to where they belong
  bool aggregate = true;
  /// messages are cut into packets of at most so many bytes, few of them in flight; 0: they are not
  Index packet_bytes = 0;
  bool preallocate = true;  ///< false: messages have buffers from start() to wait() only
  Exchange exchange = Exchange::automatic;
  bool report = false;  ///< whether the caller will ask all processes what the move took; they compare it
};

/// Binds fields to the arrays of all processes. Collective over `comm`: every process must call it, with equal plans
/// (or its own share of the same plan, see `BlockPlan::rank`), in the same order, and equal options, and gets either a
/// mover or the same error as all others. Ranks of plans are ranks of `comm`. With `proxy`, MPI must allow calls from
/// several threads (MPI_THREAD_MULTIPLE) if anything goes through MPI messages; within a node nothing does. Keeps a
/// private duplicate of the communicator as its attribute; free the communicator after the movers. `failure`: what has
/// gone wrong here before, which every process is told; null where nothing has.
std::unique_ptr<Mover> bind(const std::vector<Field>& fields, CommHandle comm, const Options& options = {},
                            const Error* failure = nullptr);
/// Collective with the bind() of others, in its place: this process has to ask them something first, such as the
/// element type of a plan that it has no array for. Nobody gets a mover, bind() is null for once, and all may ask and
/// bind again. Throws what bind() throws where another process has failed.
void postpone_bind(CommHandle comm);
/// Collective: whether all processes bring the same mover, which `bind` made with all of them, and which can move
/// arrays that lie where its own did (`Mover::leave_memory`): what it shows to others is still there. `mover`: null
/// where this process has none. Always false where processes are on several nodes, where asking would take as long as
/// binding.
bool all_bring(CommHandle comm, const Mover* mover);
/// One plan between layouts: the parts that this process holds.
std::unique_ptr<Mover> bind(const MotionPlan& plan, CommHandle comm, std::vector<Part> sources,
                            std::vector<Part> destinations, const Options& options = {});
/// One plan between blocks.
std::unique_ptr<Mover> bind(const BlockPlan& plan, CommHandle comm, XArray source, XArray destination,
                            const Options& options = {});

/// An array with storage for the blocks that this process owns, where the engine moves fastest
/// (ordinary memory where that is forbidden); all zeros. Blocks' owners are ranks of `comm`. Not
/// collective. Throws `Error(argument)` where an owner is beyond it.
XArray make_xarray(FloorPlan blocks, CommHandle comm, GridFormat format);

}  // namespace longshore::mpi

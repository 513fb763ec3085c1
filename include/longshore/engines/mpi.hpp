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

/// One rank's array of one layout, held by this process. `memory`: where the array lies, if in `array_memory`.
struct Part {
  Index rank = 0;  ///< of the layout
  LocalArray array;
  std::shared_ptr<const Memory> memory;
};

/// An array for `rank` of a layout, all zeros, where the engine moves fastest (ordinary memory where that is
/// forbidden). Not collective; `comm` is the communicator that it will be bound with.
Part allocate(const Layout& layout, Index rank, Index element_bytes, CommHandle comm);

/// Which process of the communicator holds a layout rank: the one of the same number, or rank modulo the size.
enum class Placement { direct, wrap };

/// How data moves between processes of one node. `automatic`: the fastest that is possible. The others are for tests
/// and benchmarks: `direct` copies straight between arrays where one of them is shared (messages otherwise), `ring`
/// stages through a small shared ring, `messages` treats the peer as if it were on another node.
enum class NodePath { automatic, direct, ring, messages };

struct Options {
  Combine combine;
  Index max_mem = 0;  ///< bytes of staging a process may hold; 0: no bound. The smallest given on any rank counts.
  Placement placement = Placement::direct;
  NodePath node = NodePath::automatic;
  std::string element;  ///< what an element is ("<f8"), compared between the ranks; may be empty
};

/// Binds a plan to the parts that this process holds. Collective over `comm`: every process must call it, with equal
/// plans and options, and gets either a mover or the same error as all others. The layouts' world ranks are ranks of
/// `comm`. Keeps a private duplicate of the communicator as its attribute; free the communicator after the movers.
std::unique_ptr<Mover> bind(const MotionPlan& plan, CommHandle comm, std::vector<Part> sources,
                            std::vector<Part> destinations, const Options& options = {});

/// An array with storage for the blocks that this process owns, where the engine moves fastest
/// (ordinary memory where that is forbidden); all zeros. Blocks' owners are ranks of `comm`. Not
/// collective. Throws `Error(argument)` where an owner is beyond it.
XArray make_xarray(FloorPlan blocks, CommHandle comm, GridFormat format);

/// How the messages between processes of different nodes travel.
enum class Exchange {
  automatic,       ///< all_to_all where every process has something for every other one, else point_to_point
  point_to_point,  ///< a message a peer
  neighborhood,    ///< one collective among those who have something for each other
  all_to_all       ///< one collective among all
};

/// How a plan between blocks is bound to MPI. All but `max_mem`,
/// of which the smallest counts, must be the same on all ranks.
struct ExchangeOptions : BlockOptions {
  NodePath node = NodePath::automatic;
  std::string element;  ///< what an element is ("<f8"), compared between the ranks; may be empty
  /// one message a peer; false: one a motion, contiguous ones from where they lie to where they belong
  bool aggregate = true;
  /// messages are cut into packets of at most so many bytes, few of them in flight; 0: they are not
  Index packet_bytes = 0;
  bool preallocate = true;  ///< false: messages have buffers from start() to wait() only
  Exchange exchange = Exchange::automatic;
};

/// Binds a plan between blocks. Collective over `comm`: every process must call it, with equal plans (or its own share
/// of the same plan, see `BlockPlan::rank`) and options, and gets either a mover or the same error as all others. Where
/// source and destination are the same array, it is an endogenous copy. With `proxy`, MPI must allow calls from several
/// threads (MPI_THREAD_MULTIPLE) if anything goes through MPI messages; within a node nothing does.
std::unique_ptr<Mover> bind(const BlockPlan& plan, CommHandle comm, XArray source, XArray destination,
                            const ExchangeOptions& options = {});

}  // namespace longshore::mpi

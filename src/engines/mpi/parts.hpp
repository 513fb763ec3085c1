/// engines/mpi: which process holds which part of the two layouts, and the motions that follow for this process.
#pragma once

#include <map>
#include <vector>

#include "longshore/engines/mpi.hpp"

namespace longshore::mpi {

/// Which process of a communicator holds a layout rank.
struct Holders {
  Placement placement = Placement::direct;
  int size = 1;
  int of(Index layout_rank) const { return int(placement == Placement::wrap ? layout_rank % size : layout_rank); }
};

/// A motion that leaves or enters this process.
struct HeldMotion {
  Motion motion;
  int peer = 0;               ///< the process at the other end
  std::byte* data = nullptr;  ///< the part at this end
};

/// The parts of one process, checked against plan and communicator.
class HeldParts {
 public:
  /// Throws what is wrong with them. Not collective.
  HeldParts(const MotionPlan& plan, Holders holders, int me, std::vector<Part> sources, std::vector<Part> destinations);

  const std::vector<Part>& sources() const { return sources_; }
  const std::vector<Part>& destinations() const { return destinations_; }
  const Holders& holders() const { return holders_; }
  int me() const { return me_; }

  /// What leaves for (comes from) other processes, ordered by (peer, source rank, destination rank): both ends of a
  /// pair of processes see the same order.
  const std::vector<HeldMotion>& outgoing() const { return outgoing_; }
  const std::vector<HeldMotion>& incoming() const { return incoming_; }
  /// Bytes that one move writes into the destinations held here.
  Index moved_bytes() const { return moved_bytes_; }

 private:
  Holders holders_;
  int me_;
  std::vector<Part> sources_, destinations_;
  std::vector<HeldMotion> outgoing_, incoming_;
  Index moved_bytes_ = 0;
};

}  // namespace longshore::mpi

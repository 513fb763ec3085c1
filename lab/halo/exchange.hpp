/// The contenders of the halo bench: each fills the ghost cells of
/// one rank's boxes, again and again. Making one is collective.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <longshore/engines/mpi.hpp>
#include "phases.hpp"

namespace longshore::bench {

class HaloExchange {
 public:
  virtual ~HaloExchange() = default;
  virtual void run() = 0;
  virtual std::string describe() const { return {}; }
};

/// Packing loops, persistent sends and receives between buffers that are made once; what is contiguous is sent from
/// where it lies, and what stays on the rank is copied straight. The communicator outlives the exchange.
std::unique_ptr<HaloExchange> hand_packed(const Boxes& boxes, mpi::CommHandle comm, const HaloWay& way);
/// MPI_Neighbor_alltoallw on a communicator of the neighbours, with subarrays (structures of
/// them where there are several). What stays on the rank is copied straight here, too: as
/// messages to itself it takes twice to four times as long.
std::unique_ptr<HaloExchange> neighbor_alltoallw(const Boxes& boxes, mpi::CommHandle comm, const HaloWay& way,
                                                 bool persistent);
/// Whether this MPI has a persistent form of that.
bool has_persistent_collectives();
/// As many bytes as there are in the ghost cells, from the array to a buffer by memcpy.
std::unique_ptr<HaloExchange> plain_copy(const Boxes& boxes);
/// Longshore's mover between the boxes, which lie where their array was made. `phases`: one dimension after the other,
/// or not; none: where Longshore chooses so.
std::unique_ptr<HaloExchange> longshore_mover(const Boxes& boxes, mpi::CommHandle comm, bool proxy,
                                              std::optional<bool> phases = {});

/// The boxes of this process in memory that Longshore moves fastest.
Boxes shared_boxes(const HaloProblem& problem, mpi::CommHandle comm);

}  // namespace longshore::bench

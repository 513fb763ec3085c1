/// engines/mpi: motions between blocks as a message.
#pragma once

#include <optional>

#include "movers/block_copies.hpp"
#include "mpi/peer_message.hpp"

namespace longshore::mpi {

/// The motions one after the other, in packets of at most `capacity` bytes; none:
/// in one. `stretches` are assemblies for a sender, disassemblies for a receiver.
std::unique_ptr<PeerMessage> block_message(std::vector<Stretch> stretches, bool sending, std::optional<Index> capacity);

}  // namespace longshore::mpi

/// engines/mpi: a motion between layouts as a message.
#pragma once

#include "longshore/copies/packets.hpp"
#include "mpi/peer_message.hpp"

namespace longshore::mpi {

/// The relation's message in packets of at most `capacity` bytes, and the array at this end.
std::unique_ptr<PeerMessage> nest_message(const LoopNest& relation, Index capacity, PacketedMessage::Halves halves,
                                          const CopyProgram::Options& options, std::byte* data);
/// The same for a ring's slots. Where source and destination run across each other (transposes), packets are tiles, so
/// that neither side sweeps its array with a large stride.
std::unique_ptr<PeerMessage> tiled_nest_message(const LoopNest& relation, Index slot_bytes,
                                                PacketedMessage::Halves halves, const CopyProgram::Options& options,
                                                std::byte* data);

}  // namespace longshore::mpi

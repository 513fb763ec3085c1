/// movers: a nest of loops as a message.
#pragma once

#include "copies/message.hpp"
#include "longshore/copies/packets.hpp"
#include "movers/share.hpp"

namespace longshore {

/// Whether the innermost axis is contiguous in the destination, and another one in the source.
bool is_turned(const LoopNest& relation);

/// The relation's message, and the array at this end.
std::unique_ptr<Message> nest_message(const LoopNest& relation, const MessageCut& cut, PacketedMessage::Halves halves,
                                      const CopyProgram::Options& options, std::byte* data);

}  // namespace longshore

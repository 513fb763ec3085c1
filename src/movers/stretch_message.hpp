/// movers: stretches of programs as a message.
#pragma once

#include <optional>

#include "copies/message.hpp"
#include "movers/block_copies.hpp"

namespace longshore {

/// The stretches one after the other, in packets of at most `capacity` bytes; none: in one. They are assemblies for a
/// sender, disassemblies for a receiver.
std::unique_ptr<Message> stretch_message(std::vector<Stretch> stretches, bool sending, std::optional<Index> capacity);

}  // namespace longshore

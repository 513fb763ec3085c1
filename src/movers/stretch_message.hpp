/// movers: stretches of programs as a message.
#pragma once

#include <optional>

#include "copies/message.hpp"
#include "movers/block_copies.hpp"

namespace longshore {

/// The stretches of a message, one after the other. Messages of several arrays may have them in common.
struct MessageStretches {
  explicit MessageStretches(std::vector<Stretch> stretches);
  std::vector<Stretch> stretches;
  std::vector<Index> starts;  ///< the first position of each in the message
  Index elements = 0;
};

/// The stretches one after the other, in packets of at most `capacity` bytes; none: in one. They are assemblies for a
/// sender, disassemblies for a receiver.
std::unique_ptr<Message> stretch_message(std::vector<Stretch> stretches, bool sending, std::optional<Index> capacity);

/// The same for arrays that lie so many bytes from those of the stretches.
std::unique_ptr<Message> stretch_message(std::shared_ptr<const MessageStretches> stretches, bool sending,
                                         std::optional<Index> capacity, Index shift);

}  // namespace longshore

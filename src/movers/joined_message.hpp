/// movers: several messages as one.
#pragma once

#include <memory>
#include <vector>

#include "copies/message.hpp"

namespace longshore {

/// Messages of one packet each that follow each other become one packet, as long as they have no more than `most_bytes`
/// together. The others stay as they are. Both ends join alike.
std::vector<std::unique_ptr<Message>> joined(std::vector<std::unique_ptr<Message>> messages, Index most_bytes);

}  // namespace longshore

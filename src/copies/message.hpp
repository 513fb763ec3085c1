/// copies: `Message`, what one process sends to another in one move, cut into packets. Rings and MPI carry packets and
/// know nothing of what is in them.
#pragma once

#include <memory>
#include <vector>

#include "longshore/copies/kernels.hpp"
#include "longshore/core/checked.hpp"

namespace longshore {

/// One end of a message: the sender's packs, the receiver's unpacks. Both ends cut alike.
class Message {
 public:
  virtual ~Message() = default;
  virtual Index packets() const = 0;  ///< 0 where there is nothing to send
  virtual Index packet_bytes(Index packet) const = 0;
  virtual Index largest_packet_bytes() const = 0;
  virtual void pack(Index packet, std::byte* slot, Stores stores) const = 0;
  virtual bool streams() const { return false; }  ///< packs with streaming stores, too; else any are cached
  virtual void unpack(Index packet, const std::byte* slot) const = 0;
  /// Where the packet is contiguous in the array at this end, so that it can go from there (come to there); else null.
  virtual std::byte* contiguous(Index packet) const = 0;
  /// Memory held, programs that several messages share not counted.
  virtual Index workspace_bytes() const = 0;
};

}  // namespace longshore

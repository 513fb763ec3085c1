/// A message cut so that it fits a buffer.
#pragma once

#include <memory>
#include <optional>

#include "longshore/copies/copy_program.hpp"

namespace longshore {

/// A relation's message cut into packets of at most `capacity` bytes. Sender and receiver, given the same relation and
/// capacity, cut alike. Each packet can be packed and unpacked by itself; memory is proportional to one axis.
class PacketedMessage {
 public:
  enum class Halves { assembly = 1, disassembly = 2, both = 3 };
  /// `capacity` of at least one element, else `Error(memory_limit)`.
  /// A capacity of at least `relation.bytes()` gives one packet. `streams`: several packets can be packed with
  /// streaming stores, too.
  PacketedMessage(const LoopNest& relation, Index capacity, Halves halves, const CopyProgram::Options& options = {},
                  bool streams = false);
  ~PacketedMessage();
  PacketedMessage(PacketedMessage&&) noexcept;
  PacketedMessage& operator=(PacketedMessage&&) noexcept;

  Index packets() const;                   ///< 0 for an empty relation
  Index packet_bytes(Index packet) const;  ///< > 0, <= capacity
  Index largest_packet_bytes() const;
  /// Source array -> dense packet. Cached stores where somebody on a core near this one reads the packet soon.
  void pack(Index packet, std::byte* message, const std::byte* source, Stores stores = Stores::cached) const;
  bool streams() const;
  /// Dense packet -> destination array, with the options' stores and combine.
  void unpack(Index packet, std::byte* destination, const std::byte* message) const;
  /// Byte offset of the packet in the source (destination) array if it lies there contiguously, so that it can be sent
  /// from (received to) where it lies. Receiving so is possible only when `combine.is_copy()`.
  std::optional<Index> contiguous_source(Index packet) const;
  std::optional<Index> contiguous_destination(Index packet) const;
  Index workspace_bytes() const;

 private:
  struct Implementation;
  std::unique_ptr<const Implementation> implementation_;
};

}  // namespace longshore

/// The three message models (Dinda & O'Hallaron, section 2):
/// who computes the addresses, and what travels with the data.
#pragma once

#include <optional>
#include <utility>

#include "longshore/encodings/encoding.hpp"

namespace longshore {

/// Send/receive: each node computes and keeps its own half, and only data travels. Without a kind, the encoding is
/// chosen as `Encoding::automatic` does, here and below.
Encoding sender_half(const AddressRelation& relation, std::optional<EncodingKind> kind = std::nullopt);
Encoding receiver_half(const AddressRelation& relation, std::optional<EncodingKind> kind = std::nullopt);

/// Put, at the source, which has the whole relation: the destination addresses, encoded once, go
/// along with the data of every message. The receiver needs to know nothing but its array; the
/// combining operation travels too. Immutable; threads may share it.
class PutSender {
 public:
  explicit PutSender(const AddressRelation& relation, std::optional<EncodingKind> kind = std::nullopt);

  Index message_bytes() const { return address_bytes() + payload_bytes_; }
  /// Bytes of a message that are not data.
  Index address_bytes() const { return Index(head_.size()); }
  /// All `message_bytes()` of a message.
  void run(std::byte* message, const std::byte* source) const;
  const Assembler& assembler() const& { return assembler_; }
  Assembler assembler() && { return std::move(assembler_); }

 private:
  Assembler assembler_;
  Index payload_bytes_;
  std::vector<std::byte> head_;  ///< what every message begins with
};

/// Put, at the destination: a message as it has arrived, from whomever. It must outlive this view of it.
class PutMessage {
 public:
  /// Throws `Error(argument)` where the bytes are no put message or do not hold together; reads no further than they
  /// go, and takes time and memory in proportion to them.
  explicit PutMessage(std::span<const std::byte> message);

  const Encoding& addresses() const& { return addresses_; }
  Encoding addresses() && { return std::move(addresses_); }
  std::span<const std::byte> payload() const { return payload_; }
  /// The bytes of the destination that are written, relative to its pointer.
  Interval destination_extent() const { return addresses_.destination_extent(); }
  /// Writes, or combines, the data where it belongs. Throws `Error(buffer)`, with
  /// nothing written, where that leaves the bytes `bounds` of the destination.
  void deliver(std::byte* destination, Interval bounds) const;

 private:
  std::span<const std::byte> payload_;
  Encoding addresses_;
};

/// Get, at the destination, which has the whole relation: the source addresses, for the source, which answers with the
/// data. The destination unpacks the answer with its own half.
std::vector<std::byte> get_request(const AddressRelation& relation, std::optional<EncodingKind> kind = std::nullopt);

/// Get, at the source: a request from whomever, to be answered as often as the data is wanted.
class GetRequest {
 public:
  /// Throws `Error(argument)` where the bytes are no request or ask for more than `most_bytes` of data (a source may be
  /// asked for many times over, so that few bytes can ask for any amount).
  GetRequest(std::span<const std::byte> request, Index most_bytes);

  const Encoding& addresses() const& { return addresses_; }
  Encoding addresses() && { return std::move(addresses_); }
  Index payload_bytes() const { return addresses_.elements() * addresses_.element_bytes(); }
  /// The bytes of the source that are read, relative to its pointer.
  Interval source_extent() const { return addresses_.source_extent(); }
  /// `payload_bytes()` of data. Throws `Error(buffer)`, with nothing
  /// read, where that leaves the bytes `bounds` of the source.
  void answer(std::byte* payload, const std::byte* source, Interval bounds) const;

 private:
  Encoding addresses_;
};

}  // namespace longshore

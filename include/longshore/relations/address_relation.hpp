/// relations: offsets to offsets. `AddressRelation` in its loop-nest form: an ordered set of (source offset, destination
/// offset) pairs kept as a product of one-dimensional relations, never enumerated (Dinda & O'Hallaron, sections 2 and 3).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longshore/relations/combine.hpp"
#include "longshore/relations/kernels.hpp"
#include "longshore/relations/paired_runs.hpp"

namespace longshore {

/// One factor of the product: index pairs, and how many bytes one index is on each side.
struct RelationAxis {
  PairedRuns runs;
  Index source_stride = 0, destination_stride = 0;
  bool operator==(const RelationAxis&) const = default;
};

/// How one side of a relation visits its memory, innermost first: `block_bytes` contiguous bytes, then loops of
/// (count, stride in bytes). `regular` is false where some loop has no single stride (block-cyclic meets block-cyclic):
/// the loops then describe the commonest run.
struct AccessPattern {
  Index block_bytes = 0;
  struct Loop {
    Index count, stride;
  };
  std::vector<Loop> loops;
  bool regular = true;
};

/// An address relation as a product of axes, outermost first. The order of the pairs, which is the order of the elements in a
/// message, is the lexicographic order of the axes' positions.
class AddressRelation {
 public:
  /// Bytes of one element (> 0) and the axes in message order. Offsets are relative to the two arrays' first bytes.
  AddressRelation(Index element_bytes, std::vector<RelationAxis> axes, Index source_base = 0, Index destination_base = 0);

  Index element_bytes() const { return element_bytes_; }
  Index elements() const { return elements_; }
  Index bytes() const { return elements_ * element_bytes_; }
  bool empty() const { return elements_ == 0; }
  const std::vector<RelationAxis>& axes() const { return axes_; }
  Index source_base() const { return source_base_; }
  Index destination_base() const { return destination_base_; }

  struct Pair {
    Index source, destination;  ///< byte offsets
    bool operator==(const Pair&) const = default;
  };
  /// The pair at a position of the message. Throws `Error(argument)` outside [0, elements()).
  Pair at(Index position) const;

  /// The same pairs in the same order with redundant structure removed: unit axes dropped, contiguous axes merged.
  AddressRelation canonical() const;
  /// Source -> message: what the sender needs. The message is dense, in message order.
  AddressRelation assembly() const;
  /// Message -> destination: what the receiver needs.
  AddressRelation disassembly() const;
  AddressRelation inverse() const;
  /// The pairs whose position on axis `axis` lies in [first, last).
  AddressRelation restrict(std::size_t axis, Index first, Index last) const;

  /// The byte offset of the message in the source (destination) if it lies there contiguously and in message order.
  std::optional<Index> contiguous_source() const;
  std::optional<Index> contiguous_destination() const;

  AccessPattern source_pattern() const;
  AccessPattern destination_pattern() const;

  /// The plain twin of `CopyProgram`: element by element, in message order.
  void move_plain(std::byte* destination, const std::byte* source) const;

  bool operator==(const AddressRelation&) const = default;

 private:
  Index element_bytes_;
  std::vector<RelationAxis> axes_;
  Index source_base_, destination_base_;
  Index elements_;
};

/// A relation compiled for execution: axes ordered for the memory system, contiguous runs absorbed into blocks, the leaf
/// kernel chosen. Memory is proportional to the runs of one period of each axis. Immutable; threads may share it.
class CopyProgram {
 public:
  struct Options {
    Stores stores = Stores::cached;
    const KernelTable* table = nullptr;  ///< null: `kernels()`
    Combine combine;                     ///< default: copy
  };
  CopyProgram(const AddressRelation& relation, const Options& options);
  explicit CopyProgram(const AddressRelation& relation) : CopyProgram(relation, Options{}) {}
  ~CopyProgram();
  CopyProgram(CopyProgram&&) noexcept;
  CopyProgram& operator=(CopyProgram&&) noexcept;

  /// Moves every pair. Offsets are relative to the two pointers. The arrays must not overlap.
  void run(std::byte* destination, const std::byte* source) const;
  Index bytes() const;
  /// What runs, in words, for `explain` and for tests: "4 x transpose 512 x 512 of 8 bytes".
  std::string describe() const;
  Index workspace_bytes() const;  ///< memory this object holds

 private:
  struct Implementation;
  std::unique_ptr<const Implementation> implementation_;
};

/// A relation's message cut into packets of at most `capacity` bytes. Sender and receiver, given the same relation and
/// capacity, cut alike. Each packet can be packed and unpacked by itself; memory is proportional to one axis.
class PacketedMessage {
 public:
  enum class Halves { assembly = 1, disassembly = 2, both = 3 };
  /// `capacity` of at least one element, else `Error(memory_limit)`. A capacity of at least `relation.bytes()` gives one packet.
  PacketedMessage(const AddressRelation& relation, Index capacity, Halves halves, const CopyProgram::Options& options = {});
  ~PacketedMessage();
  PacketedMessage(PacketedMessage&&) noexcept;
  PacketedMessage& operator=(PacketedMessage&&) noexcept;

  Index packets() const;                    ///< 0 for an empty relation
  Index packet_bytes(Index packet) const;   ///< > 0, <= capacity
  Index largest_packet_bytes() const;
  /// Source array -> dense packet. Uses cached stores: somebody reads the packet soon.
  void pack(Index packet, std::byte* message, const std::byte* source) const;
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

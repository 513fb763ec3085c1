/// A relation's message cut into packets.
#include "longshore/copies/packets.hpp"

namespace longshore {

struct PacketedMessage::Implementation {
  /// One stretch of the cut axis with everything inside it. Outer positions add their offsets.
  struct Slice {
    Index bytes = 0;
    std::optional<CopyProgram> pack, unpack;
    std::optional<Index> contiguous_source, contiguous_destination;
  };

  std::vector<RelationAxis> outer;  ///< the axes outside the cut one
  std::vector<Slice> slices;
  Index packets = 0, largest = 0;

  struct Offsets {
    Index source = 0, destination = 0;
  };
  Offsets outer_offsets(Index position) const {
    Offsets offsets;
    for (std::size_t k = outer.size(); k-- > 0;) {
      const auto pair = outer[k].runs.at(position % outer[k].runs.elements());
      position /= outer[k].runs.elements();
      offsets.source += pair.source * outer[k].source_stride;
      offsets.destination += pair.destination * outer[k].destination_stride;
    }
    return offsets;
  }
  struct Place {
    const Slice& slice;
    Offsets offsets;
  };
  Place place(Index packet) const {
    if (packet < 0 || packet >= packets)
      throw Error(ErrorKind::argument,
                  "packet " + std::to_string(packet) + " is outside [0, " + std::to_string(packets) + ")");
    const Index n = Index(slices.size());
    return {slices[packet % n], outer_offsets(packet / n)};
  }
};

PacketedMessage::PacketedMessage(const LoopNest& given, Index capacity, Halves halves,
                                 const CopyProgram::Options& options) {
  auto self = std::make_unique<Implementation>();
  const auto relation = given.canonical();
  const Index element = relation.element_bytes();
  if (capacity < element)
    throw Error(ErrorKind::memory_limit, "packets of " + std::to_string(capacity) +
                                             " bytes cannot hold an element of " + std::to_string(element));
  const bool wants_pack = int(halves) & int(Halves::assembly), wants_unpack = int(halves) & int(Halves::disassembly);
  auto packing = options;  // the packet is read at once by whoever sends it
  packing.stores = Stores::cached;
  packing.combine = Combine();
  auto add = [&](const LoopNest& part) {
    Implementation::Slice slice;
    slice.bytes = part.bytes();
    self->largest = std::max(self->largest, slice.bytes);
    if (wants_pack) {
      slice.pack.emplace(part.assembly(), packing);
      slice.contiguous_source = part.contiguous_source();
    }
    if (wants_unpack) {
      slice.unpack.emplace(part.disassembly(), options);
      slice.contiguous_destination = part.contiguous_destination();
    }
    self->slices.push_back(std::move(slice));
  };

  if (!relation.empty() && relation.bytes() <= capacity) {
    add(relation);
    self->packets = 1;
  } else if (!relation.empty()) {
    // Cut the outermost axis of which one position fits; the axes outside it are walked position by position.
    std::size_t cut = 0;
    Index outer = 1, inner = relation.bytes();
    for (;; ++cut) {
      inner /= relation.axes()[cut].runs.elements();
      if (inner <= capacity) break;
      outer *= relation.axes()[cut].runs.elements();
    }
    const Index n = relation.axes()[cut].runs.elements();
    const Index pieces = ceil_div(n, capacity / inner), each = ceil_div(n, pieces);
    self->outer.assign(relation.axes().begin(), relation.axes().begin() + Index(cut));
    const LoopNest rest(element, {relation.axes().begin() + Index(cut), relation.axes().end()}, relation.source_base(),
                        relation.destination_base());
    for (Index first = 0; first < n; first += each) add(rest.restrict(0, first, std::min(first + each, n)));
    self->packets = outer * Index(self->slices.size());
  }
  implementation_ = std::move(self);
}

PacketedMessage::~PacketedMessage() = default;
PacketedMessage::PacketedMessage(PacketedMessage&&) noexcept = default;
PacketedMessage& PacketedMessage::operator=(PacketedMessage&&) noexcept = default;

Index PacketedMessage::packets() const { return implementation_->packets; }
Index PacketedMessage::packet_bytes(Index packet) const { return implementation_->place(packet).slice.bytes; }
Index PacketedMessage::largest_packet_bytes() const { return implementation_->largest; }

void PacketedMessage::pack(Index packet, std::byte* message, const std::byte* source) const {
  const auto [slice, offsets] = implementation_->place(packet);
  slice.pack.value().run(message, source + offsets.source);
}

void PacketedMessage::unpack(Index packet, std::byte* destination, const std::byte* message) const {
  const auto [slice, offsets] = implementation_->place(packet);
  slice.unpack.value().run(destination + offsets.destination, message);
}

std::optional<Index> PacketedMessage::contiguous_source(Index packet) const {
  const auto [slice, offsets] = implementation_->place(packet);
  if (!slice.contiguous_source) return std::nullopt;
  return *slice.contiguous_source + offsets.source;
}

std::optional<Index> PacketedMessage::contiguous_destination(Index packet) const {
  const auto [slice, offsets] = implementation_->place(packet);
  if (!slice.contiguous_destination) return std::nullopt;
  return *slice.contiguous_destination + offsets.destination;
}

Index PacketedMessage::workspace_bytes() const {
  Index bytes = sizeof(Implementation);
  for (const auto& slice : implementation_->slices) {
    bytes += sizeof(slice);
    if (slice.pack) bytes += slice.pack->workspace_bytes();
    if (slice.unpack) bytes += slice.unpack->workspace_bytes();
  }
  return bytes;
}

}  // namespace longshore

/// A relation's message cut into packets.
#include "longshore/copies/packets.hpp"

#include <algorithm>

namespace longshore {

namespace {

/// Of an array of which so much is sent, a packet is not in a second-level cache any more, or not yet.
constexpr Index far_source_bytes = Index{1} << 20;

/// Stretches of an axis that begin at multiples of so many positions look alike; 0: none do.
Index alike_every(const PairedRuns& runs) {
  if (runs.periods().size() != 1) return 0;
  const auto& period = runs.periods()[0];
  if (period.repeats > 1 || period.runs.size() != 1) return period.elements_per_period();
  return period.runs[0].count == 1 ? 1 : period.runs[0].length;
}

}  // namespace

struct PacketedMessage::Implementation {
  /// One stretch of the cut axis with everything inside it. Outer positions add their offsets.
  struct Slice {
    Index bytes = 0;
    std::optional<CopyProgram> pack, stream, unpack;
    std::optional<Index> contiguous_source, contiguous_destination;
  };

  std::vector<RelationAxis> outer;    ///< the axes outside the cut one
  std::optional<RelationAxis> along;  ///< the cut one, where the first slice is `alike` slices, so many positions each
  std::vector<Slice> slices;
  Index alike = 1, each = 0;
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
    const Index n = alike - 1 + Index(slices.size()), k = packet % n;
    Place found{slices[std::size_t(k < alike ? 0 : k - alike + 1)], outer_offsets(packet / n)};
    if (k > 0 && k < alike) {
      const auto first = along->runs.at(0), here = along->runs.at(k * each);
      found.offsets.source += (here.source - first.source) * along->source_stride;
      found.offsets.destination += (here.destination - first.destination) * along->destination_stride;
    }
    return found;
  }
};

__attribute__((cold)) PacketedMessage::PacketedMessage(const LoopNest& given, Index capacity, Halves halves,
                                                       const CopyProgram::Options& options, bool streams) {
  auto self = std::make_unique<Implementation>();
  const auto relation = given.canonical();
  const Index element = relation.element_bytes();
  if (capacity < element)
    throw Error(ErrorKind::memory_limit, "packets of " + std::to_string(capacity) +
                                             " bytes cannot hold an element of " + std::to_string(element));
  const bool wants_pack = int(halves) & int(Halves::assembly), wants_unpack = int(halves) & int(Halves::disassembly);
  auto packing = options;  // the packet is read at once by whoever sends it
  packing.stores = relation.bytes() >= far_source_bytes ? Stores::packing : Stores::cached;
  packing.combine = Combine();
  auto streaming = packing;
  streaming.stores = Stores::streaming;
  streams &= relation.bytes() > capacity;
  auto add = [&](const LoopNest& part) {
    Implementation::Slice slice;
    slice.bytes = part.bytes();
    self->largest = std::max(self->largest, slice.bytes);
    if (wants_pack) {
      slice.pack.emplace(part.assembly(), packing);
      if (streams) slice.stream.emplace(part.assembly(), streaming);
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
    const auto& runs = relation.axes()[cut].runs;
    const Index n = runs.elements(), fits = capacity / inner, unit = alike_every(runs);
    Index each = ceil_div(n, ceil_div(n, fits));
    // What is compiled for one slice does for all that look like it.
    const bool shares = unit > 0 && unit <= fits;
    if (shares) each = std::min(ceil_div(each, unit), fits / unit) * unit;
    self->outer.assign(relation.axes().begin(), relation.axes().begin() + Index(cut));
    const LoopNest rest(element, {relation.axes().begin() + Index(cut), relation.axes().end()}, relation.source_base(),
                        relation.destination_base());
    Index first = 0;
    if (shares && n >= 2 * each) {
      self->along = rest.axes()[0], self->each = each, self->alike = n / each;
      add(rest.restrict(0, 0, each));
      first = self->alike * each;
    }
    for (; first < n; first += each) add(rest.restrict(0, first, std::min(first + each, n)));
    self->packets = outer * (self->alike - 1 + Index(self->slices.size()));
  }
  implementation_ = std::move(self);
}

PacketedMessage::~PacketedMessage() = default;
__attribute__((cold)) PacketedMessage::PacketedMessage(PacketedMessage&&) noexcept = default;
PacketedMessage& PacketedMessage::operator=(PacketedMessage&&) noexcept = default;

Index PacketedMessage::packets() const { return implementation_->packets; }
Index PacketedMessage::packet_bytes(Index packet) const { return implementation_->place(packet).slice.bytes; }
Index PacketedMessage::largest_packet_bytes() const { return implementation_->largest; }

void PacketedMessage::pack(Index packet, std::byte* message, const std::byte* source, Stores stores) const {
  const auto [slice, offsets] = implementation_->place(packet);
  const auto& program = stores == Stores::streaming && slice.stream ? slice.stream : slice.pack;
  program.value().run(message, source + offsets.source);
}

bool PacketedMessage::streams() const { return !implementation_->slices.empty() && implementation_->slices[0].stream; }

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
    for (const auto* program : {&slice.pack, &slice.stream})
      if (*program) bytes += (*program)->workspace_bytes();
    if (slice.unpack) bytes += slice.unpack->workspace_bytes();
  }
  return bytes;
}

}  // namespace longshore

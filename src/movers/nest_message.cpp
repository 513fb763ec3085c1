#include "movers/nest_message.hpp"

#include <algorithm>
#include <cstdlib>

#include "copies/joint_row.hpp"

namespace longshore {

namespace {

class NestMessage final : public Message {
 public:
  NestMessage(const std::vector<LoopNest>& strips, const MessageCut& cut, Index capacity,
              PacketedMessage::Halves halves, const CopyProgram::Options& options, std::byte* data)
      : sending_(halves == PacketedMessage::Halves::assembly), copies_(options.combine.is_copy()), data_(data) {
    for (const auto& strip : strips) {
      parts_.emplace_back(strip, capacity, halves, options, cut.ring);
      packets_ += parts_.back().packets();
      starts_.push_back(packets_);
    }
  }
  Index packets() const override { return packets_; }
  Index packet_bytes(Index packet) const override {
    const auto& part = part_of(packet);
    return part.packet_bytes(packet);
  }
  Index largest_packet_bytes() const override {
    Index largest = 0;
    for (const auto& part : parts_) largest = std::max(largest, part.largest_packet_bytes());
    return largest;
  }
  void pack(Index packet, std::byte* slot, Stores stores) const override {
    const auto& part = part_of(packet);
    part.pack(packet, slot, data_, stores);
  }
  void unpack(Index packet, const std::byte* slot) const override {
    const auto& part = part_of(packet);
    part.unpack(packet, data_, slot);
  }
  bool streams() const override {
    return std::any_of(parts_.begin(), parts_.end(), [](const auto& part) { return part.streams(); });
  }
  std::byte* contiguous(Index packet) const override {
    const auto& part = part_of(packet);
    const auto place = sending_  ? part.contiguous_source(packet)
                       : copies_ ? part.contiguous_destination(packet)
                                 : std::nullopt;
    return place ? data_ + *place : nullptr;
  }
  Index workspace_bytes() const override {
    Index bytes =
        Index(sizeof *this + parts_.capacity() * sizeof(PacketedMessage) + starts_.capacity() * sizeof(Index));
    for (const auto& part : parts_) bytes += part.workspace_bytes();
    return bytes;
  }

 private:
  /// The part that a packet belongs to; makes its number one among the part's packets.
  const PacketedMessage& part_of(Index& packet) const {
    const auto k = std::size_t(std::upper_bound(starts_.begin(), starts_.end(), packet) - starts_.begin());
    if (k > 0) packet -= starts_[k - 1];
    return parts_[k];
  }
  bool sending_, copies_;
  std::byte* data_;
  std::vector<PacketedMessage> parts_;
  std::vector<Index> starts_;  ///< the first packet after each part
  Index packets_ = 0;
};

Index source_step(const RelationAxis& axis) {
  const auto& run = axis.runs.periods().front().runs.front();
  return std::abs(axis.source_stride * (run.length > 1 ? 1 : run.source_step));
}

}  // namespace

bool is_turned(const LoopNest& relation) {
  const auto& axes = relation.axes();
  return !axes.empty() && std::any_of(axes.begin(), axes.end() - 1, [&](const RelationAxis& axis) {
    return source_step(axis) < source_step(axes.back());
  });
}

std::unique_ptr<Message> nest_message(const LoopNest& given, const MessageCut& cut, PacketedMessage::Halves halves,
                                      const CopyProgram::Options& options, std::byte* data) {
  const Index capacity = cut.capacity.value_or(given.bytes());
  if (!cut.ring)
    return std::make_unique<NestMessage>(std::vector<LoopNest>{given}, cut, capacity, halves, options, data);
  const auto relation = given.canonical();
  std::vector<LoopNest> strips;
  if (is_turned(relation) && relation.bytes() > capacity) {
    // The message is in the destination's order: a packet of whole rows would take a sliver of every source row.
    const std::size_t inner = relation.axes().size() - 1;
    const Index n = relation.axes()[inner].runs.elements(), element = relation.element_bytes();
    // A little longer than wide: 128 KB of doubles are 64 x 256 elements; wider where they cannot be as long.
    Index side = 8;
    while (16 * side * side * element <= capacity) side *= 2;
    side = std::max(side, capacity / (element * (relation.elements() / n)));
    // Strips end where lines of the destination do: a line of two strips would be fetched and written back by each.
    const Index in_line = std::max<Index>(line_bytes / element, 1);
    const Index each = ceil_div(ceil_div(n, ceil_div(n, side)), in_line) * in_line;
    const Index phase = (cut.line_phase + relation.at(0).destination) % line_bytes;
    Index last = std::min(n, each + (line_bytes - phase) % line_bytes / element);
    for (Index first = 0; first < n; first = last, last = std::min(n, last + each))
      strips.push_back(relation.restrict(inner, first, last));
  } else {
    strips.push_back(relation);
  }
  return std::make_unique<NestMessage>(strips, cut, capacity, halves, options, data);
}

}  // namespace longshore

#include "movers/mpi/ring.hpp"

#include <algorithm>
#include <cstdlib>

namespace longshore::mpi {

Ring::Ring(std::byte* segment, const RingShape& shape)
    : head(reinterpret_cast<Flag*>(segment + shape.offset)),
      tail(head + 1),
      slots(segment + shape.offset + 2 * Index(sizeof(Flag))),
      slot_bytes(shape.slot_bytes),
      slot_count(std::uint64_t(shape.slots)) {}

namespace {

Index step_of(const RelationAxis& axis, bool source) {
  const auto& run = axis.runs.periods().front().runs.front();
  const Index stride = source ? axis.source_stride : axis.destination_stride;
  if (run.length > 1) return std::abs(stride);
  return std::abs(stride * (source ? run.source_step : run.destination_step));
}

}  // namespace

RingMessage ring_message(const LoopNest& given, Index slot_bytes, PacketedMessage::Halves halves,
                         const CopyProgram::Options& options, std::byte* data) {
  RingMessage message;
  message.data = data;
  const auto relation = given.canonical();
  // The message is in the destination's order: its innermost axis is contiguous there. If another axis is the
  // contiguous one in the source, a packet of whole rows would take a sliver of every source row.
  std::size_t fastest = 0;
  const auto& axes = relation.axes();
  for (std::size_t k = 0; k < axes.size(); ++k)
    if (step_of(axes[k], true) < step_of(axes[fastest], true)) fastest = k;
  const std::size_t inner = axes.empty() ? 0 : axes.size() - 1;
  std::vector<LoopNest> strips;
  if (!axes.empty() && fastest != inner && relation.bytes() > slot_bytes) {
    // A little longer than wide: 128 KB of doubles are 64 x 256 elements.
    Index side = 8;
    while (side * side * relation.element_bytes() * 4 <= slot_bytes) side *= 2;
    const Index n = axes[inner].runs.elements(), pieces = ceil_div(n, side), each = ceil_div(n, pieces);
    for (Index first = 0; first < n; first += each)
      strips.push_back(relation.restrict(inner, first, std::min(first + each, n)));
  } else {
    strips.push_back(relation);
  }
  for (const auto& strip : strips) message.parts.emplace_back(strip, slot_bytes, halves, options);
  return message;
}

bool RingSender::advance() {
  if (done()) return false;
  if (count_ - seen_ == ring_.slot_count) {
    seen_ = ring_.tail->value.load(std::memory_order_acquire);
    if (count_ - seen_ == ring_.slot_count) return false;
  }
  part().pack(packet(), slot(), data());
  next();
  ring_.head->value.store(count_, std::memory_order_release);
  return true;
}

bool RingReceiver::advance() {
  if (done()) return false;
  if (count_ == seen_) {
    seen_ = ring_.head->value.load(std::memory_order_acquire);
    if (count_ == seen_) return false;
  }
  part().unpack(packet(), data(), slot());
  next();
  ring_.tail->value.store(count_, std::memory_order_release);
  return true;
}

}  // namespace longshore::mpi

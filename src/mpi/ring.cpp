#include "mpi/ring.hpp"

namespace longshore::mpi {

namespace {

/// From so many bytes on it matters with which stores a packet is written.
constexpr Index long_packet = Index{16} << 10;

}  // namespace

Ring::Ring(std::byte* segment, const RingShape& shape)
    : head(reinterpret_cast<Flag*>(segment + shape.offset)),
      tail(head + 1),
      slots(segment + shape.offset + 2 * Index(sizeof(Flag))),
      slot_bytes(shape.slot_bytes),
      slot_count(std::uint64_t(shape.slots)) {}

bool RingSender::advance() {
  if (done()) return false;
  if (count_ - seen_ == ring_.slot_count) {
    seen_ = ring_.tail->value.load(std::memory_order_acquire);
    if (count_ - seen_ == ring_.slot_count) return false;
  }
  message().pack(packet(), slot(), choose());
  next();
  ring_.head->value.store(count_, std::memory_order_release);
  return true;
}

Stores RingSender::choose() {
  const Index bytes = message().packet_bytes(packet());
  if (bytes < long_packet || !message().streams()) return Stores::cached;
  return steadily_ ? stores_->choose(bytes, std::chrono::steady_clock::now()) : stores_->stores();
}

bool RingReceiver::advance() {
  if (done()) return false;
  if (count_ == seen_) {
    seen_ = ring_.head->value.load(std::memory_order_acquire);
    if (count_ == seen_) return false;
  }
  message().unpack(packet(), slot());
  next();
  ring_.tail->value.store(count_, std::memory_order_release);
  return true;
}

}  // namespace longshore::mpi

#include "mpi/ring.hpp"

namespace longshore::mpi {

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
  message().pack(packet(), slot());
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
  message().unpack(packet(), slot());
  next();
  ring_.tail->value.store(count_, std::memory_order_release);
  return true;
}

}  // namespace longshore::mpi

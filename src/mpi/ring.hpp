/// mpi: `Ring`, a few slots of shared memory through which one process of a node streams packets to another. The
/// slots stay in cache where the two share one, so that staging costs little more than copying once.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "copies/message.hpp"
#include "mpi/slot_stores.hpp"

namespace longshore::mpi {

/// A cache line of its own for one counter, so that two writers never share one.
struct alignas(64) Flag {
  std::atomic<std::uint64_t> value{0};
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "flags are shared between processes");

/// How a ring lies in its receiver's segment. No slots: the receiver has no ring for this sender.
struct RingShape {
  Index offset = 0, slot_bytes = 0, slots = 0;
  Index line_phase = 0;  ///< where in a cache line the receiver's arrays begin
  Index bytes() const { return 2 * Index(sizeof(Flag)) + slot_bytes * slots; }
};

/// One end's view of a ring.
struct Ring {
  Flag* head = nullptr;  ///< packets published, written by the sender
  Flag* tail = nullptr;  ///< packets taken, written by the receiver
  std::byte* slots = nullptr;
  Index slot_bytes = 0;
  std::uint64_t slot_count = 0;
  Ring() = default;
  Ring(std::byte* segment, const RingShape& shape);
};

/// The messages of one pair of processes, in order, and how far this end has come.
class RingEnd {
 public:
  /// `peer`: the other end, by node rank.
  RingEnd(const Ring& ring, int peer, std::vector<std::unique_ptr<Message>> messages)
      : ring_(ring), peer_(peer), messages_(std::move(messages)) {
    message_ = messages_.size();
    for (const auto& message : messages_) packets_ += message->packets();
  }
  void restart() { message_ = 0, packet_ = 0, passed_ = 0, skip_empty(); }
  bool done() const { return message_ == messages_.size(); }
  int peer() const { return peer_; }
  Index workspace_bytes() const {
    Index bytes = Index(sizeof *this);
    for (const auto& message : messages_) bytes += message->workspace_bytes();
    return bytes;
  }
  Index packets() const { return packets_; }  ///< of one move
  Index passed() const { return passed_; }    ///< of them, so far

 protected:
  const Message& message() const { return *messages_[message_]; }
  std::byte* slot() const { return ring_.slots + Index(count_ % ring_.slot_count) * ring_.slot_bytes; }
  Index packet() const { return packet_; }
  void next() { ++count_, ++passed_, ++packet_, skip_empty(); }

  Ring ring_;
  std::uint64_t count_ = 0;  ///< packets this end has put or taken since the ring was made
  std::uint64_t seen_ = 0;   ///< the other end's count when it was last looked at

 private:
  void skip_empty() {
    for (; message_ < messages_.size(); ++message_, packet_ = 0)
      if (packet_ < messages_[message_]->packets()) return;
  }
  int peer_;
  std::vector<std::unique_ptr<Message>> messages_;
  std::size_t message_ = 0;
  Index packet_ = 0, packets_ = 0, passed_ = 0;
};

class RingSender : public RingEnd {
 public:
  /// `measured`: by whoever sent through rings before.
  RingSender(const Ring& ring, int peer, std::vector<std::unique_ptr<Message>> messages,
             const std::shared_ptr<MeasuredStores>& measured)
      : RingEnd(ring, peer, std::move(messages)),
        stores_(MeasuredStores::lend(measured, peer, packets() * ring.slot_bytes)) {}
  /// `steadily`: whoever moves does nothing else, and how fast packets go is worth knowing.
  void restart(bool steadily) {
    RingEnd::restart();
    steadily_ = steadily;
    stores_->pause();
  }
  /// Packs one packet if there is one left and room for it.
  bool advance();

 private:
  Stores choose();

  std::shared_ptr<SlotStores> stores_;
  bool steadily_ = false;
};

class RingReceiver : public RingEnd {
 public:
  using RingEnd::RingEnd;
  /// Unpacks one packet if there is one.
  bool advance();
};

}  // namespace longshore::mpi

#include "movers/mpi/messages.hpp"

#include <algorithm>
#include <deque>
#include <new>

#include "longshore/movers/local_moves.hpp"
#include "longshore/relations/packets.hpp"

namespace longshore::mpi {

namespace {

constexpr Index longest_message = Index{1} << 30;

Index round64(Index bytes) { return checked_mul(ceil_div(bytes, 64), 64); }

struct Staged {
  std::byte* data = nullptr;
  std::unique_ptr<std::byte[], void (*)(std::byte*)> memory{
      nullptr, [](std::byte* p) { ::operator delete[](p, std::align_val_t(64)); }};
  explicit Staged(Index bytes) {
    if (bytes <= 0) return;
    memory.reset(static_cast<std::byte*>(::operator new[](std::size_t(bytes), std::align_val_t(64))));
    data = memory.get();
  }
};

CopyProgram::Options unpacking(const MotionPlan& plan, const HeldMotion& m, const Combine& combine) {
  const bool beyond = plan.destination().local_size(m.motion.destination) * plan.element_bytes() >= far_bytes;
  return {beyond ? Stores::streaming : Stores::cached, nullptr, combine};
}

Index whole_capacity(const LoopNest& relation) { return std::max(relation.bytes(), relation.element_bytes()); }

// ---- whole messages -------------------------------------------------------------------------------------------------

class WholeMessages final : public Messages {
 public:
  WholeMessages(std::shared_ptr<Communicator> communicator, int tag, const MotionPlan& plan,
                const std::vector<HeldMotion>& outgoing, const std::vector<HeldMotion>& incoming,
                const Combine& combine)
      : communicator_(std::move(communicator)),
        tag_(tag),
        bytes_(whole_staging_bytes(plan, outgoing, incoming, combine)),
        staging_(bytes_) {
    Index used = 0;
    auto add = [&](std::vector<End>& ends, const HeldMotion& m, PacketedMessage::Halves halves) {
      const auto relation = plan.relation(m.motion);
      if (relation.empty()) return;
      ends.push_back({m.peer,
                      m.data,
                      relation.bytes(),
                      nullptr,
                      PacketedMessage(relation, whole_capacity(relation), halves, unpacking(plan, m, combine)),
                      {}});
      auto& end = ends.back();
      const bool out = halves == PacketedMessage::Halves::assembly;
      const auto place = out                 ? end.message.contiguous_source(0)
                         : combine.is_copy() ? end.message.contiguous_destination(0)
                                             : std::nullopt;
      if (place)
        end.lies = m.data + *place;
      else
        end.stage = staging_.data + used, used += round64(end.bytes);
    };
    for (const auto& m : outgoing) add(out_, m, PacketedMessage::Halves::assembly);
    for (const auto& m : incoming) add(in_, m, PacketedMessage::Halves::disassembly);
  }

  void start() override {
    const MPI_Comm comm = communicator_->world();
    for (auto& end : in_) end.transfer.receive(comm, end.peer, tag_, end.lies ? end.lies : end.stage, end.bytes);
    // Begin with the next rank, not with rank 0: otherwise everybody floods the same peer.
    const auto first = std::size_t(std::lower_bound(out_.begin(), out_.end(), communicator_->rank(),
                                                    [](const End& e, int r) { return e.peer < r; }) -
                                   out_.begin());
    for (std::size_t i = 0; i < out_.size(); ++i) {
      auto& end = out_[(first + i) % out_.size()];
      if (!end.lies) end.message.pack(0, end.stage, end.data);
      end.transfer.send(comm, end.peer, tag_, end.lies ? end.lies : end.stage, end.bytes, Transfer::Mode::eager);
    }
    left_ = in_.size() + out_.size();
  }

  bool advance() override {
    if (left_ == 0) return false;
    bool progress = false;
    for (auto& end : in_)
      if (end.transfer.test()) {
        if (!end.lies) end.message.unpack(0, end.data, end.stage);
        --left_, progress = true;
      }
    for (auto& end : out_)
      if (end.transfer.test()) --left_, progress = true;
    return progress;
  }

  bool done() const override { return left_ == 0; }
  Index staging_bytes() const override { return bytes_; }
  void abandon() override {
    for (auto* ends : {&in_, &out_})
      for (auto& end : *ends) end.transfer.abandon();
    if (std::any_of(out_.begin(), out_.end(), [](const End& e) { return e.transfer.active(); }))
      static_cast<void>(staging_.memory.release());  // MPI may still read it
  }

 private:
  struct End {
    int peer;
    std::byte* data;
    Index bytes;
    std::byte* stage;
    PacketedMessage message;
    Transfer transfer;
    std::byte* lies = nullptr;  ///< sent from (received to) where it lies
  };
  std::shared_ptr<Communicator> communicator_;
  int tag_;
  Index bytes_;
  Staged staging_;
  std::vector<End> out_, in_;
  std::size_t left_ = 0;
};

// ---- packets --------------------------------------------------------------------------------------------------------

/// One direction: packets in order through a few slots. Both ends of every pair go through their peers by ascending
/// distance (destination - source) modulo the number of processes. The pending packet of smallest distance then always
/// finds its other end waiting for it, so somebody can always proceed.
class PacketStream {
 public:
  PacketStream(bool sending, const MotionPlan& plan, std::vector<HeldMotion> motions, int me, int size,
               const Combine& combine, Index packet_bytes, Index slots)
      : sending_(sending), copy_(combine.is_copy()) {
    auto distance = [&](const HeldMotion& m) { return (sending ? m.peer - me + size : me - m.peer + size) % size; };
    std::stable_sort(motions.begin(), motions.end(),
                     [&](const HeldMotion& a, const HeldMotion& b) { return distance(a) < distance(b); });
    const auto halves = sending ? PacketedMessage::Halves::assembly : PacketedMessage::Halves::disassembly;
    Index largest = 0;
    for (const auto& m : motions) {
      messages_.push_back(
          {m.peer, m.data,
           PacketedMessage(plan.relation(m.motion), packet_bytes, halves, unpacking(plan, m, combine))});
      largest = std::max(largest, messages_.back().message.largest_packet_bytes());
    }
    slot_bytes_ = largest;
    if (!messages_.empty()) slots_.resize(std::size_t(slots));
    staging_ = std::make_unique<Staged>(checked_mul(slot_bytes_, Index(slots_.size())));
    for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i].stage = staging_->data + Index(i) * slot_bytes_;
    message_ = messages_.size();
  }

  void start() { message_ = 0, packet_ = 0, skip_empty(); }
  bool done() const { return message_ == messages_.size() && pending_ == 0; }
  Index bytes() const { return slot_bytes_ * Index(slots_.size()); }

  bool advance(MPI_Comm comm, int tag) {
    bool progress = false;
    // The oldest first: packets of one pair arrive in the order in which they are posted.
    while (pending_ > 0) {
      auto& slot = slots_[std::size_t((posted_ - pending_) % slots_.size())];
      if (!slot.transfer.test()) break;
      if (!sending_ && !slot.lies) {
        auto& m = messages_[slot.message];
        m.message.unpack(slot.packet, m.data, slot.stage);
      }
      --pending_, progress = true;
    }
    while (pending_ < slots_.size() && message_ < messages_.size()) {
      auto& slot = slots_[std::size_t(posted_ % slots_.size())];
      auto& m = messages_[message_];
      slot.message = message_, slot.packet = packet_;
      const auto place = sending_ ? m.message.contiguous_source(packet_)
                         : copy_  ? m.message.contiguous_destination(packet_)
                                  : std::nullopt;
      slot.lies = place ? m.data + *place : nullptr;
      const Index bytes = m.message.packet_bytes(packet_);
      if (!sending_) {
        slot.transfer.receive(comm, m.peer, tag, slot.lies ? slot.lies : slot.stage, bytes);
      } else {
        if (!slot.lies) m.message.pack(packet_, slot.stage, m.data);
        slot.transfer.send(comm, m.peer, tag, slot.lies ? slot.lies : slot.stage, bytes, Transfer::Mode::synchronous);
      }
      ++posted_, ++pending_, ++packet_, progress = true;
      skip_empty();
    }
    return progress;
  }

  void abandon() {
    bool active = false;
    for (auto& slot : slots_) slot.transfer.abandon(), active |= slot.transfer.active();
    if (active) static_cast<void>(staging_->memory.release());
  }

 private:
  struct Message {
    int peer;
    std::byte* data;
    PacketedMessage message;
  };
  struct Slot {
    std::byte* stage = nullptr;
    std::byte* lies = nullptr;
    std::size_t message = 0;
    Index packet = 0;
    Transfer transfer;
  };
  void skip_empty() {
    while (message_ < messages_.size() && packet_ >= messages_[message_].message.packets()) ++message_, packet_ = 0;
  }
  bool sending_, copy_;
  std::vector<Message> messages_;
  std::vector<Slot> slots_;
  std::unique_ptr<Staged> staging_;
  Index slot_bytes_ = 0;
  std::size_t message_ = 0, pending_ = 0, posted_ = 0;
  Index packet_ = 0;
};

class PacketedMessages final : public Messages {
 public:
  PacketedMessages(std::shared_ptr<Communicator> communicator, int tag, const MotionPlan& plan,
                   const std::vector<HeldMotion>& outgoing, const std::vector<HeldMotion>& incoming,
                   const Combine& combine, Index packet_bytes, Index slots)
      : communicator_(std::move(communicator)),
        tag_(tag),
        in_(false, plan, incoming, communicator_->rank(), communicator_->size(), combine, packet_bytes, slots),
        out_(true, plan, outgoing, communicator_->rank(), communicator_->size(), combine, packet_bytes, slots) {}

  void start() override {
    in_.start(), out_.start();
    advance();
  }
  bool advance() override {
    if (done()) return false;
    const MPI_Comm comm = communicator_->world();
    const bool received = in_.advance(comm, tag_);
    return out_.advance(comm, tag_) || received;
  }
  bool done() const override { return in_.done() && out_.done(); }
  Index staging_bytes() const override { return in_.bytes() + out_.bytes(); }
  void abandon() override { in_.abandon(), out_.abandon(); }

 private:
  std::shared_ptr<Communicator> communicator_;
  int tag_;
  PacketStream in_, out_;
};

}  // namespace

Index whole_staging_bytes(const MotionPlan& plan, const std::vector<HeldMotion>& outgoing,
                          const std::vector<HeldMotion>& incoming, const Combine& combine) {
  Index bytes = 0;
  for (const auto& m : outgoing)
    if (const auto relation = plan.relation(m.motion); !relation.contiguous_source())
      bytes = checked_add(bytes, round64(relation.bytes()));
  for (const auto& m : incoming)
    if (const auto relation = plan.relation(m.motion); !combine.is_copy() || !relation.contiguous_destination())
      bytes = checked_add(bytes, round64(relation.bytes()));
  return bytes;
}

std::unique_ptr<Messages> make_messages(std::shared_ptr<Communicator> communicator, int tag, const MotionPlan& plan,
                                        const std::vector<HeldMotion>& outgoing,
                                        const std::vector<HeldMotion>& incoming, const Combine& combine,
                                        const Staging& staging, Index bytes) {
  if (outgoing.empty() && incoming.empty()) return nullptr;
  if (staging.whole)
    return std::make_unique<WholeMessages>(std::move(communicator), tag, plan, outgoing, incoming, combine);
  // Two slots a direction let one be packed while the other travels.
  const Index directions = (outgoing.empty() ? 0 : 1) + (incoming.empty() ? 0 : 1);
  const Index slots = std::clamp<Index>(bytes / (staging.packet_bytes * directions), 1, 4);
  return std::make_unique<PacketedMessages>(std::move(communicator), tag, plan, outgoing, incoming, combine,
                                            staging.packet_bytes, slots);
}

// ---- Transfer -------------------------------------------------------------------------------------------------------

void Transfer::send(MPI_Comm comm, int peer, int tag, const std::byte* data, Index bytes, Mode mode) {
  const auto isend = mode == Mode::eager ? MPI_Isend : MPI_Issend;
  sending_ = true;
  for (Index first = 0; first < bytes; first += longest_message) {
    requests_.push_back(MPI_REQUEST_NULL);
    check_mpi(isend(data + first, int(std::min(longest_message, bytes - first)), MPI_BYTE, peer, tag, comm,
                    &requests_.back()),
              "MPI_Isend");
  }
}

void Transfer::receive(MPI_Comm comm, int peer, int tag, std::byte* data, Index bytes) {
  sending_ = false;
  for (Index first = 0; first < bytes; first += longest_message) {
    requests_.push_back(MPI_REQUEST_NULL);
    check_mpi(MPI_Irecv(data + first, int(std::min(longest_message, bytes - first)), MPI_BYTE, peer, tag, comm,
                        &requests_.back()),
              "MPI_Irecv");
  }
}

bool Transfer::test() {
  if (requests_.empty()) return false;
  int arrived = 0;
  if (requests_.size() == 1)
    check_mpi(MPI_Test(requests_.data(), &arrived, MPI_STATUS_IGNORE), "MPI_Test");
  else
    check_mpi(MPI_Testall(int(requests_.size()), requests_.data(), &arrived, MPI_STATUSES_IGNORE), "MPI_Testall");
  if (arrived) requests_.clear();
  return arrived != 0;
}

void Transfer::abandon() {
  for (auto& request : requests_) {
    if (request == MPI_REQUEST_NULL) continue;
    if (sending_) {  // cannot be taken back: MPI finishes it by itself
      int left = 0;
      if (MPI_Test(&request, &left, MPI_STATUS_IGNORE) == MPI_SUCCESS && left) continue;
      MPI_Request_free(&request);
      continue;
    }
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  if (!sending_) requests_.clear();
}

}  // namespace longshore::mpi

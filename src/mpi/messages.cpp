#include "mpi/messages.hpp"

#include <algorithm>
#include <deque>
#include <new>

namespace longshore::mpi {

namespace {

constexpr Index longest_message = Index{1} << 30;
/// After so many a receive that was taken back has ended, unless it was under way.
constexpr int most_polls = 1000;

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

// ---- whole messages -------------------------------------------------------------------------------------------------

class WholeMessages final : public Messages {
 public:
  WholeMessages(std::shared_ptr<Communicator> communicator, int tag, std::vector<PeerEnd> outgoing,
                std::vector<PeerEnd> incoming, bool preallocate)
      : communicator_(std::move(communicator)),
        tag_(tag),
        bytes_(mpi::staging_bytes(outgoing, incoming)),
        preallocate_(preallocate),
        staging_(preallocate ? bytes_ : 0) {
    Index used = 0;
    auto add = [&](std::vector<End>& ends, std::vector<PeerEnd>& given) {
      for (auto& [peer, message] : given) {
        if (message->packets() == 0) continue;
        End end{peer, message->packet_bytes(0), message->contiguous(0), used, std::move(message), {}};
        if (!end.contiguous) used += round64(end.bytes);
        ends.push_back(std::move(end));
      }
    };
    add(out_, outgoing);
    add(in_, incoming);
  }

  void start() override {
    const MPI_Comm comm = communicator_->world();
    if (!preallocate_) staging_ = Staged(bytes_);
    for (auto& end : in_) end.requests.receive(comm, end.peer, tag_, place_of(end), end.bytes);
    // Begin with the next rank, not with rank 0: otherwise everybody floods the same peer.
    const auto first = std::size_t(std::lower_bound(out_.begin(), out_.end(), communicator_->rank(),
                                                    [](const End& e, int r) { return e.peer < r; }) -
                                   out_.begin());
    for (std::size_t i = 0; i < out_.size(); ++i) {
      auto& end = out_[(first + i) % out_.size()];
      if (!end.contiguous) end.message->pack(0, place_of(end), Stores::cached);
      end.requests.send(comm, end.peer, tag_, place_of(end), end.bytes, Requests::Mode::eager);
    }
    left_ = in_.size() + out_.size();
  }

  bool advance() override {
    if (left_ == 0) return false;
    bool progress = false;
    for (auto& end : in_)
      if (end.requests.test()) {
        if (!end.contiguous) end.message->unpack(0, place_of(end));
        --left_, progress = true;
      }
    for (auto& end : out_)
      if (end.requests.test()) --left_, progress = true;
    if (left_ == 0 && !preallocate_) staging_ = Staged(0);
    return progress;
  }

  bool done() const override { return left_ == 0; }
  std::vector<int> peers() const override {
    std::vector<int> peers;
    for (const auto* ends : {&in_, &out_})
      for (const auto& end : *ends) peers.push_back(end.peer);
    return peers;
  }
  std::vector<int> awaited() const override {
    std::vector<int> peers;
    for (const auto* ends : {&in_, &out_})
      for (const auto& end : *ends)
        if (end.requests.active()) peers.push_back(end.peer);
    return peers;
  }
  void add_missing(std::set<int>& peers) const override {
    for (const auto& end : in_)
      if (end.requests.active()) peers.insert(end.peer);
  }
  Index staging_bytes() const override { return bytes_; }
  Index workspace_bytes() const override {
    Index bytes = Index(sizeof *this) + bytes_;
    for (const auto* ends : {&out_, &in_})
      for (const auto& end : *ends) bytes += Index(sizeof end) + end.message->workspace_bytes();
    return bytes;
  }
  bool abandon() override {
    bool active = false;
    for (auto* ends : {&in_, &out_})
      for (auto& end : *ends) end.requests.abandon(), active |= end.requests.active();
    if (active) static_cast<void>(staging_.memory.release());
    return active;
  }

 private:
  struct End {
    int peer;
    Index bytes;
    std::byte* contiguous;  ///< sent from (received to) where it lies; null: staged
    Index stage;            ///< where in the staging memory
    std::unique_ptr<Message> message;
    Requests requests;
  };
  std::byte* place_of(const End& end) const { return end.contiguous ? end.contiguous : staging_.data + end.stage; }

  std::shared_ptr<Communicator> communicator_;
  int tag_;
  Index bytes_;
  bool preallocate_;
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
  PacketStream(bool sending, std::vector<PeerEnd> messages, int me, int size, Index slots)
      : sending_(sending), messages_(std::move(messages)) {
    auto distance = [&](const PeerEnd& m) { return (sending ? m.peer - me + size : me - m.peer + size) % size; };
    std::stable_sort(messages_.begin(), messages_.end(),
                     [&](const PeerEnd& a, const PeerEnd& b) { return distance(a) < distance(b); });
    for (const auto& m : messages_) slot_bytes_ = std::max(slot_bytes_, m.message->largest_packet_bytes());
    if (!messages_.empty()) slots_.resize(std::size_t(slots));
    staging_ = std::make_unique<Staged>(checked_mul(slot_bytes_, Index(slots_.size())));
    for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i].stage = staging_->data + Index(i) * slot_bytes_;
    message_ = messages_.size();
  }

  void start() { message_ = 0, packet_ = 0, skip_empty(); }
  bool done() const { return message_ == messages_.size() && pending_ == 0; }
  void add_peers(std::vector<int>& peers) const {
    for (const auto& m : messages_) peers.push_back(m.peer);
  }
  void add_awaited(std::vector<int>& peers) const {
    for (const auto& slot : slots_)
      if (slot.requests.active()) peers.push_back(messages_[slot.message].peer);
  }
  /// The peers of all messages that have not passed completely.
  void add_missing(std::set<int>& peers) const {
    std::size_t k = pending_ > 0 ? slots_[(posted_ - pending_) % slots_.size()].message : message_;
    for (; k < messages_.size(); ++k) peers.insert(messages_[k].peer);
  }
  Index bytes() const { return slot_bytes_ * Index(slots_.size()); }
  Index workspace_bytes() const {
    return Index(sizeof *this + slots_.size() * sizeof(Slot)) + bytes() + mpi::workspace_bytes(messages_);
  }

  bool advance(MPI_Comm comm, int tag) {
    bool progress = false;
    // The oldest first: packets of one pair arrive in the order in which they are posted.
    while (pending_ > 0) {
      auto& slot = slots_[std::size_t((posted_ - pending_) % slots_.size())];
      if (!slot.requests.test()) break;
      if (!sending_ && !slot.contiguous) {
        messages_[slot.message].message->unpack(slot.packet, slot.stage);
      }
      --pending_, progress = true;
    }
    while (pending_ < slots_.size() && message_ < messages_.size()) {
      auto& slot = slots_[std::size_t(posted_ % slots_.size())];
      auto& m = messages_[message_];
      slot.message = message_, slot.packet = packet_;
      slot.contiguous = m.message->contiguous(packet_);
      const Index bytes = m.message->packet_bytes(packet_);
      if (!sending_) {
        slot.requests.receive(comm, m.peer, tag, slot.contiguous ? slot.contiguous : slot.stage, bytes);
      } else {
        if (!slot.contiguous) m.message->pack(packet_, slot.stage, Stores::cached);
        slot.requests.send(comm, m.peer, tag, slot.contiguous ? slot.contiguous : slot.stage, bytes,
                           Requests::Mode::synchronous);
      }
      ++posted_, ++pending_, ++packet_, progress = true;
      skip_empty();
    }
    return progress;
  }

  bool abandon() {
    bool active = false;
    for (auto& slot : slots_) slot.requests.abandon(), active |= slot.requests.active();
    if (active) static_cast<void>(staging_->memory.release());
    return active;
  }

 private:
  struct Slot {
    std::byte* stage = nullptr;
    std::byte* contiguous = nullptr;
    std::size_t message = 0;
    Index packet = 0;
    Requests requests;
  };
  void skip_empty() {
    while (message_ < messages_.size() && packet_ >= messages_[message_].message->packets()) ++message_, packet_ = 0;
  }
  bool sending_;
  std::vector<PeerEnd> messages_;
  std::vector<Slot> slots_;
  std::unique_ptr<Staged> staging_;
  Index slot_bytes_ = 0;
  std::size_t message_ = 0, pending_ = 0, posted_ = 0;
  Index packet_ = 0;
};

class PacketedMessages final : public Messages {
 public:
  PacketedMessages(std::shared_ptr<Communicator> communicator, int tag, std::vector<PeerEnd> outgoing,
                   std::vector<PeerEnd> incoming, Index slots)
      : communicator_(std::move(communicator)),
        tag_(tag),
        in_(false, std::move(incoming), communicator_->rank(), communicator_->size(), slots),
        out_(true, std::move(outgoing), communicator_->rank(), communicator_->size(), slots) {}

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
  std::vector<int> peers() const override {
    std::vector<int> peers;
    in_.add_peers(peers), out_.add_peers(peers);
    return peers;
  }
  std::vector<int> awaited() const override {
    std::vector<int> peers;
    in_.add_awaited(peers), out_.add_awaited(peers);
    return peers;
  }
  void add_missing(std::set<int>& peers) const override { in_.add_missing(peers); }
  Index staging_bytes() const override { return in_.bytes() + out_.bytes(); }
  Index workspace_bytes() const override { return in_.workspace_bytes() + out_.workspace_bytes(); }
  bool abandon() override {
    const bool in = in_.abandon(), out = out_.abandon();
    return in || out;
  }

 private:
  std::shared_ptr<Communicator> communicator_;
  int tag_;
  PacketStream in_, out_;
};

}  // namespace

Index workspace_bytes(const std::vector<PeerEnd>& ends) {
  Index bytes = 0;
  for (const auto& end : ends) bytes += Index(sizeof end) + end.message->workspace_bytes();
  return bytes;
}

Index staging_bytes(const std::vector<PeerEnd>& outgoing, const std::vector<PeerEnd>& incoming) {
  Index bytes = 0;
  for (const auto* ends : {&outgoing, &incoming})
    for (const auto& [peer, message] : *ends)
      for (Index k = 0; k < message->packets(); ++k)
        if (!message->contiguous(k)) bytes = checked_add(bytes, round64(message->packet_bytes(k)));
  return bytes;
}

std::unique_ptr<Messages> make_messages(std::shared_ptr<Communicator> communicator, int tag,
                                        std::vector<PeerEnd> outgoing, std::vector<PeerEnd> incoming,
                                        const Staging& staging, Index bytes) {
  if (outgoing.empty() && incoming.empty()) return nullptr;
  if (staging.whole)
    return std::make_unique<WholeMessages>(std::move(communicator), tag, std::move(outgoing), std::move(incoming),
                                           staging.preallocate);
  // Two slots a direction let one be packed while the other travels.
  const Index directions = (outgoing.empty() ? 0 : 1) + (incoming.empty() ? 0 : 1);
  const Index slots = std::clamp<Index>(bytes / (staging.packet_bytes * directions), 1, 4);
  return std::make_unique<PacketedMessages>(std::move(communicator), tag, std::move(outgoing), std::move(incoming),
                                            slots);
}

// ---- Requests -------------------------------------------------------------------------------------------------------

void Requests::send(MPI_Comm comm, int peer, int tag, const std::byte* data, Index bytes, Mode mode) {
  const auto isend = mode == Mode::eager ? MPI_Isend : MPI_Issend;
  sending_ = true;
  for (Index first = 0; first < bytes; first += longest_message) {
    requests_.push_back(MPI_REQUEST_NULL);
    check_mpi(isend(data + first, int(std::min(longest_message, bytes - first)), MPI_BYTE, peer, tag, comm,
                    &requests_.back()),
              "MPI_Isend");
  }
}

void Requests::receive(MPI_Comm comm, int peer, int tag, std::byte* data, Index bytes) {
  sending_ = false;
  for (Index first = 0; first < bytes; first += longest_message) {
    requests_.push_back(MPI_REQUEST_NULL);
    check_mpi(MPI_Irecv(data + first, int(std::min(longest_message, bytes - first)), MPI_BYTE, peer, tag, comm,
                        &requests_.back()),
              "MPI_Irecv");
  }
}

bool Requests::test() {
  if (requests_.empty()) return false;
  int arrived = 0;
  if (requests_.size() == 1)
    check_mpi(MPI_Test(requests_.data(), &arrived, MPI_STATUS_IGNORE), "MPI_Test");
  else
    check_mpi(MPI_Testall(int(requests_.size()), requests_.data(), &arrived, MPI_STATUSES_IGNORE), "MPI_Testall");
  if (arrived) requests_.clear();
  return arrived != 0;
}

void Requests::abandon() {
  std::erase_if(requests_, [this](MPI_Request& request) {
    if (request == MPI_REQUEST_NULL) return true;
    // A send cannot be taken back, nor a receive that is under way, which never ends where its sender has ended.
    if (!sending_) MPI_Cancel(&request);
    int ended = 0;
    for (int polls = sending_ ? 1 : most_polls; !ended && polls > 0; --polls)
      if (MPI_Test(&request, &ended, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
    if (!ended && sending_) MPI_Request_free(&request);  // MPI finishes it by itself
    return ended != 0;
  });
}

}  // namespace longshore::mpi

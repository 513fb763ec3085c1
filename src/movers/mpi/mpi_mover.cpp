#include "movers/mpi/mpi_mover.hpp"

#include <sched.h>

namespace longshore::mpi {

namespace {

/// Looks at the flags this often before giving the processor away.
constexpr int patient_spins = 1000;

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

class MpiMover final : public Mover {
 public:
  MpiMover(std::shared_ptr<Communicator> communicator, NodeTraffic node, MessageTraffic messages, Index moved_bytes,
           std::shared_ptr<void> keep_alive, bool threaded)
      : communicator_(std::move(communicator)),
        keep_alive_(std::move(keep_alive)),
        node_(std::move(node)),
        messages_(std::move(messages)),
        moved_bytes_(moved_bytes),
        pokes_(!threaded || threads_may_call_mpi()) {}

  ~MpiMover() override {
    // Destroyed in flight: receives are taken back. The rest is left to MPI; what it may still read is kept.
    if (active_ && messages_.messages && mpi_alive()) messages_.messages->abandon();
  }

  void start() override {
    if (active_) throw Error(ErrorKind::argument, "this move has been started already: wait() for it first");
    active_ = true;
    node_.start();
    if (messages_.messages) messages_.messages->start();
  }

  bool test() override {
    if (!active_) return true;
    const bool progress = advance();
    if (finished()) return true;
    if (!progress) step_aside();
    return false;
  }

  void wait() override {
    int spins = 0;
    while (active_ && !finished()) {
      if (advance()) {
        spins = 0;
      } else if (++spins > patient_spins || communicator_->crowded()) {
        step_aside();
      } else {
        relax();
      }
    }
  }

  Index workspace_bytes() const override {
    return node_.workspace_bytes() + (messages_.messages ? messages_.messages->staging_bytes() : 0);
  }
  Index moved_bytes() const override { return moved_bytes_; }
  std::string describe() const override {
    std::string text;
    node_.describe(text);
    auto line = [&](Index bytes, const char* what) {
      if (bytes > 0) text += (text.empty() ? "" : "\n") + std::to_string(bytes) + " bytes " + what;
    };
    line(messages_.sent_bytes, "sent in MPI messages");
    line(messages_.received_bytes, "received in MPI messages");
    return text.empty() ? "nothing to move in this process" : text;
  }

 private:
  bool advance() {
    const bool progress = messages_.messages && messages_.messages->advance();
    return node_.advance() || progress;
  }
  bool finished() {
    if (!active_) return true;
    if (!node_.done() || (messages_.messages && !messages_.messages->done())) return false;
    active_ = false;
    return true;
  }
  void step_aside() {
    if (pokes_) communicator_->poke();  // somebody may need our MPI library to finish another communication
    sched_yield();
  }

  std::shared_ptr<Communicator> communicator_;
  std::shared_ptr<void> keep_alive_;  // the arrays
  NodeTraffic node_;
  MessageTraffic messages_;
  Index moved_bytes_;
  bool pokes_, active_ = false;
};

}  // namespace

bool threads_may_call_mpi() {
  int provided = MPI_THREAD_SINGLE;
  return MPI_Query_thread(&provided) == MPI_SUCCESS && provided == MPI_THREAD_MULTIPLE;
}

const char* path_name(NodePath path) {
  switch (path) {
    case NodePath::direct: return "direct";
    case NodePath::ring: return "ring";
    case NodePath::messages: return "messages";
    case NodePath::automatic: break;
  }
  return "automatic";
}

Index Budget::rings(bool messages_too) const {
  return max_mem == unbounded ? unbounded : messages_too ? max_mem / 2 : max_mem - std::min(max_mem, 2 * element_bytes);
}

MessageTraffic agree_on_messages(const std::shared_ptr<Communicator>& communicator, Submission& mine, const Budget& budget,
                                 Index ring_bytes, const MessageSide& outgoing, const MessageSide& incoming, Index packet_bytes,
                                 bool preallocate) {
  const Index element = budget.element_bytes;
  const Index limit = budget.max_mem == Budget::unbounded ? Budget::unbounded : budget.max_mem - ring_bytes;
  const Index directions = (outgoing.bytes > 0) + (incoming.bytes > 0);
  std::vector<PeerEnd> out, in;
  Staging staging{true, 0, preallocate};
  mine.failure = attempt([&] { out = outgoing.make({}), in = incoming.make({}); });
  if (limit != Budget::unbounded || packet_bytes > 0) {
    Index fits = 1, packet = Budget::unbounded;
    if (!mine.failure) mine.failure = attempt([&] {
      if (directions == 0) return;
      fits = packet_bytes == 0 && staging_bytes(out, in) <= limit;
      const Index least = directions * element;
      if (fits && limit < least) {  // sent from where it lies and received to where it lies; an element at a time does as well
        packet = element;
        return;
      }
      if (limit < least)
        throw Error(ErrorKind::memory_limit, "max_mem is " + std::to_string(budget.max_mem) + " bytes; this move needs at least " +
                                                 std::to_string(least + budget.max_mem - limit));
      const Index slots = limit / directions >= 2 * element ? 2 * directions : directions;
      packet = std::max(std::min(limit / slots, packet_bytes > 0 ? packet_bytes : limit) / element, Index{1}) * element;
    });
    const auto agreed = agree(*communicator, mine, {fits, packet});
    staging.whole = agreed[0] == 1;
    staging.packet_bytes = agreed[1];
  }
  const int tag = communicator->next_tag();
  MessageTraffic traffic{nullptr, outgoing.bytes, incoming.bytes};
  if (!mine.failure) mine.failure = attempt([&] {
    if (!staging.whole) out = outgoing.make(staging.packet_bytes), in = incoming.make(staging.packet_bytes);
    traffic.messages = make_messages(communicator, tag, std::move(out), std::move(in), staging, limit);
  });
  agree(*communicator, mine);
  return traffic;
}

std::unique_ptr<Mover> make_mpi_mover(std::shared_ptr<Communicator> communicator, NodeTraffic node, MessageTraffic messages,
                                      Index moved_bytes, std::shared_ptr<void> keep_alive, bool threaded) {
  return std::make_unique<MpiMover>(std::move(communicator), std::move(node), std::move(messages), moved_bytes,
                                    std::move(keep_alive), threaded);
}

}  // namespace longshore::mpi

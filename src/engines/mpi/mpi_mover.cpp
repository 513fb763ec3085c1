#include "engines/mpi/mpi_mover.hpp"

#include <sched.h>

#include <exception>
#include <mutex>

#include "core/relax.hpp"

namespace longshore::mpi {

namespace {

/// Looks at the flags this often before giving the processor away.
constexpr int patient_spins = 1000;

/// One move after the other of a mover, each from start() to completion. Whoever waits works on it: see
/// `Communicator::help_others`.
class Moves final : public Flight {
 public:
  Moves(const Communicator& communicator, NodeTraffic node, MessageTraffic messages)
      : communicator_(communicator), node_(std::move(node)), messages_(std::move(messages)) {}

  /// `blocking`: whoever starts it waits for it, too.
  void start(bool blocking) {
    std::lock_guard lock(mutex_);
    if (active_ || failure_)
      throw Error(ErrorKind::argument, "the last move broke off in the middle: bind the mover anew");
    active_ = true;
    try {
      node_.start(blocking);
      if (messages_.messages) messages_.messages->start();
    } catch (...) {
      break_off(std::current_exception());
      throw;
    }
  }
  struct Step {
    bool progress, done;
  };
  Step advance() {
    std::lock_guard lock(mutex_);
    const bool progress = work();
    if (failure_) std::rethrow_exception(failure_);
    return {progress, !active_};
  }
  bool help() noexcept override {
    std::unique_lock lock(mutex_, std::try_to_lock);
    return lock && work();
  }
  std::vector<Awaited> awaited() {
    std::lock_guard lock(mutex_);
    auto awaited = node_.awaited(communicator_);
    if (messages_.messages)
      for (const int rank : messages_.messages->awaited())
        awaited.push_back({rank, node_.has_left(communicator_, rank)});
    return awaited;
  }
  /// There is no going on. Not of this thread alone: others may be helping.
  void fail(std::exception_ptr failure) {
    std::lock_guard lock(mutex_);
    break_off(std::move(failure));
  }
  /// Destroyed in flight: receives are taken back. The rest is left to MPI; true where it may still look at the arrays.
  bool abandon() {
    std::lock_guard lock(mutex_);
    node_.leave();
    return std::exchange(active_, false) && messages_.messages && mpi_alive() && messages_.messages->abandon();
  }

  const NodeTraffic& node() const { return node_; }
  const MessageTraffic& messages() const { return messages_; }

 private:
  bool work() noexcept {
    if (!active_ || failure_) return false;
    try {
      const bool progress = messages_.messages && messages_.messages->advance();
      const bool any = node_.advance(communicator_) || progress;
      active_ = !node_.done() || (messages_.messages && !messages_.messages->done());
      return any;
    } catch (...) {
      break_off(std::current_exception());
      return true;
    }
  }
  void break_off(std::exception_ptr failure) {
    failure_ = std::move(failure);
    node_.leave();
  }

  const Communicator& communicator_;
  std::mutex mutex_;
  NodeTraffic node_;
  MessageTraffic messages_;
  std::exception_ptr failure_;  // in the middle of a move: there is no going on
  bool active_ = false;
};

class MpiMover final : public Mover {
 public:
  MpiMover(std::shared_ptr<Communicator> communicator, NodeTraffic node, MessageTraffic messages, Index moved_bytes,
           std::vector<BoundMemory> memory, std::string obstacle, bool threaded)
      : Mover(std::move(memory)),
        communicator_(std::move(communicator)),
        moves_(std::make_shared<Moves>(*communicator_, std::move(node), std::move(messages))),
        patience_(*communicator_),
        moved_bytes_(moved_bytes),
        obstacle_(std::move(obstacle)),
        threaded_(threaded),
        pokes_(!threaded || threads_may_call_mpi()) {}

  ~MpiMover() override {
    if (moves_->abandon()) keep_memory_for_good();
    land();
  }

  Index workspace_bytes() const override {
    const auto& messages = moves_->messages().messages;
    return Index(sizeof *this + sizeof(Moves)) + moves_->node().workspace_bytes() +
           (messages ? messages->workspace_bytes() : 0);
  }
  Index staging_bytes() const override {
    const auto& messages = moves_->messages().messages;
    return moves_->node().staging_bytes() + (messages ? messages->staging_bytes() : 0);
  }
  Index moved_bytes() const override { return moved_bytes_; }
  std::string describe() const override {
    std::string text;
    moves_->node().describe(text);
    auto line = [&](Index bytes, const char* what) {
      if (bytes > 0) text += (text.empty() ? "" : "\n") + std::to_string(bytes) + " bytes " + what;
    };
    line(moves_->messages().sent_bytes, "sent in MPI messages");
    line(moves_->messages().received_bytes, "received in MPI messages");
    if (text.empty()) text = "nothing to move in this process";
    return obstacle_.empty() ? text : text + "\nmemory is not shared as it might be: " + obstacle_;
  }
  std::string obstacle() const override { return obstacle_; }

 private:
  void begin() override { take_off(false); }
  void give_up(const Error& error) override { moves_->fail(std::make_exception_ptr(error)); }
  void begin_and_finish() override {
    take_off(true);
    finish();
  }
  void take_off(bool blocking) {
    moves_->start(blocking);
    // A thread of the mover's own sees to it that it gets on, and has nothing to do with others.
    if (!threaded_) communicator_->take_off(moves_), flying_ = true;
  }
  bool advance() override {
    const auto step = moves_->advance();
    if (step.done) return land(), true;
    if (step.progress) {
      patience_.progress();
    } else {
      if (!help_others()) step_aside();
      look_for_the_lost();
    }
    return false;
  }
  void finish() override {
    int spins = 0;
    for (auto step = moves_->advance(); !step.done; step = moves_->advance()) {
      if (step.progress) {
        patience_.progress(), spins = 0;
        continue;
      }
      if (help_others()) {
        spins = 0;
      } else if (++spins > patient_spins || communicator_->crowded()) {
        step_aside();
      } else {
        relax();
        continue;
      }
      look_for_the_lost();
    }
    land();
  }
  bool help_others() { return !threaded_ && communicator_->help_others(*moves_); }
  /// Nobody should wait for a process that has ended.
  void look_for_the_lost() {
    try {
      patience_.nothing([this] { return moves_->awaited(); });
    } catch (...) {
      moves_->fail(std::current_exception());
      land();
      throw;
    }
  }
  void land() {
    patience_.progress();
    if (std::exchange(flying_, false)) communicator_->land(*moves_);
  }
  void step_aside() {
    if (pokes_) communicator_->poke();  // somebody may need our MPI library to finish another communication
    sched_yield();
  }

  std::shared_ptr<Communicator> communicator_;
  std::shared_ptr<Moves> moves_;
  Patience patience_;
  Index moved_bytes_;
  std::string obstacle_;
  bool threaded_, pokes_, flying_ = false;
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

MessageTraffic agree_on_messages(const std::shared_ptr<Communicator>& communicator, Submission& mine,
                                 const Budget& budget, Index ring_bytes, const MessageSide& outgoing,
                                 const MessageSide& incoming, Index packet_bytes, bool preallocate) {
  const Index element = budget.element_bytes;
  const Index limit = budget.max_mem == Budget::unbounded ? Budget::unbounded : budget.max_mem - ring_bytes;
  const Index directions = (outgoing.bytes > 0) + (incoming.bytes > 0);
  std::vector<PeerEnd> out, in;
  Staging staging{true, 0, preallocate};
  if (!mine.failure) mine.failure = attempt([&] { out = outgoing.make({}, false), in = incoming.make({}, false); });
  if (limit != Budget::unbounded || packet_bytes > 0) {
    Index fits = 1, packet = Budget::unbounded;
    if (!mine.failure)
      mine.failure = attempt([&] {
        if (directions == 0) return;
        fits = packet_bytes == 0 && staging_bytes(out, in) <= limit;
        const Index least = directions * element;
        if (fits &&
            limit <
                least) {  // sent from where it lies and received to where it lies; an element at a time does as well
          packet = element;
          return;
        }
        if (limit < least)
          throw Error(ErrorKind::memory_limit, "max_mem is " + std::to_string(budget.max_mem) +
                                                   " bytes; this move needs at least " +
                                                   std::to_string(least + budget.max_mem - limit));
        const Index slots = limit / directions >= 2 * element ? 2 * directions : directions;
        packet =
            std::max(std::min(limit / slots, packet_bytes > 0 ? packet_bytes : limit) / element, Index{1}) * element;
      });
    const auto agreed = agree(*communicator, mine, {fits, packet});
    staging.whole = agreed[0] == 1;
    staging.packet_bytes = agreed[1];
  }
  const int tag = communicator->next_tag();
  MessageTraffic traffic{nullptr, outgoing.bytes, incoming.bytes};
  if (!mine.failure)
    mine.failure = attempt([&] {
      if (!staging.whole)
        out = outgoing.make(staging.packet_bytes, false), in = incoming.make(staging.packet_bytes, false);
      traffic.messages = make_messages(communicator, tag, std::move(out), std::move(in), staging, limit);
    });
  agree(*communicator, mine);
  return traffic;
}

std::unique_ptr<Mover> make_mpi_mover(std::shared_ptr<Communicator> communicator, NodeTraffic node,
                                      MessageTraffic messages, Index moved_bytes, std::vector<BoundMemory> memory,
                                      std::string obstacle, bool threaded) {
  return std::make_unique<MpiMover>(std::move(communicator), std::move(node), std::move(messages), moved_bytes,
                                    std::move(memory), std::move(obstacle), threaded);
}

}  // namespace longshore::mpi

#include "engines/mpi/mpi_mover.hpp"

#include <sched.h>

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <utility>

#include "core/relax.hpp"

namespace longshore::mpi {

namespace {

/// Looks at the flags this often before giving the processor away.
constexpr int patient_spins = 1000;

/// So many help with the copies of a stage: not where there are few.
int helpers_of(const std::vector<Stage>& stages, int threads) {
  std::size_t widest = 1;
  Index copied = 0;
  for (const auto& stage : stages) {
    const auto& bytes = stage.node.bytes();
    widest = std::max(widest, stage.node.tasks());
    copied += bytes.local + bytes.pulled + bytes.pushed;
  }
  return copied < least_threaded_bytes ? 0 : int(std::min<std::size_t>(widest, std::size_t(threads))) - 1;
}

/// One move after the other of a mover, each from start() to completion, stage after stage. Whoever waits works on it:
/// see `Communicator::help_others`.
class Moves final : public Flight {
 public:
  Moves(Communicator& communicator, Index number, std::vector<Stage> stages, int threads)
      : communicator_(communicator), number_(number), stages_(std::move(stages)) {
    if (const int helpers = helpers_of(stages_, threads); helpers > 0) helpers_.start(helpers);
  }

  /// `blocking`: whoever starts it waits for it, too.
  void start(bool blocking) {
    std::lock_guard lock(mutex_);
    if (active_ || failure_)
      throw Error(ErrorKind::argument, "the last move broke off in the middle: bind the mover anew");
    active_ = true, blocking_ = blocking, told_stages_ = 0;
    for (auto& stage : senders_)
      for (auto& sender : stage) sender.told = false;
    try {
      start_stage(0);
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
    const auto& [node, messages, shares] = stages_[at_];
    auto awaited = node.awaited(communicator_);
    if (messages.messages)
      for (const int rank : messages.messages->awaited())
        awaited.push_back({rank, node.has_left(communicator_, rank) || communicator_.has_given_up(rank, number_)});
    return awaited;
  }
  /// What tasks do not bring arrives when all is there that its process sends in the same stage.
  void expect(Arrivals& arrivals) {
    std::lock_guard lock(mutex_);
    std::size_t first = 0;
    senders_.assign(stages_.size(), {});
    for (std::size_t k = 0; k < stages_.size(); first += stages_[k++].shares) {
      stages_[k].node.expect(arrivals, first);
      std::map<int, std::vector<std::uint32_t>> sent;
      arrivals.for_each_unexpected(first, first + stages_[k].shares,
                                   [&](std::uint32_t piece, int rank) { sent[rank].push_back(piece); });
      for (auto& [rank, pieces] : sent) {
        for (const auto piece : pieces) arrivals.expect(piece);
        senders_[k].push_back({rank, std::move(pieces)});
      }
    }
  }
  /// What has arrived since this was last asked in this move.
  void tell(Arrivals& arrivals) {
    std::lock_guard lock(mutex_);
    if (failure_) return;
    std::size_t first = 0;
    for (std::size_t k = 0; k <= at_; first += stages_[k++].shares) {
      if (k < told_stages_) continue;
      auto& [node, messages, shares] = stages_[k];
      node.tell(arrivals, first);
      std::set<int> missing;
      const bool complete = k < at_ || !active_;
      if (!complete) node.add_missing(communicator_, missing);
      if (!complete && messages.messages) messages.messages->add_missing(missing);
      for (auto& sender : senders_[k]) {
        if (sender.told || missing.count(sender.rank) > 0) continue;
        for (const auto piece : sender.pieces) arrivals.land(piece);
        sender.told = true;
      }
      if (complete) told_stages_ = k + 1;
    }
  }
  /// There is no going on. Not of this thread alone: others may be helping.
  void fail(std::exception_ptr failure) {
    std::lock_guard lock(mutex_);
    break_off(std::move(failure));
  }
  /// Destroyed in flight: receives are taken back. The rest is left to MPI; true where it may still look at the arrays.
  bool abandon() {
    std::lock_guard lock(mutex_);
    leave();
    const auto& messages = stages_[at_].messages.messages;
    return std::exchange(active_, false) && messages && mpi_alive() && messages->abandon();
  }

  const std::vector<Stage>& stages() const { return stages_; }
  /// See `NodeTraffic::leave_memory`.
  Index leave_memory() {
    Index held = 0;
    for (auto& stage : stages_) held += stage.node.leave_memory();
    return held;
  }
  int threads() const { return helpers_.count() + 1; }

 private:
  bool work() noexcept {
    if (!active_ || failure_) return false;
    try {
      auto& [node, messages, shares] = stages_[at_];
      if (messages.messages) check_not_finalised();
      const bool progress = messages.messages && messages.messages->advance();
      const bool any = node.advance(communicator_) || progress;
      if (!node.done() || (messages.messages && !messages.messages->done())) return any;
      active_ = at_ + 1 < stages_.size();
      if (active_) start_stage(at_ + 1);
      return any || active_;
    } catch (...) {
      break_off(std::current_exception());
      return true;
    }
  }
  void start_stage(std::size_t stage) {
    at_ = stage;
    const auto& messages = stages_[at_].messages.messages;
    if (messages) check_not_finalised();
    stages_[at_].node.start(communicator_, blocking_, helpers_.count() > 0 ? &helpers_ : nullptr);
    if (messages) messages->start();
  }
  void break_off(std::exception_ptr failure) {
    failure_ = std::move(failure);
    leave();
  }
  /// Processes of this node look at a flag. Those of other nodes get a message, but not of every mover that is
  /// destroyed: as a rule nobody waits for it any more, and what nobody receives stays in MPI.
  void leave() noexcept {
    for (auto& stage : stages_) stage.node.leave();
    if (!(active_ || failure_) || std::exchange(told_, true)) return;
    try {
      std::set<int> peers;
      for (const auto& stage : stages_)
        if (stage.messages.messages)
          for (const int peer : stage.messages.messages->peers()) peers.insert(peer);
      communicator_.give_up(number_, peers);
    } catch (const std::bad_alloc&) {  // they are not told
    }
  }

  Communicator& communicator_;
  Index number_;
  std::mutex mutex_;
  std::vector<Stage> stages_;
  std::atomic<std::size_t> at_ = 0;  ///< the stage that a move is in
  /// What arrives from a rank otherwise than by tasks of this one.
  struct Sender {
    int rank;
    std::vector<std::uint32_t> pieces;
    bool told = false;
  };
  std::vector<std::vector<Sender>> senders_;  ///< by stage, where arrivals are asked for
  std::size_t told_stages_ = 0;               ///< all that has arrived in them has been told
  bool blocking_ = false;
  std::exception_ptr failure_;  // in the middle of a move: there is no going on
  bool active_ = false, told_ = false;
  Helpers helpers_{[this] { return stages_[at_].node.run_next(); }};  // last: they use the others
};

class MpiMover final : public Mover {
 public:
  MpiMover(std::shared_ptr<Communicator> communicator, Index number, std::vector<Stage> stages, Index moved_bytes,
           std::vector<BoundMemory> memory, std::string obstacle, bool threaded, int threads)
      : Mover(std::move(memory)),
        communicator_(std::move(communicator)),
        number_(number),
        moves_(std::make_shared<Moves>(*communicator_, number, std::move(stages), threads)),
        patience_(*communicator_),
        moved_bytes_(moved_bytes),
        obstacle_(std::move(obstacle)),
        threaded_(threaded),
        pokes_(!threaded || threads_may_call_mpi()),
        sleeps_(within_node() && moves_->threads() == 1) {}

  ~MpiMover() override {
    if (moves_->abandon()) keep_memory_for_good();
    land();
  }

  Index number() const { return number_; }
  bool within_node() const {
    return std::none_of(moves_->stages().begin(), moves_->stages().end(),
                        [](const Stage& stage) { return stage.messages.messages != nullptr; });
  }
  /// Nobody but who moves reads or writes private memory; messages would.
  std::optional<Index> leave_memory() override {
    if (!within_node()) return std::nullopt;
    return *Mover::leave_memory() + moves_->leave_memory();
  }
  bool memory_is_there() const {
    return std::all_of(moves_->stages().begin(), moves_->stages().end(),
                       [](const Stage& stage) { return stage.node.memory_is_there(); });
  }
  Index workspace_bytes() const override {
    Index bytes = Index(sizeof *this + sizeof(Moves)) + kept_plans_bytes();
    for (const auto& [node, messages, shares] : moves_->stages())
      bytes += node.workspace_bytes() + (messages.messages ? messages.messages->workspace_bytes() : 0);
    return bytes;
  }
  Index staging_bytes() const override {
    Index bytes = 0;
    for (const auto& [node, messages, shares] : moves_->stages())
      bytes += node.staging_bytes() + (messages.messages ? messages.messages->staging_bytes() : 0);
    return bytes;
  }
  Index moved_bytes() const override { return moved_bytes_; }
  std::string describe() const override {
    NodeWork::Bytes node;
    Index sent = 0, received = 0;
    for (const auto& stage : moves_->stages()) {
      node.add(stage.node.bytes());
      sent += stage.messages.sent_bytes, received += stage.messages.received_bytes;
    }
    std::string text;
    auto line = [&](Index bytes, const char* what) {
      if (bytes > 0) text += (text.empty() ? "" : "\n") + std::to_string(bytes) + " bytes " + what;
    };
    line(node.local, "copied within the process");
    line(node.pulled, "read straight from the arrays of processes on this node");
    line(node.pushed, "written straight into the arrays of processes on this node");
    line(node.sent, "sent through shared-memory rings");
    line(node.received, "received through shared-memory rings");
    line(sent, "sent in MPI messages");
    line(received, "received in MPI messages");
    if (text.empty()) text = "nothing to move in this process";
    if (moves_->threads() > 1) text += "\ncopies by " + std::to_string(moves_->threads()) + " threads";
    if (const auto stages = moves_->stages().size(); stages > 1)
      text += "\nin " + std::to_string(stages) + " phases, a dimension at a time";
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
    auto step = moves_->advance();
    const auto look = [&] { return step = moves_->advance(), step.progress || step.done; };
    while (!step.done) {
      if (step.progress) {
        patience_.progress(), spins = 0;
      } else if (help_others()) {
        spins = 0;
      } else if (++spins <= patient_spins && !communicator_->crowded()) {
        relax();
      } else {
        look_for_the_lost();
        step_aside(look);
        if (step.progress || step.done) continue;
      }
      look();
    }
    land();
  }
  bool expect(Arrivals& arrivals) override { return moves_->expect(arrivals), true; }
  void tell(Arrivals& arrivals) override { moves_->tell(arrivals); }
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
  template <class Look>
  void step_aside(Look&& look) {
    if (!sleeps_) return step_aside();  // nobody wakes it for MPI's messages, nor for what its helpers have copied
    if (pokes_) communicator_->poke();
    communicator_->step_aside(look);
  }

  std::shared_ptr<Communicator> communicator_;
  Index number_;
  std::shared_ptr<Moves> moves_;
  Patience patience_;
  Index moved_bytes_;
  std::string obstacle_;
  bool threaded_, pokes_, sleeps_, flying_ = false;
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

std::unique_ptr<Mover> make_mpi_mover(std::shared_ptr<Communicator> communicator, Index number,
                                      std::vector<Stage> stages, Index moved_bytes, std::vector<BoundMemory> memory,
                                      std::string obstacle, bool threaded, int threads) {
  return std::make_unique<MpiMover>(std::move(communicator), number, std::move(stages), moved_bytes, std::move(memory),
                                    std::move(obstacle), threaded, threads);
}

bool all_bring(CommHandle comm, const Mover* mover) {
  const auto communicator = Communicator::of(comm);
  if (communicator->node_size() != communicator->size()) return false;
  const auto* ours = dynamic_cast<const MpiMover*>(mover);
  const Index number = ours && ours->memory_is_there() ? ours->number() : 0;
  Submission mine;
  mine.facts = [] { return Facts{{"call", "a redistribution"}}; };
  const auto agreed = agree(*communicator, mine, {number, -number});
  return agreed[0] > 0 && agreed[0] == -agreed[1];
}

}  // namespace longshore::mpi

/// The `mpi` engine: binds a plan to the parts of all processes of a communicator and moves it.
#include <sched.h>

#include "movers/mpi/agreement.hpp"
#include "movers/mpi/messages.hpp"
#include "movers/mpi/node_traffic.hpp"

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
  MpiMover(std::shared_ptr<Communicator> communicator, Index moved_bytes, std::vector<Part> held)
      : communicator_(std::move(communicator)), moved_bytes_(moved_bytes), held_(std::move(held)) {}

  ~MpiMover() override {
    // Destroyed in flight: receives are taken back. The rest is left to MPI; what it may still read is kept.
    if (active_ && messages_ && mpi_alive()) messages_->abandon();
  }

  void start() override {
    if (active_) throw Error(ErrorKind::argument, "this move has been started already: wait() for it first");
    active_ = true;
    node_->start();
    if (messages_) messages_->start();
  }

  bool test() override {
    if (!active_) return true;
    bool progress = messages_ && messages_->advance();
    progress |= node_->advance();
    if (finished()) return true;
    if (!progress) step_aside();
    return false;
  }

  void wait() override {
    int spins = 0;
    while (active_ && !finished()) {
      bool progress = messages_ && messages_->advance();
      progress |= node_->advance();
      if (progress) {
        spins = 0;
      } else if (++spins > patient_spins || communicator_->crowded()) {
        step_aside();
      } else {
        relax();
      }
    }
  }

  Index workspace_bytes() const override { return node_->ring_bytes() + (messages_ ? messages_->staging_bytes() : 0); }
  Index moved_bytes() const override { return moved_bytes_; }
  std::string describe() const override {
    std::string text;
    node_->describe(text);
    auto line = [&](Index bytes, const char* what) {
      if (bytes > 0) text += (text.empty() ? "" : "\n") + std::to_string(bytes) + " bytes " + what;
    };
    line(message_out_, "sent in MPI messages");
    line(message_in_, "received in MPI messages");
    return text.empty() ? "nothing to move in this process" : text;
  }

 private:
  friend std::unique_ptr<Mover> longshore::mpi::bind(const MotionPlan&, CommHandle, std::vector<Part>,
                                                     std::vector<Part>, const Options&);
  bool finished() {
    if (!active_) return true;
    if (!node_->done() || (messages_ && !messages_->done())) return false;
    active_ = false;
    return true;
  }
  void step_aside() {
    communicator_->poke();  // somebody may need our MPI library to finish another communication
    sched_yield();
  }

  std::shared_ptr<Communicator> communicator_;
  Index moved_bytes_, message_out_ = 0, message_in_ = 0;
  std::vector<Part> held_;  // keeps the arrays alive
  std::unique_ptr<NodeTraffic> node_;
  std::unique_ptr<Messages> messages_;
  bool active_ = false;
};

std::string describe(const MotionPlan& plan, const Options& options) {
  auto shape = [](const Layout& layout) {
    std::string text;
    for (const Index n : layout.shape()) text += (text.empty() ? "" : "x") + std::to_string(n);
    return text;
  };
  std::string text = shape(plan.source()) + " elements of " + std::to_string(plan.element_bytes()) + " bytes";
  if (!options.element.empty()) text += " (" + options.element + ")";
  text += " from " + plan.source().to_string() + " to " + plan.destination().to_string();
  bool permuted = false;
  for (std::size_t d = 0; d < plan.axes().size(); ++d) permuted |= plan.axes()[d] != d;
  if (permuted) {
    text += ", axes";
    for (const auto axis : plan.axes()) text += " " + std::to_string(axis);
  }
  if (!options.combine.is_copy()) {
    auto scalar = [](const ScalarBytes& bytes) {
      std::string hex;
      for (const auto b : bytes) hex += "0123456789abcdef"[int(b) >> 4], hex += "0123456789abcdef"[int(b) & 15];
      return hex;
    };
    text += ", " + std::string(element_name(options.combine.type())) + " alpha 0x" + scalar(options.combine.alpha()) +
            " beta 0x" + scalar(options.combine.beta()) + (options.combine.conjugate() ? " conjugated" : "");
  }
  if (options.placement == Placement::wrap) text += ", placement wrap";
  if (options.node != NodePath::automatic)
    text += std::string(", node path ") + (options.node == NodePath::direct ? "direct"
                                           : options.node == NodePath::ring ? "ring"
                                                                            : "messages");
  return text;
}

Submission submission(const MotionPlan& plan, const Options& options) {
  Submission mine;
  mine.text = describe(plan, options);
  mine.digest = digest_bytes(mine.text.data(), mine.text.size(), plan.digest());
  return mine;
}

void check_options(const MotionPlan& plan, const Options& options) {
  if (options.max_mem < 0)
    throw Error(ErrorKind::argument, "max_mem is " + std::to_string(options.max_mem) + "; it cannot be negative");
  if (!options.combine.is_copy() && element_size(options.combine.type()) != plan.element_bytes())
    throw Error(ErrorKind::type, "alpha and beta are for " + std::string(element_name(options.combine.type())) +
                                     ", the plan's elements have " + std::to_string(plan.element_bytes()) + " bytes");
}

}  // namespace

std::unique_ptr<Mover> bind(const MotionPlan& plan, CommHandle comm, std::vector<Part> sources,
                            std::vector<Part> destinations, const Options& options) {
  const auto communicator = Communicator::of(comm);

  // 1. What we were given: checked here, then compared.
  std::optional<HeldParts> parts;
  auto mine = submission(plan, options);
  mine.failure = attempt([&] {
    check_options(plan, options);
    parts.emplace(plan, Holders{options.placement, communicator->size()}, communicator->rank(), std::move(sources),
                  std::move(destinations));
  });
  const Index unbounded = INT64_MAX;
  const Index max_mem = agree(*communicator, mine, {options.max_mem > 0 ? options.max_mem : unbounded, 0})[0];

  std::vector<Part> held = parts->sources();
  held.insert(held.end(), parts->destinations().begin(), parts->destinations().end());
  auto mover = std::make_unique<MpiMover>(communicator, parts->moved_bytes(), std::move(held));

  // 2. The node: what can be seen of each other's memory. Rings may take half of the memory allowed if messages need
  // some.
  const int tag = communicator->next_tag();
  const Index element = plan.element_bytes();
  auto off_node = [&](const std::vector<HeldMotion>& motions) {
    return std::any_of(motions.begin(), motions.end(),
                       [&](const HeldMotion& m) { return communicator->node_rank_of(m.peer) < 0; });
  };
  const bool rings = options.node == NodePath::automatic || options.node == NodePath::ring;
  const bool both = off_node(parts->outgoing()) || off_node(parts->incoming());
  const Index ring_budget = max_mem == unbounded ? unbounded
                            : both               ? max_mem / 2
                                                 : max_mem - std::min(max_mem, 2 * element);
  // Straight copies are the fastest from the smallest arrays on, although they need two signals and a packet needs one.
  const bool direct = options.node == NodePath::automatic || options.node == NodePath::direct;
  SharedParts shared(*communicator, plan, *parts, direct);
  mover->node_ = std::make_unique<NodeTraffic>(*communicator, plan, *parts, std::move(shared), rings, ring_budget);
  const auto& outgoing = mover->node_->outgoing_left();
  const auto& incoming = mover->node_->incoming_left();

  // 3. Messages: whole where every rank can hold them, else packets that every rank can hold.
  Staging staging;
  const Index limit = max_mem == unbounded ? unbounded : max_mem - mover->node_->ring_bytes();
  if (max_mem != unbounded) {
    const Index directions = (outgoing.empty() ? 0 : 1) + (incoming.empty() ? 0 : 1);
    Index fits = 1, packet = unbounded;
    mine.failure = attempt([&] {
      if (!directions) return;
      fits = whole_staging_bytes(plan, outgoing, incoming, options.combine) <= limit;
      const Index least = directions * element;
      if (fits &&
          limit < least) {  // sent from where it lies and received to where it lies; an element at a time does as well
        packet = element;
        return;
      }
      if (limit < least)
        throw Error(ErrorKind::memory_limit, "max_mem is " + std::to_string(max_mem) +
                                                 " bytes; this move needs at least " +
                                                 std::to_string(least + max_mem - limit));
      const Index slots = limit / directions >= 2 * element ? 2 * directions : directions;
      packet = limit / slots / element * element;
    });
    const auto agreed = agree(*communicator, mine, {fits, packet});
    staging.whole = agreed[0] == 1;
    staging.packet_bytes = agreed[1];
  }
  mine.failure = attempt([&] {
    mover->node_->compile(plan, *parts, options.combine);
    mover->messages_ = make_messages(communicator, tag, plan, outgoing, incoming, options.combine, staging, limit);
    for (const auto& m : outgoing) mover->message_out_ += m.motion.elements * element;
    for (const auto& m : incoming) mover->message_in_ += m.motion.elements * element;
  });
  agree(*communicator, mine);
  return mover;
}

}  // namespace longshore::mpi

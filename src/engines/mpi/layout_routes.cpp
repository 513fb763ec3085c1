#include "engines/mpi/layout_routes.hpp"

#include <algorithm>

#include "engines/mpi/nest_message.hpp"

namespace longshore::mpi {

namespace {

// Copies run in pieces, so that other work gets its turn: small pieces where a peer may wait for a ring meanwhile.
constexpr Index alone_bytes = Index{8} << 20, beside_rings_bytes = Index{256} << 10, most_pieces = 512;

Index bytes_of(const MotionPlan& plan, const HeldMotion& m) {
  return checked_mul(m.motion.elements, plan.element_bytes());
}

CopyProgram::Options unpacking(const MotionPlan& plan, const HeldMotion& m, const Combine& combine) {
  const bool beyond = plan.destination().local_size(m.motion.destination) * plan.element_bytes() >= far_bytes;
  return {beyond ? Stores::streaming : Stores::cached, nullptr, combine};
}

// Straight copies are the fastest from the smallest arrays on, although they need two signals and a packet needs one.
bool direct(const Options& options) { return options.node == NodePath::automatic || options.node == NodePath::direct; }
bool rings(const Options& options) { return options.node == NodePath::automatic || options.node == NodePath::ring; }

}  // namespace

LayoutRoutes::LayoutRoutes(const Communicator& communicator, const MotionPlan& plan, const HeldParts& parts,
                           const Options& options, Index ring_budget, Submission& mine)
    : communicator_(communicator),
      plan_(plan),
      me_(communicator.node_rank()),
      shared_(communicator, plan, parts, direct(options)) {
  std::vector<Index> ring_bytes(std::size_t(communicator.node_size()), 0);
  std::set<int> partners, touchers;
  auto sort = [&](const HeldMotion& m, bool outgoing) {
    auto& left = outgoing ? outgoing_left_ : incoming_left_;
    const int peer = communicator.node_rank_of(m.peer);
    if (peer < 0) return left.push_back(m);
    partners.insert(peer);
    const Carrier carrier = shared_.carrier(m.motion);
    if (carrier == Carrier::ring) {
      if (!rings(options)) return left.push_back(m);
      (outgoing ? ring_out_ : ring_in_).push_back(m);
      if (!outgoing) ring_bytes[std::size_t(peer)] += bytes_of(plan, m);
    } else if ((carrier == Carrier::pull) == outgoing) {
      touchers.insert(peer);
    }
  };
  // Who fails goes on with nothing to move, and says so when all agree: nobody waits for it.
  auto here = [&](auto&& work) {
    if (!mine.failure) mine.failure = attempt(work);
    if (mine.failure) ring_out_.clear(), ring_in_.clear(), partners.clear(), touchers.clear();
  };
  here([&] {
    for (const auto& m : parts.outgoing()) sort(m, true);
    for (const auto& m : parts.incoming()) sort(m, false);
  });
  touchers_.assign(touchers.begin(), touchers.end());
  obstacle_ = shared_.obstacle();

  if (communicator.node_size() > 1)
    control_ = std::make_unique<ControlBlocks>(communicator, ring_bytes, partners, plan.element_bytes(), ring_budget);
  if (!control_ || !control_->usable()) {
    // Neither flags nor rings: all through MPI.
    if (control_) obstacle_ = control_->obstacle();
    ring_out_.clear(), ring_in_.clear(), touchers_.clear(), control_.reset();
    shared_ = SharedParts(communicator, plan, parts, false);
    here([&] { outgoing_left_ = parts.outgoing(), incoming_left_ = parts.incoming(); });
    return;
  }
  auto without_ring = [&](std::vector<HeldMotion>& motions, std::vector<HeldMotion>& left, bool outgoing) {
    const auto first = std::stable_partition(motions.begin(), motions.end(), [&](const HeldMotion& m) {
      const int peer = communicator.node_rank_of(m.peer);
      return (outgoing ? control_->of(peer).ring(me_) : control_->mine().ring(peer)).slots > 0;
    });
    left.insert(left.end(), first, motions.end());
    motions.erase(first, motions.end());
    std::stable_sort(left.begin(), left.end(), [](const auto& a, const auto& b) { return a.peer < b.peer; });
  };
  here([&] { without_ring(ring_out_, outgoing_left_, true), without_ring(ring_in_, incoming_left_, false); });
}

NodeTraffic LayoutRoutes::compile(const HeldParts& parts, const Combine& combine) {
  NodeWork work;
  work.touchers = touchers_;
  work.views = shared_.views();
  compile_copies(work, parts, combine);
  compile_rings(work, combine);
  return NodeTraffic(me_, std::move(control_), std::move(work));
}

void LayoutRoutes::compile_copies(NodeWork& work, const HeldParts& parts, const Combine& combine) const {
  auto touch = [&](Index layout_rank, std::set<int>& touched) {
    const int process = parts.holders().of(layout_rank);
    if (process == parts.me()) return false;
    touched.insert(communicator_.node_rank_of(process));
    return true;
  };
  const Index piece = ring_out_.empty() && ring_in_.empty() ? alone_bytes : beside_rings_bytes;
  for (auto& copy : shared_.tasks(plan_, parts, combine, std::max(piece, parts.moved_bytes() / most_pieces))) {
    std::set<int> touched;
    bool pulls = false, pushes = false;
    for (const Index rank : copy.sources) pulls |= touch(rank, touched);
    for (const Index rank : copy.destinations) pushes |= touch(rank, touched);
    (pushes ? work.bytes.pushed : pulls ? work.bytes.pulled : work.bytes.local) += copy.bytes;
    work.tasks.push_back({std::move(copy), {touched.begin(), touched.end()}});
  }
}

void LayoutRoutes::compile_rings(NodeWork& work, const Combine& combine) const {
  auto of_one_peer = [](const std::vector<HeldMotion>& motions, auto&& f) {
    for (std::size_t first = 0, last = 0; first < motions.size(); first = last) {
      while (last < motions.size() && motions[last].peer == motions[first].peer) ++last;
      f(motions[first].peer, motions.begin() + Index(first), motions.begin() + Index(last));
    }
  };
  of_one_peer(ring_out_, [&](int process, auto first, auto last) {
    const auto block = control_->of(communicator_.node_rank_of(process));
    const RingShape shape = block.ring(me_);
    std::vector<std::unique_ptr<PeerMessage>> messages;
    for (; first != last; ++first) {
      work.bytes.sent += bytes_of(plan_, *first);
      messages.push_back(tiled_nest_message(plan_.relation(first->motion), shape.slot_bytes,
                                            PacketedMessage::Halves::assembly, {}, first->data));
    }
    work.senders.emplace_back(Ring(block.segment(), shape), communicator_.node_rank_of(process), std::move(messages));
  });
  of_one_peer(ring_in_, [&](int process, auto first, auto last) {
    const RingShape shape = control_->mine().ring(communicator_.node_rank_of(process));
    std::vector<std::unique_ptr<PeerMessage>> messages;
    for (; first != last; ++first) {
      work.bytes.received += bytes_of(plan_, *first);
      messages.push_back(tiled_nest_message(plan_.relation(first->motion), shape.slot_bytes,
                                            PacketedMessage::Halves::disassembly, unpacking(plan_, *first, combine),
                                            first->data));
    }
    work.receivers.emplace_back(Ring(control_->mine().segment(), shape), communicator_.node_rank_of(process),
                                std::move(messages));
  });
}

std::vector<PeerEnd> messages_of(const MotionPlan& plan, const std::vector<HeldMotion>& motions, bool outgoing,
                                 const Combine& combine, std::optional<Index> capacity) {
  const auto halves = outgoing ? PacketedMessage::Halves::assembly : PacketedMessage::Halves::disassembly;
  std::vector<PeerEnd> ends;
  for (const auto& m : motions) {
    const auto relation = plan.relation(m.motion);
    if (relation.empty()) continue;
    ends.push_back({m.peer, nest_message(relation, capacity.value_or(relation.bytes()), halves,
                                         unpacking(plan, m, combine), m.data)});
  }
  return ends;
}

}  // namespace longshore::mpi

#include "movers/mpi/node_traffic.hpp"

#include <algorithm>

namespace longshore::mpi {

namespace {

// Copies run in pieces, so that other work gets its turn: small pieces where a peer may wait for a ring meanwhile.
constexpr Index alone_bytes = Index{8} << 20, beside_rings_bytes = Index{256} << 10, most_pieces = 512;

Index bytes_of(const MotionPlan& plan, const HeldMotion& m) {
  return checked_mul(m.motion.elements, plan.element_bytes());
}

}  // namespace

NodeTraffic::NodeTraffic(const Communicator& communicator, const MotionPlan& plan, const HeldParts& parts,
                         SharedParts shared, bool rings, Index ring_budget)
    : communicator_(communicator), me_(communicator.node_rank()), shared_(std::move(shared)) {
  std::vector<Index> ring_bytes(std::size_t(communicator.node_size()), 0);
  std::set<int> partners, touchers;
  auto sort = [&](const HeldMotion& m, bool outgoing) {
    auto& left = outgoing ? outgoing_left_ : incoming_left_;
    const int peer = communicator.node_rank_of(m.peer);
    if (peer < 0) return left.push_back(m);
    const Carrier carrier = shared_.carrier(m.motion);
    if (carrier == Carrier::ring) {
      if (!rings) return left.push_back(m);
      (outgoing ? ring_out_ : ring_in_).push_back(m);
      if (!outgoing) ring_bytes[std::size_t(peer)] += bytes_of(plan, m);
    } else if ((carrier == Carrier::pull) == outgoing) {
      touchers.insert(peer);
    }
    partners.insert(peer);
  };
  for (const auto& m : parts.outgoing()) sort(m, true);
  for (const auto& m : parts.incoming()) sort(m, false);
  touchers_.assign(touchers.begin(), touchers.end());

  if (communicator.node_size() > 1)
    control_ = std::make_unique<ControlBlocks>(communicator, ring_bytes, partners, plan.element_bytes(), ring_budget);
  if (!control_ || !control_->usable()) {
    // Neither flags nor rings: all through MPI.
    outgoing_left_ = parts.outgoing(), incoming_left_ = parts.incoming();
    ring_out_.clear(), ring_in_.clear(), touchers_.clear(), control_.reset();
    shared_ = SharedParts(communicator, plan, parts, false);
    return;
  }
  mine_ = control_->mine();  // none where there is no partner
  auto without_ring = [&](std::vector<HeldMotion>& motions, std::vector<HeldMotion>& left, bool outgoing) {
    const auto first = std::stable_partition(motions.begin(), motions.end(), [&](const HeldMotion& m) {
      const int peer = communicator.node_rank_of(m.peer);
      return (outgoing ? control_->of(peer).ring(me_) : mine_.ring(peer)).slots > 0;
    });
    left.insert(left.end(), first, motions.end());
    motions.erase(first, motions.end());
    std::stable_sort(left.begin(), left.end(), [](const auto& a, const auto& b) { return a.peer < b.peer; });
  };
  without_ring(ring_out_, outgoing_left_, true);
  without_ring(ring_in_, incoming_left_, false);
}

void NodeTraffic::compile(const MotionPlan& plan, const HeldParts& parts, const Combine& combine) {
  compile_copies(plan, parts, combine);
  compile_rings(plan, combine);
}

void NodeTraffic::compile_copies(const MotionPlan& plan, const HeldParts& parts, const Combine& combine) {
  std::map<int, std::size_t> partner_of;
  auto touch = [&](Index layout_rank, std::set<std::size_t>& touched) {
    const int process = parts.holders().of(layout_rank);
    if (process == parts.me()) return false;
    const int peer = communicator_.node_rank_of(process);
    const auto [place, fresh] = partner_of.try_emplace(peer, partners_.size());
    if (fresh) partners_.push_back({control_->of(peer)});
    touched.insert(place->second);
    return true;
  };
  const Index piece = ring_out_.empty() && ring_in_.empty() ? alone_bytes : beside_rings_bytes;
  for (auto& copy : shared_.tasks(plan, parts, combine, std::max(piece, parts.moved_bytes() / most_pieces))) {
    Task task{std::move(copy), {}};
    std::set<std::size_t> touched;
    bool pulls = false, pushes = false;
    for (const Index rank : task.copy.sources) pulls |= touch(rank, touched);
    for (const Index rank : task.copy.destinations) pushes |= touch(rank, touched);
    task.partners.assign(touched.begin(), touched.end());
    for (const auto p : task.partners) ++partners_[p].tasks;
    (pushes ? pushed_bytes_ : pulls ? pulled_bytes_ : local_bytes_) += task.copy.bytes;
    tasks_.push_back(std::move(task));
  }
  // Foreign ones first: others wait for them.
  std::stable_partition(tasks_.begin(), tasks_.end(), [](const Task& task) { return !task.partners.empty(); });
}

void NodeTraffic::compile_rings(const MotionPlan& plan, const Combine& combine) {
  auto of_one_peer = [](const std::vector<HeldMotion>& motions, auto&& f) {
    for (std::size_t first = 0, last = 0; first < motions.size(); first = last) {
      while (last < motions.size() && motions[last].peer == motions[first].peer) ++last;
      f(motions[first].peer, motions.begin() + Index(first), motions.begin() + Index(last));
    }
  };
  of_one_peer(ring_out_, [&](int process, auto first, auto last) {
    const auto block = control_->of(communicator_.node_rank_of(process));
    const RingShape shape = block.ring(me_);
    std::vector<RingMessage> messages;
    for (; first != last; ++first) {
      sent_bytes_ += bytes_of(plan, *first);
      messages.push_back(ring_message(plan.relation(first->motion), shape.slot_bytes, PacketedMessage::Halves::assembly,
                                      {}, first->data));
    }
    senders_.emplace_back(Ring(block.segment(), shape), std::move(messages));
  });
  of_one_peer(ring_in_, [&](int process, auto first, auto last) {
    const RingShape shape = mine_.ring(communicator_.node_rank_of(process));
    std::vector<RingMessage> messages;
    for (; first != last; ++first) {
      received_bytes_ += bytes_of(plan, *first);
      const bool beyond =
          plan.destination().local_size(first->motion.destination) * plan.element_bytes() >= far_bytes;
      messages.push_back(ring_message(plan.relation(first->motion), shape.slot_bytes,
                                      PacketedMessage::Halves::disassembly,
                                      {beyond ? Stores::streaming : Stores::cached, nullptr, combine}, first->data));
    }
    receivers_.emplace_back(Ring(mine_.segment(), shape), std::move(messages));
  });
}

void NodeTraffic::start() {
  ++move_;
  awaited_ = touchers_;
  for (auto& task : tasks_) task.run = false;
  for (auto& p : partners_) p.left = p.tasks, p.ready = false;
  first_task_ = 0, tasks_done_ = tasks_.empty();
  if (mine_) mine_.ready().value.store(move_, std::memory_order_release);
  for (auto& sender : senders_) sender.restart();
  for (auto& receiver : receivers_) receiver.restart();
  rings_done_ = senders_.empty() && receivers_.empty();
  // The first packet goes at once, so that the other side finds it.
  for (auto& sender : senders_) sender.advance();
}

bool NodeTraffic::runnable(const Task& task) {
  for (const auto p : task.partners) {
    auto& partner = partners_[p];
    if (!partner.ready) partner.ready = partner.block.ready().value.load(std::memory_order_acquire) >= move_;
    if (!partner.ready) return false;
  }
  return true;
}

void NodeTraffic::finish(const Task& task) {
  for (const auto p : task.partners)
    if (--partners_[p].left == 0) partners_[p].block.done(me_).value.store(move_, std::memory_order_release);
}

bool NodeTraffic::run_task() {
  bool before = true;
  for (std::size_t i = first_task_; i < tasks_.size(); ++i) {
    auto& task = tasks_[i];
    if (!task.run && runnable(task)) {
      task.copy.run();
      task.run = true;
      finish(task);
      if (before) first_task_ = i + 1;
      tasks_done_ = first_task_ == tasks_.size();
      return true;
    }
    if (before && task.run)
      first_task_ = i + 1;
    else
      before = false;
  }
  tasks_done_ = first_task_ == tasks_.size();
  return false;
}

bool NodeTraffic::behind_arrivals() const {
  Index packets = 0, arrived = 0;
  for (const auto& receiver : receivers_) packets += receiver.packets(), arrived += receiver.passed();
  return Wide(first_task_) * packets < Wide(arrived) * Index(tasks_.size());
}

bool NodeTraffic::advance() {
  bool progress = false;
  if (!rings_done_) {
    rings_done_ = true;
    for (auto& receiver : receivers_) progress |= receiver.advance(), rings_done_ &= receiver.done();
    for (auto& sender : senders_) progress |= sender.advance(), rings_done_ &= sender.done();
  }
  // Copies fill the time in which no ring has anything to do. Otherwise they keep step with what arrives: both go through the
  // destination in its order, so that lines which belong to both are still in cache when the other comes.
  if (!tasks_done_ && (!progress || behind_arrivals())) progress |= run_task();
  if (!awaited_.empty()) {
    const auto finished = std::remove_if(awaited_.begin(), awaited_.end(), [this](int peer) {
      return mine_.done(peer).value.load(std::memory_order_acquire) >= move_;
    });
    progress |= finished != awaited_.end();
    awaited_.erase(finished, awaited_.end());
  }
  return progress;
}

void NodeTraffic::describe(std::string& text) const {
  auto line = [&](Index bytes, const char* what) {
    if (bytes > 0) text += (text.empty() ? "" : "\n") + std::to_string(bytes) + " bytes " + what;
  };
  line(local_bytes_, "copied within the process");
  line(pulled_bytes_, "read straight from the arrays of processes on this node");
  line(pushed_bytes_, "written straight into the arrays of processes on this node");
  line(sent_bytes_, "sent through shared-memory rings");
  line(received_bytes_, "received through shared-memory rings");
}

}  // namespace longshore::mpi

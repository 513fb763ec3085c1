#include "engines/mpi/node_traffic.hpp"

#include <algorithm>
#include <map>

namespace longshore::mpi {

namespace {

/// So many looks in vain a process waits for who is behind, before it takes more from the others.
constexpr int most_looks = 64;

/// Whether it has come further, by a packet or more, of what it has to bring.
bool is_ahead(const RingReceiver& one, const RingReceiver& other) {
  return Wide(one.passed() - 1) * other.packets() > Wide(other.passed()) * one.packets();
}

}  // namespace

NodeTraffic::NodeTraffic(int me, std::shared_ptr<ControlBlocks> control, NodeWork work)
    : me_(me),
      control_(std::move(control)),
      views_(std::move(work.views)),
      shown_(std::move(work.shown)),
      senders_(std::move(work.senders)),
      receivers_(std::move(work.receivers)),
      in_step_(work.in_step),
      along_(std::move(work.along)),
      accessors_(std::move(work.accessors)),
      writers_(std::move(work.writers)),
      bytes_(work.bytes),
      workspace_bytes_(work.workspace_bytes) {
  if (control_) mine_ = control_->mine();  // none where there is no partner
  std::map<int, std::size_t> partner_of;
  for (auto& given : work.tasks) {
    Task task{std::move(given.copy), {}, given.share};
    for (const int peer : given.peers) {
      const auto [place, fresh] = partner_of.try_emplace(peer, partners_.size());
      if (fresh) partners_.push_back({peer, control_->of(peer)});
      task.partners.push_back(place->second);
      ++partners_[place->second].tasks;
    }
    tasks_.push_back(std::move(task));
  }
  std::vector<const CopyTask*> copies;
  for (const auto& task : tasks_) copies.push_back(&task.copy);
  queue_ = std::make_unique<TaskQueue>(nodes_of(copies, memory_nodes()), memory_nodes());
  for (const auto& task : tasks_) workspace_bytes_ += Index(sizeof task) + task.copy.workspace_bytes();
  for (const auto& sender : senders_) workspace_bytes_ += sender.workspace_bytes();
  for (const auto& receiver : receivers_) workspace_bytes_ += receiver.workspace_bytes();
  if (control_) workspace_bytes_ += control_->held_bytes();
}

void NodeTraffic::start(const Communicator& communicator, bool blocking, Helpers* helpers) {
  ++move_;
  helpers_ = helpers;
  queue_->restart();
  unfinished_.clear();
  awaited_ = accessors_;
  for (auto& task : tasks_) task.offered = task.run = task.told = false;
  for (auto& p : partners_) p.left = p.tasks, p.ready = false;
  offered_task_ = run_tasks_ = last_task_ = told_task_ = 0, tasks_done_ = tasks_.empty(), told_along_ = 0;
  if (mine_) {
    mine_.ready().value.store(move_, std::memory_order_release);
    for (const int peer : accessors_) communicator.wake(peer);
  }
  for (auto& sender : senders_) sender.restart(blocking);
  for (auto& receiver : receivers_) receiver.restart();
  rings_done_ = senders_.empty() && receivers_.empty();
  if (helpers_) offer();
  if (blocking) return;
  for (auto& sender : senders_)
    while (sender.advance()) communicator.wake(sender.peer());
}

bool NodeTraffic::runnable(const Task& task) {
  for (const auto p : task.partners) {
    auto& partner = partners_[p];
    if (!partner.ready) partner.ready = partner.block.ready().value.load(std::memory_order_acquire) >= move_;
    if (!partner.ready) return false;
  }
  return true;
}

/// A partner waits until this is done with its arrays, so one that has left has let go of them meanwhile.
void NodeTraffic::finish(const Task& task, const Communicator& communicator) {
  for (const auto p : task.partners) {
    auto& partner = partners_[p];
    if (--partner.left > 0) continue;
    std::atomic_thread_fence(std::memory_order_acquire);  // what was copied was there before this look
    if (partner.block.left().value.load(std::memory_order_acquire) != 0)
      throw given_up(communicator, communicator.world_rank_of(partner.peer));
    partner.block.done(me_).store(move_, std::memory_order_release);
    communicator.wake(partner.peer);
  }
}

/// The first that may be run; where there are helpers, all of them.
void NodeTraffic::offer() {
  bool all_before = true, any = false;
  for (std::size_t i = offered_task_; i < tasks_.size() && (helpers_ || !any); ++i) {
    auto& task = tasks_[i];
    if (!task.offered && runnable(task)) {
      task.offered = any = true;
      unfinished_.push_back(i);
      queue_->add(i);
    }
    all_before &= task.offered;
    if (all_before) offered_task_ = i + 1;
  }
  if (any && helpers_) helpers_->call();
}

bool NodeTraffic::run_next() {
  const auto task = queue_->take();
  if (!task) return false;
  try {
    tasks_[*task].copy.run();
  } catch (...) {
    queue_->complete(*task);  // leave() waits for what has been taken
    throw;
  }
  queue_->complete(*task);
  return true;
}

bool NodeTraffic::run_task(const Communicator& communicator) {
  if (helpers_ || unfinished_.empty()) offer();
  bool progress = run_next();
  const auto finished = [&](std::size_t i) {
    if (!queue_->done(i)) return false;
    tasks_[i].run = progress = true;
    last_task_ = std::max(last_task_, i + 1), ++run_tasks_;
    finish(tasks_[i], communicator);
    return true;
  };
  unfinished_.erase(std::remove_if(unfinished_.begin(), unfinished_.end(), finished), unfinished_.end());
  tasks_done_ = run_tasks_ == tasks_.size();
  return progress;
}

/// Of those from whom something is still to come; null: none.
const RingReceiver* NodeTraffic::furthest_behind() const {
  const RingReceiver* last = nullptr;
  for (const auto& receiver : receivers_)
    if (!receiver.done() && (!last || is_ahead(*last, receiver))) last = &receiver;
  return last;
}

bool NodeTraffic::behind_arrivals() const {
  Index packets = 0, arrived = 0;
  for (const auto& receiver : receivers_) packets += receiver.packets(), arrived += receiver.passed();
  return Wide(run_tasks_) * packets < Wide(arrived) * Index(tasks_.size());
}

bool NodeTraffic::advance(const Communicator& communicator) {
  bool progress = false;
  if (!rings_done_) {
    rings_done_ = true;
    const auto advance = [&](auto& end) {
      if (end.advance()) progress = true, communicator.wake(end.peer());
      rings_done_ &= end.done();
    };
    // A line that several send to is still in cache when the next part of it comes, if nobody is far ahead.
    const RingReceiver* const last = in_step_ && looks_ < most_looks ? furthest_behind() : nullptr;
    for (auto& receiver : receivers_)
      if (last && is_ahead(receiver, *last))
        rings_done_ &= receiver.done();
      else
        advance(receiver);
    std::for_each(senders_.begin(), senders_.end(), advance);
  }
  // Copies fill the time in which no ring has anything to do. Otherwise they keep step with what arrives: both go
  // through the destination in its order, so that lines which belong to both are still in cache when the other comes.
  if (!tasks_done_ && (!progress || behind_arrivals())) progress |= run_task(communicator);
  if (!awaited_.empty()) {
    const auto finished = std::remove_if(awaited_.begin(), awaited_.end(), [this](int peer) {
      return mine_.done(peer).load(std::memory_order_acquire) >= move_;
    });
    progress |= finished != awaited_.end();
    awaited_.erase(finished, awaited_.end());
  }
  looks_ = progress ? 0 : std::min(looks_ + 1, most_looks);
  return progress;
}

std::vector<Awaited> NodeTraffic::awaited(const Communicator& communicator) const {
  std::set<int> peers(awaited_.begin(), awaited_.end());
  for (const auto& partner : partners_)
    if (partner.left > 0 && !partner.ready) peers.insert(partner.peer);
  for (const auto& sender : senders_)
    if (!sender.done()) peers.insert(sender.peer());
  for (const auto& receiver : receivers_)
    if (!receiver.done()) peers.insert(receiver.peer());
  std::vector<Awaited> awaited;
  for (const int peer : peers)
    awaited.push_back(
        {communicator.world_rank_of(peer), control_->of(peer).left().value.load(std::memory_order_acquire) != 0});
  return awaited;
}

void NodeTraffic::expect(Arrivals& arrivals, std::size_t first) const {
  for (const auto& task : tasks_)
    for (std::size_t part = 0; part < task.copy.parts(); ++part)
      for (const auto motion : task.copy.motions(part)) arrivals.expect(first + task.share, motion);
  for (const auto& along : along_) arrivals.expect(first + along.share, along.motion);
}

void NodeTraffic::tell(Arrivals& arrivals, std::size_t first) {
  std::atomic_thread_fence(std::memory_order_acquire);  // what was copied was there before this look
  const auto lost = [this](std::size_t p) {  // its arrays may hold anything since; not so once all tasks are done
    return partners_[p].left > 0 && partners_[p].block.left().value.load(std::memory_order_acquire) != 0;
  };
  for (std::size_t i = told_task_; i < last_task_; ++i) {
    auto& task = tasks_[i];
    if (!task.run || task.told || std::any_of(task.partners.begin(), task.partners.end(), lost)) continue;
    for (std::size_t part = 0; part < task.copy.parts(); ++part)
      for (const auto motion : task.copy.motions(part)) arrivals.land(first + task.share, motion);
    task.told = true;
  }
  while (told_task_ < last_task_ && tasks_[told_task_].told) ++told_task_;
  const auto here = [this](const NodeWork::Along& along) {
    return std::all_of(receivers_.begin(), receivers_.end(),
                       [&](const auto& receiver) { return receiver.peer() != along.peer || receiver.done(); });
  };
  for (; told_along_ < along_.size() && here(along_[told_along_]); ++told_along_)
    arrivals.land(first + along_[told_along_].share, along_[told_along_].motion);
}

void NodeTraffic::add_missing(const Communicator& communicator, std::set<int>& ranks) const {
  for (const auto& receiver : receivers_)
    if (!receiver.done()) ranks.insert(communicator.world_rank_of(receiver.peer()));
  for (const int peer : awaited_)
    if (std::binary_search(writers_.begin(), writers_.end(), peer)) ranks.insert(communicator.world_rank_of(peer));
}

bool NodeTraffic::has_left(const Communicator& communicator, int rank) const {
  const int peer = communicator.node_rank_of(rank);
  return peer >= 0 && control_ && control_->of(peer) && control_->of(peer).left().value.load(std::memory_order_acquire);
}

void NodeTraffic::leave() {
  if (!helpers_ || !helpers_->gone()) queue_->close();
  if (!mine_ || !control_->is_confirmed()) return;
  mine_.left().value.store(1, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_release);  // before anything that is done to the arrays from now on
}

Index NodeTraffic::leave_memory() {
  std::sort(shown_.begin(), shown_.end());
  shown_.erase(std::unique(shown_.begin(), shown_.end()), shown_.end());
  Index held = 0;
  std::erase_if(shown_, [&](const std::shared_ptr<const Memory>& memory) {
    if (memory.use_count() == 1) {
      held += memory->bytes();
      return false;
    }
    left_.push_back(memory);
    return true;
  });
  return held;
}

bool NodeTraffic::memory_is_there() const {
  return std::none_of(left_.begin(), left_.end(), [](const auto& memory) { return memory.expired(); });
}

}  // namespace longshore::mpi

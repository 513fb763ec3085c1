/// What ranks do that carry out a plan, or loops over remote strips.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "longshore/model/simulate.hpp"

namespace longshore {

namespace {

std::size_t checked_ranks(Index ranks) {
  if (ranks < 1 || ranks > RankSteps::most_ranks)
    throw Error(ErrorKind::argument, "steps of " + std::to_string(ranks) + " ranks; there are 1 to " +
                                         std::to_string(RankSteps::most_ranks));
  return std::size_t(ranks);
}

void check_steps(Wide steps) {
  if (steps > RankSteps::most_steps)
    throw Error(ErrorKind::memory_limit, "more than " + std::to_string(RankSteps::most_steps) +
                                             " steps of ranks; there would be too many to keep");
}

/// What a rank sends: bytes by peers, and what stays.
struct Outgoing {
  Index peer, bytes;
};

/// One message a peer. The rank begins with those after itself, so that not all begin with the same one.
void add_exchange(RankSteps& steps, Index rank, std::span<Outgoing> outgoing) {
  std::sort(outgoing.begin(), outgoing.end(), [&](const Outgoing& a, const Outgoing& b) {
    return std::pair(a.peer < rank, a.peer) < std::pair(b.peer < rank, b.peer);
  });
  steps.of(rank);
  Index local = 0;
  for (std::size_t i = 0; i < outgoing.size();) {
    const Index peer = outgoing[i].peer;
    Index bytes = 0;
    for (; i < outgoing.size() && outgoing[i].peer == peer; ++i) bytes = checked_add(bytes, outgoing[i].bytes);
    if (peer == rank)
      local = bytes;
    else
      steps.send(peer, bytes);
  }
  if (local > 0) steps.copy(local);
  steps.receive(RankSteps::all);
}

}  // namespace

RankSteps::RankSteps(Index ranks) : begins_(checked_ranks(ranks) + 1) {}

void RankSteps::of(Index rank) {
  check_position(rank, ranks());
  if (rank < rank_)
    throw Error(ErrorKind::argument, "steps of rank " + std::to_string(rank) + " after those of rank " +
                                         std::to_string(rank_) + "; ranks must ascend");
  if (rank > rank_) gets_ = 0;
  while (rank_ < rank) begins_[std::size_t(++rank_)] = Index(steps_.size());
}

void RankSteps::add(Kind kind, Index peer, Index stage, Index count) {
  if (peer < 0 || peer >= ranks())
    throw Error(ErrorKind::argument, "rank " + std::to_string(rank_) + " has nobody at rank " + std::to_string(peer) +
                                         "; ranks lie in [0, " + std::to_string(ranks()) + ")");
  if (stage < 0 || stage >= most_stages)
    throw Error(ErrorKind::argument,
                "stage " + std::to_string(stage) + "; stages lie in [0, " + std::to_string(most_stages) + ")");
  if (count < 0) throw Error(ErrorKind::argument, std::to_string(count) + " bytes or messages");
  check_steps(Wide{1} + std::ssize(steps_));
  Step step{std::uint32_t(peer), std::uint16_t(stage), kind, {}};
  step.count = count;
  steps_.push_back(step);
}

void RankSteps::compute(double seconds) {
  if (!(seconds >= 0 && std::isfinite(seconds)))
    throw Error(ErrorKind::argument,
                "rank " + std::to_string(rank_) + " computes for " + std::to_string(seconds) + " s");
  add(Kind::compute, 0, 0, 0);
  steps_.back().seconds = seconds;
}

void RankSteps::copy(Index bytes) { add(Kind::copy, 0, 0, bytes); }
void RankSteps::send(Index to, Index bytes, Index stage) { add(Kind::send, to, stage, bytes); }
void RankSteps::receive(Index messages, Index stage) {
  add(Kind::receive, 0, stage, messages == all ? 0 : messages);
  steps_.back().count = messages;
}
void RankSteps::get(Index from, Index bytes) { add(Kind::get, from, 0, bytes), ++gets_; }
void RankSteps::sync() {
  if (gets_ == 0) throw Error(ErrorKind::argument, "rank " + std::to_string(rank_) + " has no get to wait for");
  add(Kind::sync, 0, 0, 0), --gets_;
}

RankSteps strip_steps(const StripSchedule& schedule, const StripLoop& loop, Pattern pattern, Index ranks) {
  RankSteps steps(ranks);
  if (ranks < 2) throw Error(ErrorKind::argument, "a rank that reads needs another one to read from");
  check(loop);
  check_steps(Wide{3} * schedule.count(loop.elements) * (ranks - (pattern == Pattern::all_to_one)));
  for (Index rank = pattern == Pattern::all_to_one ? 1 : 0; rank < ranks; ++rank) {
    steps.of(rank);
    auto issued = schedule.strips(loop.elements).begin(), done = issued;
    Index strips = 0, under_way = 0;
    auto owner = [&](Index strip) {
      if (pattern == Pattern::all_to_one) return Index{0};
      return (rank + 1 + (pattern == Pattern::all_to_all ? strip % (ranks - 1) : 0)) % ranks;
    };
    auto bytes = [&](Interval strip) { return checked_mul(strip.size(), loop.element_bytes); };
    while (issued != std::default_sentinel || under_way > 0) {
      for (; under_way <= schedule.depth() && issued != std::default_sentinel; ++issued, ++under_way)
        steps.get(owner(strips++), bytes(*issued));
      for (Index k = loop.rolling ? 1 : std::max<Index>(schedule.depth(), 1); k > 0 && under_way > 0;
           --k, --under_way) {
        steps.sync();
        steps.compute((loop.compute + loop.memory) * double(bytes(*done))), ++done;
      }
    }
  }
  return steps;
}

RankSteps exchange_steps(const MotionPlan& plan) {
  RankSteps steps(plan.world_size());
  std::vector<Outgoing> outgoing;
  for (Index rank = 0; rank < plan.world_size(); ++rank) {
    outgoing.clear();
    plan.for_each_send(rank, [&](const Motion& motion) {
      outgoing.push_back({motion.destination, checked_mul(motion.elements, plan.element_bytes())});
    });
    add_exchange(steps, rank, outgoing);
  }
  return steps;
}

RankSteps exchange_steps(const BlockPlan& plan, Index element_bytes) {
  if (plan.rank())
    throw Error(ErrorKind::argument, "the plan holds the motions of rank " + std::to_string(*plan.rank()) +
                                         " only; a simulation needs everybody's");
  if (element_bytes < 1) throw Error(ErrorKind::argument, "elements of " + std::to_string(element_bytes) + " bytes");
  RankSteps steps(plan.world_size());
  std::vector<Index> begins(std::size_t(plan.world_size()) + 1);
  plan.for_each([&](const BlockMotion& motion) { ++begins[std::size_t(plan.source().owner(motion.source)) + 1]; });
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::vector<Outgoing> outgoing(std::size_t(begins.back()));
  auto next = begins;
  plan.for_each([&](const BlockMotion& motion) {
    outgoing[std::size_t(next[std::size_t(plan.source().owner(motion.source))]++)] = {
        plan.destination().owner(motion.destination), checked_mul(motion.points(), element_bytes)};
  });
  for (Index rank = 0; rank < plan.world_size(); ++rank) {
    const auto first = std::size_t(begins[std::size_t(rank)]), last = std::size_t(begins[std::size_t(rank) + 1]);
    add_exchange(steps, rank, std::span(outgoing).subspan(first, last - first));
  }
  return steps;
}

}  // namespace longshore

#include "movers/arrivals.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

#include "longshore/regions/region_index.hpp"
#include "movers/share.hpp"

namespace longshore {

namespace {

/// The indices of one side of what two coordinates have in common.
Runs runs_of(const PairedRuns& pairs, Index PairedRun::*first, Index PairedRun::*step, Index PairedPeriod::*period) {
  std::vector<Run> runs;
  for (const auto& all : pairs.periods()) {
    const auto& front = all.runs.front();
    if (all.runs.size() == 1 && front.count == 1) {
      runs.push_back({front.*first, front.length, all.repeats, all.*period});
      continue;
    }
    for (Index k = 0; k < all.repeats; ++k)
      for (const auto& run : all.runs)
        runs.push_back({run.*first + k * (all.*period), run.length, run.count, run.*step});
  }
  return Runs(std::move(runs));
}

/// What a plan brings to the ranks of a process; these are the first that its share numbers.
std::vector<IncomingPiece> pieces_of(const MotionPlan& plan, const Holders& holders, int me, Index field) {
  std::vector<IncomingPiece> pieces;
  const Index ranks = plan.destination().world_size();
  for (Index rank = me; rank < ranks; rank += holders.wrap ? holders.processes : ranks)
    plan.for_each_receive(rank, [&](const Motion& motion) {
      Arrival arrival{field, motion.source, motion.destination};
      for (std::size_t d = 0; d < plan.axes().size(); ++d) {
        const std::size_t s = plan.axes()[d];
        const auto pairs = intersect(plan.source().dimensions()[s], motion.source_coordinates[s],
                                     plan.destination().dimensions()[d], motion.destination_coordinates[d]);
        arrival.global_indices.push_back(
            runs_of(pairs, &PairedRun::global, &PairedRun::global_step, &PairedPeriod::global_period));
        arrival.local_indices.push_back(
            runs_of(pairs, &PairedRun::destination, &PairedRun::destination_step, &PairedPeriod::destination_period));
      }
      pieces.push_back({std::move(arrival), std::uint32_t(pieces.size()), holders.of(motion.source)});
    });
  return pieces;
}

/// What a plan brings to the blocks of a process, numbered as its share numbers all that the process takes part in.
std::vector<IncomingPiece> pieces_of(const BlockPlan& plan, const Holders& holders, int me, Index field) {
  std::vector<IncomingPiece> pieces;
  std::uint32_t number = 0;
  for (const auto part : {&BlockPlan::for_each_shared, &BlockPlan::for_each_by_hand})
    (plan.*part)([&](const BlockMotion& motion) {
      const Index source = plan.source().owner(motion.source),
                  destination = plan.destination().owner(motion.destination);
      const int from = holders.of(source), to = holders.of(destination);
      if (from != me && to != me) return;
      if (to == me)
        pieces.push_back(
            {{field, source, destination, motion.destination, motion.destination_region, motion.destination_points},
             number,
             from});
      ++number;
    });
  return pieces;
}

/// By piece, another one that it arrives together with, or itself: those that meet in a point, directly or by way of
/// others, all have the first of them.
std::vector<std::uint32_t> groups_of(const std::vector<IncomingPiece>& pieces) {
  std::vector<std::uint32_t> first(pieces.size());
  std::iota(first.begin(), first.end(), 0u);
  const auto root = [&first](std::uint32_t k) {
    while (first[k] != k) k = first[k] = first[first[k]];
    return k;
  };
  std::map<Index, std::vector<std::uint32_t>> of_block;
  for (std::uint32_t k = 0; k < pieces.size(); ++k) of_block[pieces[k].arrival.block].push_back(k);
  for (const auto& [block, some] : of_block) {
    std::vector<Region> regions;
    for (const auto k : some) regions.push_back(pieces[k].arrival.region);
    const RegionIndex index(regions);
    for (std::size_t i = 0; i < some.size(); ++i)
      for (const Index other : index.find(regions[i])) {
        const auto a = root(some[i]), b = root(some[std::size_t(other)]);
        first[std::max(a, b)] = std::min(a, b);
      }
  }
  for (std::uint32_t k = 0; k < first.size(); ++k) first[k] = root(k);
  return first;
}

}  // namespace

void Arrivals::follow(Mover& mover, const std::vector<std::vector<std::shared_ptr<Share>>>& stages, int me) {
  KeptPlans plans;
  auto incoming = std::make_shared<std::vector<Incoming>>();
  for (const auto& stage : stages)
    for (const auto& share : stage) {
      incoming->push_back(share->incoming(plans));
      incoming->back().ours = stages.size() > 1;  // of phases, or one of some that went at once beside them
    }
  follow(mover, std::move(incoming), me);
}

void Arrivals::follow(Mover& mover, std::shared_ptr<const std::vector<Incoming>> incoming, int me) {
  mover.incoming_ = std::move(incoming), mover.process_ = me;
}

Arrivals::Arrivals(const std::vector<Incoming>& incoming, int me) {
  for (std::uint32_t share = 0; share < incoming.size(); ++share) {
    const auto& [layouts, blocks, field, processes, wrap, meet, ours] = incoming[share];
    const Holders holders{.wrap = wrap, .processes = processes};
    auto pieces = layouts ? pieces_of(*layouts, holders, me, field) : pieces_of(*blocks, holders, me, field);
    if (pieces_.size() + pieces.size() >= none)
      throw Error(ErrorKind::memory_limit, "a process can be told of 2^32 - 1 arrivals at most");
    std::vector<std::uint32_t> order(pieces.size());
    std::iota(order.begin(), order.end(), 0u);
    const auto group = meet ? groups_of(pieces) : order;
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return group[a] < group[b]; });
    auto& numbered = numbered_.emplace_back();
    for (std::size_t k = 0; k < order.size(); ++k) {
      auto& [arrival, number, peer] = pieces[order[k]];
      if (k == 0 || group[order[k]] != group[order[k - 1]]) starts_.push_back(std::uint32_t(pieces_.size()));
      if (number >= numbered.size()) numbered.resize(number + std::size_t{1}, none);
      numbered[number] = std::uint32_t(pieces_.size());
      pieces_.push_back({std::move(arrival), peer, share, std::uint32_t(starts_.size() - 1)});
    }
  }
  starts_.push_back(std::uint32_t(pieces_.size()));
  units_.assign(starts_.size() - 1, 0);
}

void Arrivals::expect(std::uint32_t piece) {
  pieces_[piece].expected = true;
  ++units_[pieces_[piece].group];
}

void Arrivals::expect(std::size_t share, std::uint32_t number) {
  if (const auto piece = piece_of(share, number); piece != none) expect(piece);
}

void Arrivals::restart() {
  left_ = units_;
  // What no unit is known of comes with the last.
  std::replace(left_.begin(), left_.end(), std::uint32_t{0}, std::uint32_t{1});
  landed_.clear(), given_ = 0, within_ = 0;
}

void Arrivals::land(std::uint32_t piece) {
  const auto group = pieces_[piece].group;
  if (--left_[group] == 0) landed_.push_back(group);
}

void Arrivals::land(std::size_t share, std::uint32_t number) {
  if (const auto piece = piece_of(share, number); piece != none) land(piece);
}

void Arrivals::land_all() {
  for (std::uint32_t group = 0; group < left_.size(); ++group)
    if (std::exchange(left_[group], 0) > 0) landed_.push_back(group);
}

const Arrival* Arrivals::next() {
  if (given_ == landed_.size()) return nullptr;
  const auto group = landed_[given_];
  const Arrival* const arrival = &pieces_[starts_[group] + within_].arrival;
  if (starts_[group] + ++within_ == starts_[group + 1]) ++given_, within_ = 0;
  return arrival;
}

}  // namespace longshore

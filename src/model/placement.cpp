#include "longshore/model/placement.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>

namespace longshore {

std::vector<Index> placement_costs(const MotionPlan& plan, std::span<const Index> ranks, const MessageCost& within,
                                   const MessageCost& across, Index ranks_per_node) {
  const Layout &from = plan.source(), &to = plan.destination();
  const auto node = [&](Index rank) { return ranks_per_node == 0 ? 0 : rank / ranks_per_node; };
  std::unordered_map<Index, std::size_t> columns;
  for (std::size_t c = 0; c < ranks.size(); ++c) columns.emplace(ranks[c], c);
  std::vector<Index> costs(std::size_t(checked_mul(to.processes(), Index(ranks.size()))));
  std::unordered_map<Index, Index> nearer;  // what a process saves on each node
  auto* row = costs.data();
  for (Index process = 0; process < to.processes(); ++process, row += ranks.size()) {
    Index elsewhere = 0;
    nearer.clear();
    plan.for_each_receive(to.grid().world_rank(process), [&](const Motion& motion) {
      const Index bytes = motion.elements * plan.element_bytes(), near = within(bytes), far = across(bytes);
      // Replicas take turns, but who has a replica takes that: see MotionPlan.
      const auto server = from.process_at(motion.source_coordinates, process % from.replicas());
      const Index home = node(from.grid().world_rank(server));
      elsewhere += far;
      nearer[home] += far - near;
      for (Index replica = 0; replica < from.replicas(); ++replica) {
        const Index rank = from.grid().world_rank(from.process_at(motion.source_coordinates, replica));
        if (const auto column = columns.find(rank); column != columns.end())
          row[column->second] -= node(rank) == home ? near : far;
      }
    });
    for (std::size_t c = 0; c < ranks.size(); ++c) {
      const auto saved = nearer.find(node(ranks[c]));
      row[c] += elsewhere - (saved == nearer.end() ? 0 : saved->second);
    }
  }
  return costs;
}

std::vector<Index> placement_bytes(const MotionPlan& plan, std::span<const Index> ranks) {
  const auto bytes = [](Index n) { return n; };
  return placement_costs(plan, ranks, bytes, bytes, 0);
}

std::vector<Index> placement_nanoseconds(const MotionPlan& plan, std::span<const Index> ranks,
                                         const MachineProfile& profile, Index ranks_per_node) {
  const auto cost = [&](const char* pair) -> MessageCost {
    std::vector<const ExchangeTimes*> measured;
    for (const char* way : {"direct", "ring", "messages"})
      if (const auto* one = profile.exchange(way, pair)) measured.push_back(one);
    if (measured.empty())
      throw Error(ErrorKind::argument, "the profile of " + profile.machine() +
                                           " does not say what messages take between processes of the " + pair +
                                           "; calibrate on a machine with MPI, or give it an entry of \"exchanges\"");
    return [measured](Index bytes) {
      double seconds = measured.front()->seconds(bytes);
      for (const auto* one : measured) seconds = std::min(seconds, one->seconds(bytes));
      return Index(std::llround(1e9 * seconds));
    };
  };
  const Index last = ranks.empty() ? 0 : *std::max_element(ranks.begin(), ranks.end());
  const bool one_node = ranks_per_node == 0 || std::max(plan.world_size() - 1, last) < ranks_per_node;
  const auto within = cost(ranks_per_node == 1 && !one_node ? "other node" : "same node");
  return placement_costs(plan, ranks, within, one_node ? within : cost("other node"), ranks_per_node);
}

}  // namespace longshore

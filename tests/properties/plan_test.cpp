// Plans, all ranks of each simulated in this process: sends and receives pair exactly, and every way to carry them out
// brings every element to its place once.
#include "longshore/copies/packets.hpp"
#include "longshore/plans/motion_plan.hpp"

#include "support/generators.hpp"
#include "support/pairs.hpp"
#include "support/simulate.hpp"

#include "plans/motion_relations.hpp"

namespace longshore::test {
namespace {

RC_GTEST_PROP(MotionPlan, sends_and_receives_pair_exactly, (const MoveSpec& spec)) {
  const auto plan = plan_of(spec);
  using Key = std::tuple<Index, Index, Index, Point, Point>;
  std::vector<Key> sends, receives;
  auto add = [](std::vector<Key>& keys) {
    return [&keys](const Motion& m) {
      keys.emplace_back(m.source, m.destination, m.elements, m.source_coordinates, m.destination_coordinates);
    };
  };
  for (Index rank = 0; rank < plan.world_size(); ++rank) {
    const auto had = sends.size(), got = receives.size();
    plan.for_each_send(rank, add(sends));
    plan.for_each_receive(rank, add(receives));
    for (auto i = had; i < sends.size(); ++i) RC_ASSERT(std::get<0>(sends[i]) == rank);
    for (auto i = got; i < receives.size(); ++i) RC_ASSERT(std::get<1>(receives[i]) == rank);
  }
  std::sort(sends.begin(), sends.end());
  std::sort(receives.begin(), receives.end());
  RC_ASSERT(sends == receives);
  for (std::size_t i = 0; i < sends.size(); ++i) {
    RC_ASSERT(std::get<2>(sends[i]) > 0);
    if (i > 0)  // one message a pair of ranks
      RC_ASSERT(std::pair(std::get<0>(sends[i]), std::get<1>(sends[i])) !=
                std::pair(std::get<0>(sends[i - 1]), std::get<1>(sends[i - 1])));
  }
}

RC_GTEST_PROP(MotionPlan, writes_every_destination_element_once, (const MoveSpec& spec)) {
  const auto plan = plan_of(spec);
  const DenseLayout source(spec.source), destination(spec.destination);
  for (const auto& receiver : destination.processes) {
    std::vector<int> written(std::size_t(destination.allocated(receiver)), 0);
    for (const auto& motion : plan.receives(receiver.rank)) {
      const auto sender = std::find_if(source.processes.begin(), source.processes.end(),
                                       [&](const auto& process) { return process.rank == motion.source; });
      RC_ASSERT(sender != source.processes.end());
      const auto pairs = pairs_of(plan.relation(motion));
      RC_ASSERT(Index(pairs.size()) == motion.elements);
      for (const auto& pair : pairs) {
        RC_ASSERT(pair.source >= 0 && pair.source < source.allocated(*sender) * spec.element_bytes);
        RC_ASSERT(pair.destination >= 0 && pair.destination < Index(written.size()) * spec.element_bytes);
        RC_ASSERT(pair.destination % spec.element_bytes == 0);
        ++written[std::size_t(pair.destination / spec.element_bytes)];
      }
    }
    std::vector<int> expected(written.size(), 0);
    for_each_index(destination.local_shape(receiver),
                   [&](const Indices& local) { ++expected[std::size_t(destination.offset(receiver, local))]; });
    RC_ASSERT(written == expected);
  }
}

RC_GTEST_PROP(MotionPlan, a_rank_that_holds_what_it_needs_keeps_it, (const MoveSpec& spec)) {
  const auto plan = plan_of(spec);
  for (Index rank = 0; rank < plan.world_size(); ++rank)
    for (const auto& motion : plan.receives(rank)) {
      const auto own = plan.source().process_of(rank);
      if (own && plan.source().owner_coordinates(*own) == motion.source_coordinates) RC_ASSERT(motion.source == rank);
    }
}

RC_GTEST_PROP(MotionPlan, relation_by_dimension_has_the_same_pairs, (const MoveSpec& spec)) {
  const auto plan = plan_of(spec);
  for (Index rank = 0; rank < plan.world_size(); ++rank)
    for (const auto& motion : plan.sends(rank))
      RC_ASSERT(pairs_of(plan.relation_by_dimension(motion)) == pairs_of(plan.relation(motion)));
}

RC_GTEST_PROP(MotionRelations, are_those_of_the_plan_further_on, (const MoveSpec& spec)) {
  const auto plan = plan_of(spec);
  MotionRelations relations(plan);
  for (Index rank = 0; rank < plan.world_size(); ++rank)
    for (const auto& motion : plan.receives(rank)) {
      const auto placed = relations.place(motion);
      auto pairs = pairs_of(relations.nest(placed.shape));
      RC_ASSERT(pairs[0].source == 0 && pairs[0].destination == 0);
      for (auto& pair : pairs) pair.source += placed.source, pair.destination += placed.destination;
      RC_ASSERT(pairs == pairs_of(plan.relation(motion)));
      RC_ASSERT(relations.place(motion).shape == placed.shape);
    }
}

RC_GTEST_PROP(Moves, plainly, (const MoveSpec& spec)) {
  RC_ASSERT(delivers(
      spec, [](const LoopNest& relation, std::byte* to, const std::byte* from) { relation.move_plain(to, from); }));
}

RC_GTEST_PROP(Moves, by_copy_programs, (const MoveSpec& spec)) {
  CopyProgram::Options options;
  options.stores = chance(50) ? Stores::streaming : Stores::cached;
  options.table = *rc::gen::elementOf(available_kernels());
  RC_LOG() << options.table->name << '\n';
  RC_ASSERT(delivers(spec, [&](const LoopNest& relation, std::byte* to, const std::byte* from) {
    CopyProgram(relation, options).run(to, from);
  }));
}

RC_GTEST_PROP(Moves, by_whole_messages, (const MoveSpec& spec)) {
  RC_ASSERT(delivers(spec, [](const LoopNest& relation, std::byte* to, const std::byte* from) {
    Bytes message(std::size_t(relation.bytes()));
    CopyProgram(relation.assembly()).run(message.data(), from);
    CopyProgram(relation.disassembly()).run(to, message.data());
  }));
}

RC_GTEST_PROP(Moves, by_packets, (const MoveSpec& spec)) {
  using Halves = PacketedMessage::Halves;
  const Index capacity =
      chance(20) ? Index{1} << 40 : spec.element_bytes * draw(1, 40) + draw(0, spec.element_bytes - 1);
  const bool split = chance(50);  // sender and receiver each hold their half
  RC_ASSERT(delivers(spec, [&](const LoopNest& relation, std::byte* to, const std::byte* from) {
    const PacketedMessage sender(relation, capacity, split ? Halves::assembly : Halves::both);
    const PacketedMessage other(relation, capacity, Halves::disassembly);
    const PacketedMessage& receiver = split ? other : sender;
    RC_ASSERT(sender.packets() == receiver.packets());
    Index moved = 0;
    for (Index p = 0; p < sender.packets(); ++p) {
      const Index bytes = sender.packet_bytes(p);
      RC_ASSERT(bytes > 0 && bytes <= capacity && bytes <= sender.largest_packet_bytes());
      RC_ASSERT(bytes == receiver.packet_bytes(p));
      Bytes message(std::size_t(bytes), std::byte{0});
      sender.pack(p, message.data(), from);
      if (const auto at = sender.contiguous_source(p))
        RC_ASSERT(std::equal(message.begin(), message.end(), from + *at));
      if (const auto at = receiver.contiguous_destination(p))
        std::copy(message.begin(), message.end(), to + *at);
      else
        receiver.unpack(p, to, message.data());
      moved += bytes;
    }
    RC_ASSERT(moved == relation.bytes());
    if (capacity >= relation.bytes()) RC_ASSERT(sender.packets() == 1);
  }));
}

}  // namespace
}  // namespace longshore::test

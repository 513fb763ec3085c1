/// The `mpi` engine for layouts: binds a plan to the parts of all processes of a communicator.
#include "core/digest.hpp"
#include "engines/mpi/layout_routes.hpp"
#include "engines/mpi/mpi_mover.hpp"
#include "movers/bind_texts.hpp"
#include "mpi/agreement.hpp"

namespace longshore::mpi {

namespace {

Facts facts_of(const MotionPlan& plan, const Options& options) {
  Facts facts = layout_facts(plan, options.combine, options.element);
  facts.push_back({"placement", options.placement == Placement::wrap ? "wrap" : "direct"});
  facts.push_back({"node", path_name(options.node)});
  return facts;
}

}  // namespace

std::unique_ptr<Mover> bind(const MotionPlan& plan, CommHandle comm, std::vector<Part> sources,
                            std::vector<Part> destinations, const Options& options) {
  const auto communicator = Communicator::of(comm);

  // 1. What we were given: checked here, then compared.
  std::optional<HeldParts> parts;
  Submission mine;
  mine.failure = attempt([&] {
    mine.facts = [&] { return facts_of(plan, options); };
    Digest digest(plan.digest());
    digest.mix(facts_text(facts_of(plan, options)));
    mine.digest = digest.value();
    check_layout_options(plan, options.combine, options.max_mem);
    parts.emplace(plan, Holders{options.placement, communicator->size()}, communicator->rank(), std::move(sources),
                  std::move(destinations));
  });
  const Index max_mem = options.max_mem > 0 ? options.max_mem : Budget::unbounded;
  Budget budget(agree(*communicator, mine, {max_mem, 0})[0], plan.element_bytes());

  // 2. The node: what can be seen of each other's memory. Rings may take half of the memory allowed if messages need
  // some.
  auto off_node = [&](const std::vector<HeldMotion>& motions) {
    return std::any_of(motions.begin(), motions.end(),
                       [&](const HeldMotion& m) { return communicator->node_rank_of(m.peer) < 0; });
  };
  const bool any_off_node = off_node(parts->outgoing()) || off_node(parts->incoming());
  LayoutRoutes routes(*communicator, plan, *parts, options, budget.rings(any_off_node), mine);

  // 3. Messages: whole where every rank can hold them, else packets that every rank can hold.
  MessageSide outgoing, incoming;
  outgoing.make = [&](std::optional<Index> capacity) {
    return messages_of(plan, routes.outgoing_left(), true, options.combine, capacity);
  };
  incoming.make = [&](std::optional<Index> capacity) {
    return messages_of(plan, routes.incoming_left(), false, options.combine, capacity);
  };
  for (const auto& m : routes.outgoing_left()) outgoing.bytes += m.motion.elements * plan.element_bytes();
  for (const auto& m : routes.incoming_left()) incoming.bytes += m.motion.elements * plan.element_bytes();
  auto messages = agree_on_messages(communicator, mine, budget, routes.ring_bytes(), outgoing, incoming);

  std::string obstacle = routes.obstacle();
  for (const auto* held : {&parts->sources(), &parts->destinations()})
    for (const auto& part : *held) add_refusal(obstacle, *communicator, part.memory.get());

  std::unique_ptr<Mover> mover;
  mine.failure = attempt([&] {
    std::vector<BoundMemory> memory;
    for (const auto& part : parts->sources()) memory.push_back({part.array.keeper, "source array of rank", part.rank});
    for (const auto& part : parts->destinations())
      memory.push_back({part.array.keeper, "destination array of rank", part.rank});
    mover = make_mpi_mover(communicator, routes.compile(*parts, options.combine), std::move(messages),
                           parts->moved_bytes(), std::move(memory), obstacle);
  });
  agree(*communicator, mine);
  return mover;
}

}  // namespace longshore::mpi

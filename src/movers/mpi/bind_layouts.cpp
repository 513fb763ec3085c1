/// The `mpi` engine for layouts: binds a plan to the parts of all processes of a communicator.
#include "movers/mpi/agreement.hpp"
#include "movers/mpi/layout_routes.hpp"
#include "movers/mpi/mpi_mover.hpp"

namespace longshore::mpi {

namespace {

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
  if (options.node != NodePath::automatic) text += std::string(", node path ") + path_name(options.node);
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
  const Index max_mem = options.max_mem > 0 ? options.max_mem : Budget::unbounded;
  Budget budget(agree(*communicator, mine, {max_mem, 0})[0], plan.element_bytes());

  // 2. The node: what can be seen of each other's memory. Rings may take half of the memory allowed if messages need some.
  auto off_node = [&](const std::vector<HeldMotion>& motions) {
    return std::any_of(motions.begin(), motions.end(),
                       [&](const HeldMotion& m) { return communicator->node_rank_of(m.peer) < 0; });
  };
  const bool any_off_node = off_node(parts->outgoing()) || off_node(parts->incoming());
  LayoutRoutes routes(*communicator, plan, *parts, options, budget.rings(any_off_node));

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

  std::unique_ptr<Mover> mover;
  mine.failure = attempt([&] {
    std::vector<BoundMemory> memory;
    for (const auto& part : parts->sources()) memory.push_back({part.array.keeper, "source array of rank", part.rank});
    for (const auto& part : parts->destinations()) memory.push_back({part.array.keeper, "destination array of rank", part.rank});
    mover = make_mpi_mover(communicator, routes.compile(*parts, options.combine), std::move(messages), parts->moved_bytes(),
                           std::move(memory));
  });
  agree(*communicator, mine);
  return mover;
}

}  // namespace longshore::mpi

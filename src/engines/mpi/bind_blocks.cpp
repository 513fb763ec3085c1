/// The `mpi` engine for blocks: binds a plan to the arrays of all processes of a communicator.
#include <algorithm>

#include "core/digest.hpp"
#include "engines/mpi/block_routes.hpp"
#include "engines/mpi/collective_messages.hpp"
#include "engines/mpi/peer_sums.hpp"
#include "longshore/plans/block_algebra.hpp"
#include "movers/bind_texts.hpp"
#include "movers/proxy_mover.hpp"

namespace longshore::mpi {

namespace {

Facts facts_of(const BlockPlan& plan, const XArray& source, const XArray& destination, const ExchangeOptions& options,
               bool lists) {
  Facts facts = block_facts(plan, source, destination, options, options.element, lists);
  facts.push_back({"node", path_name(options.node)});
  facts.push_back({"aggregate", options.aggregate ? "true" : "false"});
  facts.push_back({"packet_bytes", std::to_string(options.packet_bytes)});
  facts.push_back({"preallocate", options.preallocate ? "true" : "false"});
  facts.push_back({"exchange", options.exchange == Exchange::point_to_point ? "point to point"
                               : options.exchange == Exchange::neighborhood ? "neighborhood collective"
                               : options.exchange == Exchange::all_to_all   ? "all to all"
                                                                            : "automatic"});
  return facts;
}

void check(const Communicator& communicator, const BlockPlan& plan, const XArray& source, const XArray& destination,
           const ExchangeOptions& options) {
  check_owner(plan, source, destination, communicator.rank(), communicator.size(), "the communicator");
  for (const auto& [array, what] : {std::pair{&source, "source"}, {&destination, "destination"}})
    if (!array->rank())
      throw Error(ErrorKind::argument, std::string("the ") + what +
                                           " array has storage for the blocks of all ranks, this is rank " +
                                           std::to_string(communicator.rank()));
  if (options.packet_bytes < 0)
    throw Error(ErrorKind::argument,
                "packet_bytes is " + std::to_string(options.packet_bytes) + "; it cannot be negative");
  check_arrays(plan, source, destination, options);
  check_races(plan, source.same_storage(destination), !options.reduction.is_replace());
  check_apart(source, destination);
}

/// Collective, for the tag.
std::unique_ptr<Mover> checked(const std::shared_ptr<Communicator>& communicator, const BlockPlan& plan,
                               std::unique_ptr<Mover> mover, CheckedMotions motions) {
  std::vector<int> receivers, senders;
  motions.sends = plan.sends(communicator->rank()), motions.receives = plan.receives(communicator->rank());
  for (const auto& motion : motions.sends) receivers.push_back(int(plan.destination().owner(motion.destination)));
  for (const auto& motion : motions.receives) senders.push_back(int(plan.source().owner(motion.source)));
  return make_checked_mover(std::move(mover), std::move(motions),
                            make_peer_sums(communicator, std::move(receivers), std::move(senders)));
}

}  // namespace

XArray make_xarray(FloorPlan blocks, CommHandle comm, GridFormat format) {
  const auto facts = comm_facts(comm);
  if (blocks.world_size() > facts.size)
    throw Error(ErrorKind::argument, "the floor plan has blocks on rank " + std::to_string(blocks.world_size() - 1) +
                                         ", the communicator has " + std::to_string(facts.size) + " ranks");
  if (format.ghost.dims() == 0) format.ghost = Point(blocks.dims());
  const Index bytes = XArray::places(blocks, facts.rank, format).bytes;
  return XArray(std::move(blocks), facts.rank, std::move(format),
                facts.size > 1 && bytes > 0 ? array_memory(comm, bytes) : Memory::ordinary(bytes));
}

std::unique_ptr<Mover> bind(const BlockPlan& plan, CommHandle comm, XArray source, XArray destination,
                            const ExchangeOptions& options) {
  const auto communicator = Communicator::of(comm);

  // 1. What we were given: checked here, then compared.
  Submission mine;
  mine.failure = attempt([&] {
    mine.facts = [&] { return facts_of(plan, source, destination, options, true); };
    Digest digest(plan.digest());
    digest.mix(facts_text(facts_of(plan, source, destination, options, false)));
    mine.digest = digest.value();
    check(*communicator, plan, source, destination, options);
  });
  const Index max_mem = options.max_mem > 0 ? options.max_mem : Budget::unbounded;
  const Budget budget(agree(*communicator, mine, {max_mem, 0})[0], source.element_bytes());

  // 2. The node: what can be seen of each other's memory. 3. Messages for the rest.
  BlockRoutes routes(*communicator, plan, source, destination, options, budget, mine);
  MessageTraffic messages = agree_on_exchange(communicator, mine, budget, options, routes);

  std::string obstacle = routes.obstacle();
  for (const auto* array : {&source, &destination}) add_refusal(obstacle, *communicator, array->memory().get());

  std::unique_ptr<Mover> mover;
  mine.failure = attempt([&] {
    if (options.proxy && messages.messages && !threads_may_call_mpi())
      throw Error(ErrorKind::argument,
                  "a proxy has to send MPI messages beside this thread: initialise MPI with MPI_Init_thread and "
                  "MPI_THREAD_MULTIPLE, or bind without proxy");
    mover = make_mpi_mover(communicator, routes.compile(), std::move(messages), routes.moved_bytes(),
                           bound_memory(source, destination), obstacle, options.proxy);
    if (options.proxy) mover = make_proxy_mover(std::move(mover));
  });
  agree(*communicator, mine);
  return options.checked ? checked(communicator, plan, std::move(mover), {{}, {}, source, destination, options})
                         : std::move(mover);
}

}  // namespace longshore::mpi

/// The `mpi` engine: binds plans to the arrays of all processes of a communicator.
#include <algorithm>
#include <array>

#include "core/digest.hpp"
#include "core/disagreement.hpp"
#include "engines/mpi/collective_messages.hpp"
#include "engines/mpi/peer_sums.hpp"
#include "engines/mpi/routes.hpp"
#include "movers/helpers.hpp"
#include "movers/proxy_mover.hpp"

namespace longshore::mpi {

namespace {

const char* exchange_name(Exchange exchange) {
  switch (exchange) {
    case Exchange::point_to_point: return "point to point";
    case Exchange::neighborhood: return "neighborhood collective";
    case Exchange::all_to_all: return "all to all";
    case Exchange::automatic: break;
  }
  return "automatic";
}

Facts facts_of(const std::vector<Share*>& shares, const Options& options) {
  Facts facts = longshore::facts_of(shares);
  auto flag = [](bool value) { return value ? "true" : "false"; };
  facts.push_back({"placement", options.placement == Placement::wrap ? "wrap" : "direct"});
  facts.push_back({"node", path_name(options.node)});
  facts.push_back({"aggregate", flag(options.aggregate)});
  facts.push_back({"packet_bytes", std::to_string(options.packet_bytes)});
  facts.push_back({"preallocate", flag(options.preallocate)});
  facts.push_back({"exchange", exchange_name(options.exchange)});
  facts.push_back({"checked", flag(options.checked)});
  facts.push_back({"report", flag(options.report)});
  return facts;
}

/// Of what the facts tell.
std::uint64_t digest_of(const std::vector<Share*>& shares, const Options& options) {
  Digest digest;
  for (const auto* share : shares) digest.mix(share->digest());
  digest.mix(std::array{Index(options.placement), Index(options.node), Index(options.aggregate), options.packet_bytes,
                        Index(options.preallocate), Index(options.exchange), Index(options.checked),
                        Index(options.report)});
  return digest.value();
}

/// Which fields go in phases, as a number that is the same on ranks where these are the same.
Index form_of(const Stages& stages, const std::vector<Field>& fields) {
  Digest digest;
  for (std::size_t f = 0; !stages.empty() && f < fields.size(); ++f)
    digest.mix(stages.front()[f] == fields[f].shared());
  return Index(digest.value() >> 1);
}

void check_options(const Options& options) {
  for (const auto& [bytes, what] : {std::pair{options.max_mem, "max_mem"}, {options.packet_bytes, "packet_bytes"}})
    if (bytes < 0)
      throw Error(ErrorKind::argument,
                  std::string(what) + " is " + std::to_string(bytes) + " bytes; it must not be negative");
  threads_of(options);
}

constexpr double clearly = 1.25;  ///< faster by so much: predictions that are nearer to each other do not tell

constexpr double never = 1e9;  ///< seconds: longer than anything

/// In nanoseconds and negative, so that the smallest is the slowest rank's. What is no time is not known.
Index submitted(double seconds) { return seconds > 0 ? -Index(std::min(seconds, never) * 1e9) : 0; }

/// How processes of a node move, by rule or as what was expected by the slowest rank has it.
NodeWays ways_of(NodePath path, const WaySeconds& slowest) {
  NodeWays ways;
  if (path != NodePath::automatic) {
    const bool direct = path == NodePath::direct;
    return {.shared = direct, .short_runs = direct, .rings = path == NodePath::ring};
  }
  const auto [direct, ring, messages] = slowest;
  if (direct <= 0 || ring <= 0 || messages <= 0) return ways;
  ways.rings = ring <= clearly * messages;
  const double staged = ways.rings ? ring : messages;
  ways.shared = direct <= clearly * staged, ways.short_runs = clearly * direct < staged;
  return ways;
}

/// Collective, for the tag.
std::unique_ptr<Mover> checked(const std::shared_ptr<Communicator>& communicator, std::unique_ptr<Mover> mover,
                               CheckedTransfers transfers) {
  auto sums = make_peer_sums(communicator, transfers.peers(transfers.sends), transfers.peers(transfers.receives));
  return make_checked_mover(std::move(mover), std::move(transfers), std::move(sums));
}

}  // namespace

Part allocate(const Layout& layout, Index rank, Index element_bytes, CommHandle comm) {
  const auto memory = array_memory(comm, checked_mul(layout.allocated_size(rank), element_bytes));
  return {rank, {memory->data(), layout.local_shape(rank), layout.local_strides(rank, element_bytes), false, memory}};
}

XArray make_xarray(FloorPlan blocks, CommHandle comm, GridFormat format) {
  const auto facts = comm_facts(comm);
  if (blocks.world_size() > facts.size)
    throw Error(ErrorKind::argument, "the floor plan has blocks on rank " + std::to_string(blocks.world_size() - 1) +
                                         ", the communicator has " + std::to_string(facts.size) + " ranks");
  if (format.ghost == GhostWidths()) format.ghost = Point(blocks.dims());
  const Index bytes = XArray::places(blocks, facts.rank, format).bytes;
  return XArray(std::move(blocks), facts.rank, std::move(format),
                facts.size > 1 && bytes > 0 ? array_memory(comm, bytes) : Memory::ordinary(bytes));
}

std::unique_ptr<Mover> bind(const std::vector<Field>& fields, CommHandle comm, const Options& options,
                            const Error* failure) {
  const auto communicator = Communicator::of(comm);
  std::vector<Share*> shares;
  for (const auto& field : fields) shares.push_back(&field.share());
  const Holders holders{
      .wrap = options.placement == Placement::wrap, .processes = communicator->size(), .checked = options.checked};
  Stages stages;

  // 1. What we were given: checked here, then compared.
  Submission mine;
  Index element_bytes = 1;
  mine.attempt([&] {
    if (failure) throw *failure;
    mine.facts = [&] { return facts_of(shares, options); };
    mine.digest = digest_of(shares, options);
    check_options(options);
    OverlapCheck overlaps;
    stages = stages_of(fields, options.checked, options.max_mem > 0);
    resolve(stages, holders, communicator->rank(), overlaps);
    overlaps.check();
    for (const auto* share : shares) element_bytes = std::max(element_bytes, share->element_bytes());
  });
  const Index own_limit = options.max_mem > 0 ? options.max_mem : Budget::unbounded;
  const Index form = form_of(stages, fields);
  Values agreed;
  try {
    // A proxy must not need more of MPI than it does by rule.
    const auto& [direct, ring, messages] = options.expected;
    agreed = agree(
        *communicator, mine,
        {own_limit, form, -form, submitted(direct), submitted(ring), submitted(options.proxy ? never : messages)});
  } catch (const Postponed&) {
    return nullptr;
  }
  const auto [limit, least, most, direct, ring, messages] = agreed;
  const bool one_node = communicator->node_size() == communicator->size();
  const auto ways = ways_of(
      options.node,
      one_node ? WaySeconds{-1e-9 * double(direct), -1e-9 * double(ring), -1e-9 * double(messages)} : WaySeconds());
  if (least != -most)  // some have a bound, or several arrays: what need not go in phases goes at once
    mine.attempt([&] {
      OverlapCheck overlaps;
      stages = stages_of(fields, options.checked, true);
      resolve(stages, holders, communicator->rank(), overlaps);
    });
  const Budget budget(limit == Budget::unbounded ? limit : limit / Index(stages.size()), element_bytes);

  // 2. The node: what can be seen of each other's memory, flags and rings.
  std::vector<std::unique_ptr<Routes>> routes;
  for (const auto& stage : stages) {
    std::vector<Share*> of_stage;
    for (const auto& share : stage) of_stage.push_back(share.get());
    routes.push_back(std::make_unique<Routes>(communicator, std::move(of_stage), ways, options, budget, mine));
  }
  const auto any = [&routes](auto&& so) {
    return std::any_of(routes.begin(), routes.end(), [&](const auto& one) { return so(*one); });
  };
  const auto has_messages = [&] { return any([](const Routes& one) { return one.has_messages(); }); };
  const auto is_blocked = [&] { return any([](const Routes& one) { return one.is_blocked(); }); };
  std::unique_ptr<Mover> mover;
  CheckedTransfers transfers;
  const Index number = communicator->next_number();
  auto make = [&](std::vector<MessageTraffic> messages) {
    std::vector<Stage> parts;
    std::string obstacle;
    Index moved = 0;
    int threads = threads_of(options, 1);
    for (std::size_t k = 0; k < stages.size(); ++k) {
      if (options.proxy && messages[k].messages && !threads_may_call_mpi())
        throw Error(ErrorKind::argument,
                    "a proxy has to send MPI messages beside this thread: initialise MPI with MPI_Init_thread and "
                    "MPI_THREAD_MULTIPLE, or bind without proxy");
      if (obstacle.empty()) obstacle = routes[k]->obstacle();
      for (const auto& share : stages[k]) {
        moved = checked_add(moved, moved_bytes(share->transfers()));
        if (share->in_order()) threads = 1;
      }
      parts.push_back({routes[k]->compile(), std::move(messages[k]), stages[k].size()});
    }
    std::vector<BoundMemory> memory;
    for (const auto& share : stages.front()) {  // the arrays are the same in all
      for (auto& bound : share->memory()) memory.push_back(std::move(bound));
      if (options.checked) transfers.add(*share);
    }
    mover = make_mpi_mover(communicator, number, std::move(parts), moved, std::move(memory), obstacle, options.proxy,
                           threads);
    if (options.proxy) mover = make_proxy_mover(std::move(mover));
  };
  if (!has_messages() && !is_blocked()) mine.attempt([&] { make(std::vector<MessageTraffic>(stages.size())); });

  // 3. All or none. Where everything is seen to within the nodes, that was all; else there are messages for the rest.
  const auto done = agree(*communicator, mine, {!is_blocked(), !has_messages()});
  const bool clear = done[0], within_nodes = done[1];
  if (!clear || !within_nodes) {
    mover.reset(), transfers = {};
    std::vector<MessageTraffic> messages;
    for (const auto& one : routes) {
      if (!clear) one->give_way(mine);
      messages.push_back(agree_on_exchange(communicator, mine, budget, options, *one));
    }
    mine.attempt([&] { make(std::move(messages)); });
    agree(*communicator, mine);
  }
  for (const auto& one : routes) one->confirm();
  if (options.checked) mover = checked(communicator, std::move(mover), std::move(transfers));
  Arrivals::follow(*mover, stages, communicator->rank());
  return mover;
}

void postpone_bind(CommHandle comm) {
  Submission mine;
  mine.postponed = true;
  try {
    agree(*Communicator::of(comm), mine);
  } catch (const Postponed&) {
  }
}

std::unique_ptr<Mover> bind(const MotionPlan& plan, CommHandle comm, std::vector<Part> sources,
                            std::vector<Part> destinations, const Options& options) {
  return bind({Field(plan, std::move(sources), std::move(destinations), options.update, options.element)}, comm,
              options);
}

std::unique_ptr<Mover> bind(const BlockPlan& plan, CommHandle comm, XArray source, XArray destination,
                            const Options& options) {
  return bind({Field(plan, std::move(source), std::move(destination), options.update, options.visit, options.element,
                     options.phases)},
              comm, options);
}

}  // namespace longshore::mpi

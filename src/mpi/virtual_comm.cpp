#include "longshore/mpi/virtual_comm.hpp"

#include <algorithm>
#include <bit>
#include <mutex>

#include "core/digest.hpp"
#include "longshore/ranks/rank_module.hpp"
#include "mpi/byte_count.hpp"
#include "mpi/contexts.hpp"
#include "mpi/rank_split.hpp"

namespace longshore::mpi {

/// The duplicate that virtual communicators send on, and the contexts that they have at this process.
struct VirtualComm::Duplicate {
  explicit Duplicate(MPI_Comm given) : comm(duplicate(given)) {
    facts = comm_facts(comm);
    int* bound = nullptr;
    int found = 0;
    check_mpi(MPI_Comm_get_attr(comm, MPI_TAG_UB, &bound, &found), "MPI_Comm_get_attr");
    constexpr std::uint64_t standard = 32767;
    // All bits that a tag may have: at least five for contexts
    // and ten for tags, and of contexts no more than are of use.
    constexpr int most_context_bits = 16, least_tag_bits = 10;
    const int bits = std::bit_width(std::max(standard, found ? std::uint64_t(*bound) : 0) + 1) - 1;
    tag_bits = std::max(least_tag_bits, bits - most_context_bits);
    contexts.emplace(1 << (bits - tag_bits));
  }
  Duplicate(const Duplicate&) = delete;
  Duplicate& operator=(const Duplicate&) = delete;
  ~Duplicate() {
    if (comm != MPI_COMM_NULL && mpi_alive()) MPI_Comm_free(&comm);
  }

  MPI_Comm comm = MPI_COMM_NULL;
  CommFacts facts;
  int tag_bits;
  std::optional<Contexts> contexts;  // once it is known how many there are
};

struct VirtualComm::State {
  State(std::shared_ptr<Duplicate> of, RankMap members, Index position, Context taken)
      : duplicate(std::move(of)),
        rank(position),
        map(members.with_lookup(LookupKind::lazy)),
        context(std::move(taken)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (comm != MPI_COMM_NULL && mpi_alive()) MPI_Comm_free(&comm);
  }

  int wire(int tag) const { return context.number() << duplicate->tag_bits | tag; }
  /// One tag of each context is this library's own.
  int own_tag() const { return wire((1 << duplicate->tag_bits) - 1); }

  std::shared_ptr<Duplicate> duplicate;
  Index rank;
  RankMap map;
  Context context;
  std::mutex mutex;  // of the following
  MPI_Comm comm = MPI_COMM_NULL;
};

namespace {

/// The same for all who have the same members in the same order, in whatever form.
int derived_context(const RankMap& map, const Contexts& contexts) {
  Digest digest;
  digest.mix(std::uint64_t(map.size()));
  Members(map).each_piece([&](Index, std::span<const Index> values) { digest.mix(values); });
  return contexts.unasked() + int(digest.value() % std::uint64_t(contexts.count() - contexts.unasked()));
}

}  // namespace

VirtualComm VirtualComm::made(std::shared_ptr<Duplicate> duplicate, RankMap map, std::optional<int> given) {
  auto& contexts = *duplicate->contexts;
  if (given) contexts.check(*given);
  const bool everybody = map.ascending() && map.size() == map.world();
  const int number = given ? *given : everybody ? 0 : derived_context(map, contexts);
  const Index world_rank = duplicate->facts.rank, rank = map.rank(world_rank);
  auto context = rank == nobody ? Context(nullptr, number) : contexts.take(number);
  if (!context) throw contexts.clash(number, world_rank);
  return VirtualComm(std::make_shared<State>(std::move(duplicate), std::move(map), rank, std::move(*context)));
}

VirtualComm VirtualComm::over(CommHandle comm) {
  auto duplicate = std::make_shared<Duplicate>(usable(comm));
  const Index size = duplicate->facts.size;
  return made(std::move(duplicate), RankMap::whole(size), {});
}

VirtualComm VirtualComm::sub(const RankMap& positions, std::optional<int> context) const {
  if (positions.world() != size())
    throw Error(ErrorKind::argument, "positions are of a world of " + std::to_string(positions.world()) +
                                         " ranks, the virtual communicator has " + std::to_string(size()) + " members");
  return made(state_->duplicate, RankMap::child(map(), positions), context);
}

VirtualComm VirtualComm::create(const RankMap& ranks, std::optional<int> context) const {
  if (ranks.world() != state_->duplicate->facts.size)
    throw Error(ErrorKind::argument, "the map is of a world of " + std::to_string(ranks.world()) +
                                         " ranks, the communicator has " +
                                         std::to_string(state_->duplicate->facts.size));
  return made(state_->duplicate, ranks, context);
}

VirtualComm VirtualComm::split(Index colour, Index key, std::optional<int> given) const {
  const State& state = member();
  const auto& duplicate = state.duplicate;
  const auto positions = split_along({duplicate->comm, state.map, state.rank, state.own_tag()}, colour, key);
  auto map = RankMap::child(state.map, positions);
  const Index rank = positions.rank(state.rank);
  auto context = rank == nobody ? Context(nullptr, given.value_or(0))
                                : agreed_context({duplicate->comm, map, rank, state.own_tag()}, *duplicate->contexts,
                                                 given, derived_context(map, *duplicate->contexts));
  return VirtualComm(std::make_shared<State>(duplicate, std::move(map), rank, std::move(context)));
}

const RankMap& VirtualComm::map() const& { return state_->map; }
Index VirtualComm::rank() const { return state_->rank; }
int VirtualComm::tag_ub() const { return (1 << state_->duplicate->tag_bits) - 2; }
int VirtualComm::context() const { return state_->context.number(); }
int VirtualComm::contexts() const { return state_->duplicate->contexts->count(); }
CommHandle VirtualComm::traffic() const { return state_->duplicate->comm; }

int VirtualComm::wire_tag(int tag) const {
  const State& state = member();
  if (tag < 0 || tag > tag_ub())
    throw Error(ErrorKind::argument, "tag " + std::to_string(tag) + " is outside [0, " + std::to_string(tag_ub()) +
                                         "]; a receive names its tag");
  return state.wire(tag);
}

const VirtualComm::State& VirtualComm::member() const {
  check_running();
  if (state_->rank == nobody)
    throw Error(ErrorKind::argument, "rank " + std::to_string(state_->duplicate->facts.rank) + " is none of the " +
                                         std::to_string(size()) + " members of this virtual communicator");
  return *state_;
}

Error VirtualComm::stray(Index sender) const {
  return Error(
      ErrorKind::disagreement,
      "rank " + std::to_string(state_->duplicate->facts.rank) + " received from any source a message of rank " +
          std::to_string(sender) + ", which is none of the " + std::to_string(size()) +
          " members of this virtual communicator and sends on another one with context " + std::to_string(context()) +
          ": pass another `context` at all members of one of them, or make them by split");
}

CommHandle VirtualComm::comm() const {
  member();
  const std::lock_guard lock(state_->mutex);
  if (state_->comm == MPI_COMM_NULL)
    state_->comm = create_communicator(state_->map, state_->duplicate->comm, state_->context.number()).get<MPI_Comm>();
  return state_->comm;
}

// ---- messages
// -------------------------------------------------------------------------------------------------

struct Message::Flying {
  Flying(VirtualComm comm, Index member, Index n, bool out)
      : between(std::move(comm)), peer(member), bytes(n), size(n), leaving(out) {}
  ~Flying() {
    if (request == MPI_REQUEST_NULL || !mpi_alive()) return;
    if (!leaving) MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }

  void complete(const MPI_Status& status) {
    if (leaving)
      arrival = {between.rank(), bytes};
    else
      arrival = {peer == any_source ? between.position(status.MPI_SOURCE) : peer, ByteCount::received(status)};
    sender = status.MPI_SOURCE;
  }
  /// Throws where another communicator's message has come.
  const Arrival& checked() const {
    if (arrival->source == nobody) throw between.stray(sender);
    return *arrival;
  }

  VirtualComm between;
  Index peer, bytes;
  ByteCount size;
  bool leaving;
  MPI_Request request = MPI_REQUEST_NULL;
  std::optional<Arrival> arrival;
  Index sender = nobody;  // in the communicator that all began with
};

Message::Message(std::unique_ptr<Flying> flying) : flying_(std::move(flying)) {}
Message::Message(Message&&) noexcept = default;
Message& Message::operator=(Message&&) noexcept = default;
Message::~Message() = default;

bool Message::test() {
  if (!flying_->arrival) {
    check_running();
    int done = 0;
    MPI_Status status;
    check_mpi(MPI_Test(&flying_->request, &done, &status), "MPI_Test");
    if (!done) return false;
    flying_->complete(status);
  }
  flying_->checked();
  return true;
}

Arrival Message::wait() {
  if (!flying_->arrival) {
    check_running();
    MPI_Status status;
    check_mpi(MPI_Wait(&flying_->request, &status), "MPI_Wait");
    flying_->complete(status);
  }
  return flying_->checked();
}

namespace {

void check_bytes(Index bytes) {
  if (bytes < 0) throw Error(ErrorKind::argument, "a message of " + std::to_string(bytes) + " bytes");
}

}  // namespace

Message VirtualComm::start_send(const void* data, Index bytes, Index to, int tag) const {
  check_bytes(bytes);
  const State& state = member();
  auto flying = std::make_unique<Message::Flying>(*this, to, bytes, true);
  check_mpi(MPI_Isend(data, flying->size.count(), flying->size.type(), int(peer(to)), wire_tag(tag),
                      state.duplicate->comm, &flying->request),
            "MPI_Isend");
  return Message(std::move(flying));
}

Message VirtualComm::start_receive(void* data, Index bytes, Index from, int tag) const {
  check_bytes(bytes);
  const State& state = member();
  const int source = from == any_source ? MPI_ANY_SOURCE : int(peer(from));
  auto flying = std::make_unique<Message::Flying>(*this, from, bytes, false);
  check_mpi(MPI_Irecv(data, flying->size.count(), flying->size.type(), source, wire_tag(tag), state.duplicate->comm,
                      &flying->request),
            "MPI_Irecv");
  return Message(std::move(flying));
}

void VirtualComm::send(const void* data, Index bytes, Index to, int tag) const {
  start_send(data, bytes, to, tag).wait();
}

Arrival VirtualComm::receive(void* data, Index bytes, Index from, int tag) const {
  return start_receive(data, bytes, from, tag).wait();
}

}  // namespace longshore::mpi

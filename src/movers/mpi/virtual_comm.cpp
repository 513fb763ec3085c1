#include "longshore/movers/virtual_comm.hpp"

#include <algorithm>
#include <bit>
#include <mutex>
#include <set>

#include "longshore/ranks/rank_module.hpp"
#include "movers/mpi/byte_count.hpp"
#include "movers/mpi/rank_split.hpp"
#include "sequences/digest.hpp"

namespace longshore::mpi {

/// The duplicate that virtual communicators send on, and the contexts that they have at this process.
struct VirtualComm::Trunk {
  explicit Trunk(MPI_Comm given) {
    check_mpi(MPI_Comm_dup(given, &comm), "MPI_Comm_dup");
    check_mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    facts = comm_facts(comm);
    int* bound = nullptr;
    int found = 0;
    check_mpi(MPI_Comm_get_attr(comm, MPI_TAG_UB, &bound, &found), "MPI_Comm_get_attr");
    constexpr std::uint64_t standard = 32767;
    // All bits that a tag may have: at least five for contexts and ten for tags, and of contexts no more than are of use.
    constexpr int most_context_bits = 16, least_tag_bits = 10;
    const int bits = std::bit_width(std::max(standard, found ? std::uint64_t(*bound) : 0) + 1) - 1;
    tag_bits = std::max(least_tag_bits, bits - most_context_bits);
    contexts = 1 << (bits - tag_bits);
  }
  Trunk(const Trunk&) = delete;
  Trunk& operator=(const Trunk&) = delete;
  ~Trunk() {
    if (comm != MPI_COMM_NULL && mpi_alive()) MPI_Comm_free(&comm);
  }

  void take(int context) {
    const std::lock_guard lock(mutex);
    if (!living.insert(context).second)
      throw Error(ErrorKind::argument, "rank " + std::to_string(facts.rank) + " has a virtual communicator with context " +
                                           std::to_string(context) + " already: release it, or pass another context, below " +
                                           std::to_string(contexts) + ", at all members of the new one");
  }
  void give_back(int context) {
    const std::lock_guard lock(mutex);
    living.erase(context);
  }

  MPI_Comm comm = MPI_COMM_NULL;
  CommFacts facts;
  int tag_bits, contexts;
  std::mutex mutex;  // of the following
  std::set<int> living;
};

struct VirtualComm::State {
  State(std::shared_ptr<Trunk> of, RankMap members, std::optional<int> given)
      : trunk(std::move(of)), rank(members.rank(trunk->facts.rank)), map(members.with_lookup(LookupKind::lazy)) {
    if (given && (*given < 0 || *given >= trunk->contexts))
      throw Error(ErrorKind::argument,
                  "context " + std::to_string(*given) + " is outside [0, " + std::to_string(trunk->contexts) + ")");
    context = given ? *given : context_of(map, trunk->contexts);
    if (rank != nobody) trunk->take(context);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (comm != MPI_COMM_NULL && mpi_alive()) MPI_Comm_free(&comm);
    if (rank != nobody) trunk->give_back(context);
  }

  /// The same for all who have the same members in the same order, in whatever form.
  static int context_of(const RankMap& map, int contexts) {
    if (map.ascending() && map.size() == map.world()) return 0;
    Digest digest;
    digest.mix(std::uint64_t(map.size()));
    Members(map).each_piece([&](Index, std::span<const Index> values) { digest.mix(values); });
    return 1 + int(digest.value() % std::uint64_t(contexts - 1));
  }
  /// One tag of each context is this library's own.
  int own_tag() const { return context << trunk->tag_bits | ((1 << trunk->tag_bits) - 1); }

  std::shared_ptr<Trunk> trunk;
  Index rank;
  RankMap map;
  int context;
  std::mutex mutex;  // of the following
  MPI_Comm comm = MPI_COMM_NULL;
};

VirtualComm VirtualComm::made(std::shared_ptr<Trunk> trunk, RankMap map, std::optional<int> context) {
  return VirtualComm(std::make_shared<State>(std::move(trunk), std::move(map), context));
}

VirtualComm VirtualComm::over(CommHandle comm) {
  auto trunk = std::make_shared<Trunk>(usable(comm));
  const Index size = trunk->facts.size;
  return made(std::move(trunk), RankMap::whole(size), {});
}

VirtualComm VirtualComm::sub(const RankMap& positions, std::optional<int> context) const {
  if (positions.world() != size())
    throw Error(ErrorKind::argument, "positions are of a world of " + std::to_string(positions.world()) +
                                         " ranks, the virtual communicator has " + std::to_string(size()) + " members");
  return made(state_->trunk, RankMap::child(map(), positions), context);
}

VirtualComm VirtualComm::create(const RankMap& ranks, std::optional<int> context) const {
  if (ranks.world() != state_->trunk->facts.size)
    throw Error(ErrorKind::argument, "the map is of a world of " + std::to_string(ranks.world()) + " ranks, the communicator has " +
                                         std::to_string(state_->trunk->facts.size));
  return made(state_->trunk, ranks, context);
}

VirtualComm VirtualComm::split(Index colour, Index key, std::optional<int> context) const {
  const State& state = member();
  return sub(split_along({state.trunk->comm, state.map, state.rank, state.own_tag()}, colour, key), context);
}

const RankMap& VirtualComm::map() const { return state_->map; }
Index VirtualComm::rank() const { return state_->rank; }
int VirtualComm::tag_ub() const { return (1 << state_->trunk->tag_bits) - 2; }
int VirtualComm::context() const { return state_->context; }
int VirtualComm::contexts() const { return state_->trunk->contexts; }
CommHandle VirtualComm::traffic() const { return state_->trunk->comm; }

int VirtualComm::wire_tag(int tag) const {
  member();
  if (tag < 0 || tag > tag_ub())
    throw Error(ErrorKind::argument, "tag " + std::to_string(tag) + " is outside [0, " + std::to_string(tag_ub()) +
                                         "]; a receive names its tag");
  return state_->context << state_->trunk->tag_bits | tag;
}

const VirtualComm::State& VirtualComm::member() const {
  if (state_->rank == nobody)
    throw Error(ErrorKind::argument, "rank " + std::to_string(state_->trunk->facts.rank) + " is none of the " +
                                         std::to_string(size()) + " members of this virtual communicator");
  return *state_;
}

CommHandle VirtualComm::comm() const {
  member();
  const std::lock_guard lock(state_->mutex);
  if (state_->comm == MPI_COMM_NULL)
    state_->comm = create_communicator(state_->map, state_->trunk->comm, state_->context).get<MPI_Comm>();
  return state_->comm;
}

// ---- messages -------------------------------------------------------------------------------------------------------------------

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
  }

  VirtualComm between;
  Index peer, bytes;
  ByteCount size;
  bool leaving;
  MPI_Request request = MPI_REQUEST_NULL;
  std::optional<Arrival> arrival;
};

Message::Message(std::unique_ptr<Flying> flying) : flying_(std::move(flying)) {}
Message::Message(Message&&) noexcept = default;
Message& Message::operator=(Message&&) noexcept = default;
Message::~Message() = default;

bool Message::test() {
  if (flying_->arrival) return true;
  int done = 0;
  MPI_Status status;
  check_mpi(MPI_Test(&flying_->request, &done, &status), "MPI_Test");
  if (done) flying_->complete(status);
  return done != 0;
}

Arrival Message::wait() {
  if (!flying_->arrival) {
    MPI_Status status;
    check_mpi(MPI_Wait(&flying_->request, &status), "MPI_Wait");
    flying_->complete(status);
  }
  return *flying_->arrival;
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
  check_mpi(MPI_Isend(data, flying->size.count(), flying->size.type(), int(peer(to)), wire_tag(tag), state.trunk->comm,
                      &flying->request),
            "MPI_Isend");
  return Message(std::move(flying));
}

Message VirtualComm::start_receive(void* data, Index bytes, Index from, int tag) const {
  check_bytes(bytes);
  const State& state = member();
  const int source = from == any_source ? MPI_ANY_SOURCE : int(peer(from));
  auto flying = std::make_unique<Message::Flying>(*this, from, bytes, false);
  check_mpi(MPI_Irecv(data, flying->size.count(), flying->size.type(), source, wire_tag(tag), state.trunk->comm, &flying->request),
            "MPI_Irecv");
  return Message(std::move(flying));
}

void VirtualComm::send(const void* data, Index bytes, Index to, int tag) const { start_send(data, bytes, to, tag).wait(); }

Arrival VirtualComm::receive(void* data, Index bytes, Index from, int tag) const {
  return start_receive(data, bytes, from, tag).wait();
}

}  // namespace longshore::mpi

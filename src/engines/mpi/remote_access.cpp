#include "engines/mpi/remote_access.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "longshore/mpi/datatypes.hpp"
#include "mpi/byte_count.hpp"

namespace longshore::mpi {

namespace {

/// Large accesses go in pieces, of which few are under way to one process: whatever else is to go the same way waits
/// for these at most. What is asked of that process by another one would wait for all of a large answer, and with it
/// its own large answer, so that two would get from each other one after the other.
constexpr Index piece_bytes = 128 << 10;
constexpr int most_under_way = 4;
/// Of what comes from other nodes by messages, for Open MPI sends what is longer only when it has been asked to.
constexpr Index far_letter_bytes = 60 << 10;
/// From which on an access is announced to the owner. The thread for progress there guesses from the time that a call
/// of MPI takes whether it has done anything; where it rested and found a piece after each pause, it took that for the
/// usual, and 8 MB came in 270 ms instead of 3.
constexpr Index announced_bytes = 4 << 10;
/// From which on a get that would send as much as it gets goes by messages: these wait for the owner's thread.
constexpr Index long_bytes = 16 << 10;

/// Where one side of a relation begins, if it is dense there and in message order.
std::optional<Index> dense_from(const AddressRelation& relation, Side side) {
  const auto* nest = relation.parts().size() == 1 ? std::get_if<LoopNest>(&relation.parts().front()) : nullptr;
  if (!nest) return std::nullopt;
  return side == Side::source ? nest->contiguous_source() : nest->contiguous_destination();
}

/// Whether a relation lies at one side in so many stretches, and so short ones, that the owner had better gather them.
bool is_scattered(const AddressRelation& relation, Side side) {
  constexpr Index short_bytes = 256, many = 64;
  const auto* nest = relation.parts().size() == 1 ? std::get_if<LoopNest>(&relation.parts().front()) : nullptr;
  Index stretch = relation.element_bytes();
  if (nest) stretch = (side == Side::source ? nest->source_pattern() : nest->destination_pattern()).block_bytes;
  return stretch <= short_bytes && relation.bytes() >= many * stretch;
}

/// The same pairs in the order in which they lie at one side, where nothing need be sorted for that: what is dense
/// there goes as one stretch, whatever its order is here.
AddressRelation in_order_at(Side side, const AddressRelation& relation) {
  const auto order = side == Side::source ? PairOrder::source_first : PairOrder::destination_first;
  return relation.nest_in_order(order).value_or(relation);
}

/// The side of a relation that another process has, as MPI takes it: a place, a count and a datatype.
class Target {
 public:
  Target(const AddressRelation& relation, Side side) {
    if (const auto first = dense_from(relation, side))
      offset = *first, bytes_.emplace(relation.bytes());
    else
      made_ = to_datatype(relation, side).get<MPI_Datatype>();
  }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;
  ~Target() {
    if (!bytes_ && mpi_alive()) MPI_Type_free(&made_);
  }
  int count() const { return bytes_ ? bytes_->count() : 1; }
  MPI_Datatype type() const { return bytes_ ? bytes_->type() : made_; }
  Index offset = 0;

 private:
  std::optional<ByteCount> bytes_;
  MPI_Datatype made_ = MPI_DATATYPE_NULL;
};

/// Open MPI gets through messages of its own where its transport cannot get, as over TCP: what it asks with is as long
/// as what it asks for, and twice as long from 64 KiB on (5.0.11), so that two ranks that get from each other wait for
/// two and three times the bytes. It takes that way unless another library has the transport.
bool gets_send_as_much() {
#ifdef OPEN_MPI
  static const bool known = [] {
    int level = 0, index = 0;
    MPI_Query_thread(&level);  // which asking for another one would change for all of MPI
    if (MPI_T_init_thread(level, &level) != MPI_SUCCESS) return false;
    const bool own_messages = MPI_T_cvar_get_index("pml_ob1_priority", &index) == MPI_SUCCESS;
    MPI_T_finalize();
    return own_messages;
  }();
  return known;
#else
  return false;
#endif
}

/// One more, for a while.
class Counted {
 public:
  explicit Counted(std::atomic<int>& count) : count_(count) { ++count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --count_; }

 private:
  std::atomic<int>& count_;
};

}  // namespace

void RemoteAccesses::go_on() {
  if (const auto served = messages ? messages->serve() : Woken::no; served != Woken::no && progress)
    progress->wake(served);
  for (auto* access : in_pieces) access->go_on();
  std::erase_if(in_pieces, [](const RemoteAccess* access) { return !access->has_more(); });
}

RemoteAccesses::RemoteAccesses(std::shared_ptr<Communicator> of)
    : communicator(std::move(of)), far_gets_by_messages(gets_send_as_much()) {}

RemoteAccess::RemoteAccess(std::shared_ptr<RemoteAccesses> all, std::shared_ptr<const Window> window, int rank,
                           Index number, Index displacement, bool put)
    : all_(std::move(all)),
      window_(std::move(window)),
      rank_(rank),
      near_(all_->communicator->node_rank_of(rank) >= 0),
      number_(number),
      displacement_(displacement),
      put_(put),
      patience_(*all_->communicator) {}

RemoteAccess::~RemoteAccess() {
  try {
    if (begun_ && !done_ && mpi_alive()) wait();
  } catch (const Error&) {  // its owner has gone: nobody will write here any more
  }
  if (!in_pieces_) return;
  const auto turn = turn_in_mpi();
  std::erase(all_->in_pieces, this);
  under_way() -= int(requests_.size());
}

/// MPI is given dense memory of this process: MPICH 5.0.2 writes to wrong places where it is not, over OFI's
/// libraries at least.
void RemoteAccess::begin_get(const AddressRelation& given, std::byte* to) {
  const auto relation = in_order_at(Side::source, given);
  if (const auto first = dense_from(relation, Side::destination)) {
    here_ = to + *first;
  } else {
    here_ = stage(relation);
    unpack_.emplace(relation), to_ = to;
  }
  begin(relation);
}

void RemoteAccess::begin_put(const AddressRelation& given, const std::byte* from) {
  const auto relation = in_order_at(Side::destination, given);
  if (const auto first = dense_from(relation, Side::source)) {
    here_ = const_cast<std::byte*>(from + *first);  // which is only read
  } else {
    here_ = stage(relation);
    Assembler(relation).run(here_, from);
  }
  begin(relation);
}

bool RemoteAccess::test() {
  if (done_) return true;
  check_not_finalised();
  const auto turn = turn_in_mpi();
  all_->go_on();
  if (!in_pieces_) go_on();
  if (failure_) std::rethrow_exception(failure_);
  if (!requests_.empty() || asked_ < elements_) return false;
  // Of a put the request says that the buffer is free again, not that the data is there.
  if (put_ && !by_messages_) check_mpi(MPI_Win_flush(rank_, all_->window), "MPI_Win_flush");
  if (unpack_) unpack_->run(to_, staged_.get());
  return done_ = true;
}

void RemoteAccess::wait() {
  const auto& communicator = *all_->communicator;
  const Counted counted(communicator.callers());
  while (!test()) {
    patience_.nothing([this] { return std::vector<Awaited>{{rank_}}; });
    if (communicator.crowded()) sched_yield();
  }
}

void RemoteAccess::go_on() {
  try {
    while (!requests_.empty()) {
      int complete = 0, came = 0;
      MPI_Status status;
      check_mpi(MPI_Test(&requests_.front().request, &complete, &status), "MPI_Test");
      if (!complete) break;
      if (by_messages_ && (MPI_Get_count(&status, MPI_BYTE, &came), came != requests_.front().bytes))
        throw Error(ErrorKind::transport, "rank " + std::to_string(rank_) + " has refused an access to array " +
                                              std::to_string(number_) + " of the window");
      requests_.pop_front();
      if (in_pieces_) --under_way();
      if (all_->progress) all_->progress->wake(near_ ? Woken::near : Woken::far);
    }
    const Index step = largest_piece() / relation_.element_bytes();
    while (asked_ < elements_ && under_way() < most_under_way) {
      const Index last = std::min(asked_ + step, elements_);
      ask(relation_.restrict(asked_, last), here_ + asked_ * relation_.element_bytes());
      asked_ = last;
      ++under_way();
    }
  } catch (...) {
    failure_ = std::current_exception();
  }
}

bool RemoteAccess::goes_by_messages(const AddressRelation& relation) const {
  if (is_scattered(relation, put_ ? Side::destination : Side::source)) return true;
  return all_->far_gets_by_messages && !put_ && !near_ && relation.bytes() >= long_bytes &&
         relation.element_bytes() <= far_letter_bytes;
}

Index RemoteAccess::largest_piece() const { return by_messages_ && !near_ ? far_letter_bytes : piece_bytes; }

/// Only where a thread sees to it does the rest of it come while this process computes.
void RemoteAccess::begin(const AddressRelation& relation) {
  {
    const auto turn = turn_in_mpi();
    by_messages_ = all_->messages && goes_by_messages(relation);
    if (!all_->progress || relation.bytes() <= largest_piece() || relation.element_bytes() > largest_piece()) {
      ask(relation, here_);
      begun_ = true;
      return;
    }
    relation_ = relation, elements_ = relation.elements();
    all_->in_pieces.push_back(this);
    begun_ = in_pieces_ = true;
    all_->go_on();
  }
  all_->progress->wake(near_ ? Woken::near : Woken::far);
}

void RemoteAccess::ask(const AddressRelation& relation, std::byte* here) {
  if (by_messages_) {
    auto& messages = *all_->messages;
    requests_.push_back(put_ ? messages.put(rank_, number_, relation, here)
                             : messages.get(rank_, number_, relation, here));
    return;
  }
  if (all_->messages && relation.bytes() >= announced_bytes) all_->messages->announce(rank_);
  const Target theirs(relation, put_ ? Side::destination : Side::source);
  const ByteCount bytes(relation.bytes());
  const MPI_Aint place = MPI_Aint(displacement_) + MPI_Aint(theirs.offset);
  MPI_Request request = MPI_REQUEST_NULL;
  if (put_)
    check_mpi(MPI_Rput(here, bytes.count(), bytes.type(), rank_, place, theirs.count(), theirs.type(), all_->window,
                       &request),
              "MPI_Rput");
  else
    check_mpi(MPI_Rget(here, bytes.count(), bytes.type(), rank_, place, theirs.count(), theirs.type(), all_->window,
                       &request),
              "MPI_Rget");
  requests_.push_back({request});
}

std::byte* RemoteAccess::stage(const AddressRelation& relation) {
  staged_ = std::make_unique_for_overwrite<std::byte[]>(std::size_t(relation.bytes()));
  return staged_.get();
}

}  // namespace longshore::mpi

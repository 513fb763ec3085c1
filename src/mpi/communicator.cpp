#include "mpi/communicator.hpp"

#include <sched.h>

#include <algorithm>
#include <array>

#include "mpi/attribute.hpp"
#include "mpi/byte_count.hpp"

namespace longshore::mpi {

namespace {

// MPI runs a delete callback with whatever was stored, also inside MPI_Finalize, where communicators cannot be freed
// any more. An attribute of MPI_COMM_SELF goes first then and tells.
std::atomic<bool> finalising = false;
bool threads_out = false;  // of keep_threads_out()
std::mutex mpi_mutex;      // of it, of threads for progress, of those who keep them out, and of who finalises MPI

int note_finalise(MPI_Comm, int, void*, void*) {
  const std::lock_guard lock(mpi_mutex);
  finalising = true;
  return MPI_SUCCESS;
}

}  // namespace

int new_attribute_key(MPI_Comm_delete_attr_function* forget) {
  static const bool farewell = [] {
    int key = MPI_KEYVAL_INVALID;
    check_mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, note_finalise, &key, nullptr), "MPI_Comm_create_keyval");
    check_mpi(MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr), "MPI_Comm_set_attr");
    return true;
  }();
  static_cast<void>(farewell);
  int key = MPI_KEYVAL_INVALID;
  check_mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key, nullptr), "MPI_Comm_create_keyval");
  return key;
}

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING + 1> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
  throw Error(ErrorKind::transport, std::string(call) + ": " + std::string(text.data(), std::size_t(length)));
}

MPI_Comm duplicate(MPI_Comm comm) {
  MPI_Comm made = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(comm, &made), "MPI_Comm_dup");
  check_mpi(MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check_mpi(MPI_Barrier(made), "MPI_Barrier");  // what is on its way comes meanwhile
  for (;;) {
    int left = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    check_mpi(MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, made, &left, &message, &status), "MPI_Improbe");
    if (!left) break;
    std::vector<std::byte> ignored(std::size_t(ByteCount::received(status)));
    const ByteCount bytes(Index(ignored.size()));
    check_mpi(MPI_Mrecv(ignored.data(), bytes.count(), bytes.type(), &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
  }
  check_mpi(MPI_Barrier(made), "MPI_Barrier");
  return made;
}

bool mpi_alive() {
  int initialised = 0, finalised = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  return initialised && !finalised && !finalising;
}

void check_running() {
  int initialised = 0, finalised = 0;
  MPI_Initialized(&initialised);
  if (!initialised) throw Error(ErrorKind::argument, "MPI is not initialised: call MPI_Init before Longshore");
  MPI_Finalized(&finalised);
  if (finalised || finalising) throw Error(ErrorKind::argument, "MPI is finalised already");
}

void check_not_finalised() {
  if (finalising.load(std::memory_order_relaxed)) check_running();
}

MPI_Comm usable(CommHandle handle) {
  check_running();
  const auto comm = handle.get<MPI_Comm>();
  if (comm == MPI_COMM_NULL) throw Error(ErrorKind::argument, "the communicator is MPI_COMM_NULL");
  int inter = 0;
  check_mpi(MPI_Comm_test_inter(comm, &inter), "MPI_Comm_test_inter");
  if (inter)
    throw Error(ErrorKind::argument, "an inter-communicator cannot carry a layout: merge it with MPI_Intercomm_merge");
  return comm;
}

CommFacts comm_facts(CommHandle handle) {
  const MPI_Comm comm = usable(handle);
  CommFacts facts;
  check_mpi(MPI_Comm_rank(comm, &facts.rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(comm, &facts.size), "MPI_Comm_size");
  return facts;
}

std::shared_ptr<Communicator> Communicator::of(CommHandle handle) {
  const MPI_Comm comm = usable(handle);
  return kept_with<Communicator>(comm, [&] { return std::shared_ptr<Communicator>(new Communicator(comm)); });
}

Communicator::Communicator(MPI_Comm comm) {
  world_ = duplicate(comm);
  check_mpi(MPI_Comm_rank(world_, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(world_, &size_), "MPI_Comm_size");
  int* bound = nullptr;
  int found = 0;
  check_mpi(MPI_Comm_get_attr(world_, MPI_TAG_UB, &bound, &found), "MPI_Comm_get_attr");
  if (found && *bound > 1) tags_ = unsigned(*bound) - 1;
  learn_node();
  // Each process of the node has a few arrays that others use in turns.
  memory_ = std::make_unique<NodeMemory>(std::max<std::size_t>(64, 4 * node_ranks_.size()));
  board_ = NodeBoard::make(node_, crowded_);
}

void Communicator::learn_node() {
  check_mpi(MPI_Comm_split_type(world_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node_), "MPI_Comm_split_type");
  check_mpi(MPI_Comm_set_errhandler(node_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  int size = 1;
  check_mpi(MPI_Comm_rank(node_, &node_rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(node_, &size), "MPI_Comm_size");
  node_ranks_.resize(std::size_t(size));
  check_mpi(MPI_Allgather(&rank_, 1, MPI_INT, node_ranks_.data(), 1, MPI_INT, node_), "MPI_Allgather");

  const ProcessId me = this_process();
  node_processes_.resize(node_ranks_.size());
  check_mpi(MPI_Allgather(&me, sizeof me, MPI_BYTE, node_processes_.data(), sizeof me, MPI_BYTE, node_),
            "MPI_Allgather");
  for (auto& process : node_processes_) process = visible(process);

  // The processors that anybody here may use, counted together: bound ranks have one each, unbound ones share all.
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof mine, &mine) != 0) return;
  cpu_set_t all;
  static_assert(sizeof mine % sizeof(unsigned long) == 0);
  check_mpi(MPI_Allreduce(&mine, &all, sizeof mine / sizeof(unsigned long), MPI_UNSIGNED_LONG, MPI_BOR, node_),
            "MPI_Allreduce");
  crowded_ = CPU_COUNT(&all) < size;
}

Communicator::~Communicator() = default;

void Communicator::release() {
  board_.reset();
  memory_->forget_views();
  if (!finalising) {
    if (node_ != MPI_COMM_NULL) MPI_Comm_free(&node_);
    if (world_ != MPI_COMM_NULL) MPI_Comm_free(&world_);
  }
  node_ = world_ = MPI_COMM_NULL;
}

MPI_Comm Communicator::world() const {
  check_not_finalised();
  if (world_ == MPI_COMM_NULL)
    throw Error(ErrorKind::argument, "the communicator of this mover was freed: free it after the last move");
  return world_;
}

MPI_Comm Communicator::node() const {
  world();
  return node_;
}

int Communicator::node_rank_of(int world_rank) const {
  const auto place = std::lower_bound(node_ranks_.begin(), node_ranks_.end(), world_rank);
  return place != node_ranks_.end() && *place == world_rank ? int(place - node_ranks_.begin()) : -1;
}

bool Communicator::has_ended(int world_rank) const {
  const int place = node_rank_of(world_rank);
  return place >= 0 && mpi::has_ended(node_processes_[std::size_t(place)]);
}

std::int64_t Communicator::process_number(int world_rank) const {
  return node_processes_[std::size_t(node_rank_of(world_rank))].number;
}

void Communicator::take_off(std::shared_ptr<Flight> flight) {
  std::lock_guard lock(mutex_);
  flights_.push_back(std::move(flight));
  flying_.store(int(flights_.size()), std::memory_order_relaxed);
}

void Communicator::land(const Flight& flight) {
  std::lock_guard lock(mutex_);
  std::erase_if(flights_, [&](const auto& other) { return other.get() == &flight; });
  flying_.store(int(flights_.size()), std::memory_order_relaxed);
}

bool Communicator::help_others(const Flight& mine) {
  if (flying_.load(std::memory_order_relaxed) < 2) return false;
  std::vector<std::shared_ptr<Flight>> flights;
  {
    std::lock_guard lock(mutex_);
    flights = flights_;
  }
  bool helped = false;
  for (const auto& flight : flights)
    if (flight.get() != &mine) helped |= flight->help();
  return helped;
}

void Communicator::give_up(Index mover, const std::set<int>& ranks) const {
  if (world_ == MPI_COMM_NULL || !mpi_alive() || ranks.empty()) return;
  const Index* const number = new Index(mover);  // which stays for good: MPI finishes the messages by itself
  for (const int rank : ranks) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Isend(number, sizeof *number, MPI_BYTE, rank, int(tags_), world_, &request);
    if (code == MPI_SUCCESS) MPI_Request_free(&request);
  }
}

bool Communicator::has_given_up(int rank, Index mover) {
  if (world_ == MPI_COMM_NULL || !mpi_alive()) return false;
  std::lock_guard lock(mutex_);
  for (;;) {
    int arrived = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    Index gone = 0;
    check_mpi(MPI_Improbe(rank, int(tags_), world_, &arrived, &message, MPI_STATUS_IGNORE), "MPI_Improbe");
    if (!arrived) return given_up_.contains({rank, mover});
    check_mpi(MPI_Mrecv(&gone, sizeof gone, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
    given_up_.emplace(rank, gone);
  }
}

void Communicator::probe() const {
  if (world_ == MPI_COMM_NULL || !mpi_alive()) return;
  // For what nobody sends: where MPI finds something at once, such as a word of give_up() that nobody waits for, it
  // does nothing else.
  int arrived = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, int(tags_) + 1, world_, &arrived, MPI_STATUS_IGNORE);
}

void Communicator::poke() const {
  probe();
  do_besides();
}

std::unique_lock<std::mutex> turn_in_mpi() { return std::unique_lock(mpi_mutex); }

void keep_threads_out() {
  const std::lock_guard lock(mpi_mutex);
  threads_out = true;
}

bool Communicator::poke_unless_finalising() const {
  const std::lock_guard lock(mpi_mutex);
  if (threads_out || !mpi_alive()) return false;
  probe();
  for (const auto& [name, what] : besides_) what();
  return true;
}

void Communicator::add_besides(const void* name, std::function<void()> what) {
  const std::lock_guard lock(mpi_mutex);
  besides_.emplace_back(name, std::move(what));
  has_besides_ = true;
}

void Communicator::remove_besides(const void* name) {
  const std::lock_guard lock(mpi_mutex);
  std::erase_if(besides_, [&](const auto& one) { return one.first == name; });
  has_besides_ = !besides_.empty();
}

void Communicator::do_besides() const {
  if (!has_besides_) return;
  const std::unique_lock lock(mpi_mutex, std::try_to_lock);
  if (!lock || !mpi_alive()) return;
  for (const auto& [name, what] : besides_) what();
}

}  // namespace longshore::mpi

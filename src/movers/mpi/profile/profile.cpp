#include "movers/mpi/profile/profile.hpp"

#include <cstring>
#include <new>

#include "longshore/ranks/rank_groups.hpp"
#include "movers/mpi/profile/gather.hpp"
#include "movers/profile/report.hpp"

namespace longshore::profile {

namespace {

using Clock = std::chrono::steady_clock;

// Where nothing is known of a group MPI is asked, which takes Open MPI a time of the product of both sizes.
constexpr Index most_comparisons = Index{1} << 20;

std::uint64_t bits(MPI_Group group) {
  std::uint64_t value = 0;
  std::memcpy(&value, &group, sizeof group);
  return value;
}

int copied(MPI_Comm, int, void* ledger, void* list, void* copy, int* kept) {
  static_cast<Ledger*>(ledger)->hold(static_cast<Ledger::List*>(list));
  *static_cast<void**>(copy) = list;
  *kept = 1;
  return MPI_SUCCESS;
}

int deleted(MPI_Comm, int, void* list, void* ledger) {
  static_cast<Ledger*>(ledger)->release(static_cast<Ledger::List*>(list));
  return MPI_SUCCESS;
}

/// What each member of a communicator says.
std::vector<Index> all_say(int word, MPI_Comm comm) {
  int size = 0;
  mpi().Comm_size(comm, &size);
  std::vector<int> words(std::size_t(size), 0);
  mpi().Allgather(&word, sizeof word, mpi().byte, words.data(), sizeof word, mpi().byte, comm);
  return std::vector<Index>(words.begin(), words.end());
}

/// The rank in the world of who follows this process in a communicator, or a number below zero where it is of another world.
int follower(MPI_Comm comm) {
  int rank = 0, size = 0, found = 0;
  mpi().Comm_rank(comm, &rank), mpi().Comm_size(comm, &size);
  const int next = (rank + 1) % size;
  MPI_Group here, everybody;
  mpi().Comm_group(comm, &here), mpi().Comm_group(mpi().comm_world, &everybody);
  mpi().Group_translate_ranks(here, 1, &next, everybody, &found);
  mpi().Group_free(&here), mpi().Group_free(&everybody);
  return found;
}

}  // namespace

/// Measures what the profile takes of the program's time, and keeps its errors from the program.
class Profile::Watch {
 public:
  explicit Watch(Profile& profile) : profile_(profile) {}
  ~Watch() { profile_.spent_ns_ += std::chrono::nanoseconds(Clock::now() - begun_).count(); }

  /// Whether all went well.
  template <class Work>
  bool run(const Work& work) noexcept {
    try {
      work();
      return true;
    } catch (...) {
      return false;
    }
  }

 private:
  Profile& profile_;
  Clock::time_point begun_ = Clock::now();
};

void Profile::start() noexcept {
  if (running_) return;
  begun_ = Clock::now();
  Watch watch(*this);
  watch.run([&] {
    mpi().Comm_rank(mpi().comm_world, &rank_);
    mpi().Comm_size(mpi().comm_world, &size_);
    ledger_.begin(rank_);
    MPI_Comm parent;
    mpi().Comm_get_parent(&parent);
    spawned_ = parent != mpi().comm_null;
    mpi().Comm_create_keyval(copied, deleted, &key_, &ledger_);
    mpi().Comm_set_attr(mpi().comm_world, key_, ledger_.add("MPI_Init", {RankMap::whole(size_), {}}));
    const Index self = rank_;
    mpi().Comm_set_attr(mpi().comm_self, key_,
                        ledger_.add_predefined({RankMap::of(std::span(&self, 1), size_), {}}));
    running_ = true;
  });
}

Ledger::List* Profile::list_of(MPI_Comm comm) const {
  if (comm == mpi().comm_null) return nullptr;
  void* value = nullptr;
  int found = 0;
  mpi().Comm_get_attr(comm, key_, &value, &found);
  return found ? static_cast<Ledger::List*>(value) : nullptr;
}

void Profile::communicator(const char* call, MPI_Comm parent, MPI_Comm made) noexcept {
  if (!running_ || made == mpi().comm_null) return;
  Watch watch(*this);
  watch.run([&] {
    const Ledger::List* of = list_of(parent);
    if (of == nullptr)
      ledger_.lost(call);
    else
      mpi().Comm_set_attr(made, key_, new_list(call, of, made));
  });
}

Ledger::List* Profile::new_list(const char* call, const Ledger::List* parent, MPI_Comm made) {
  if (!ledger_.members(parent)) return ledger_.add_unknown(call);
  try {
    return ledger_.add(call, exchange(made));
  } catch (const Error&) {  // one of another world is among them
    return ledger_.add_unknown(call);
  }
}

void Profile::duplicate(const char* call, MPI_Comm parent) noexcept {
  if (!running_) return;
  Watch watch(*this);
  watch.run([&] {
    if (const Ledger::List* list = list_of(parent))
      ledger_.duplicated(call, list);
    else
      ledger_.lost(call);
  });
}

Roster Profile::exchange(MPI_Comm made) const {
  int between = 0;
  mpi().Comm_test_inter(made, &between);
  if (!between) return {RankMap::of(all_say(rank_, made), size_), {}};
  int rank = 0, size = 0, merged_rank = 0;
  mpi().Comm_rank(made, &rank), mpi().Comm_size(made, &size);
  MPI_Comm merged;
  mpi().Intercomm_merge(made, 0, &merged);
  mpi().Comm_rank(merged, &merged_rank);
  // Only here processes of different worlds can meet. Then there is one that is followed by one of another.
  const auto all = all_say(follower(merged) < 0 ? nobody : rank_, merged);
  mpi().Comm_free(&merged);
  // One group comes after the other, each in its order.
  const std::size_t cut = merged_rank == rank ? std::size_t(size) : all.size() - std::size_t(size);
  const RankMap first = RankMap::of(std::span(all).first(cut), size_), second = RankMap::of(std::span(all).subspan(cut), size_);
  return first.select(0) < second.select(0) ? Roster{first, second} : Roster{second, first};
}

void Profile::group_of(const char* call, MPI_Comm comm, bool remote, MPI_Group made) noexcept {
  if (!running_) return;
  Watch watch(*this);
  const bool known = watch.run([&] {
    Ledger::List* list = list_of(comm);
    const auto members = list != nullptr ? ledger_.members(list) : std::nullopt;
    if (!members) throw Error(ErrorKind::argument, "nobody follows the communicator");
    if (members->remote.empty()) {
      ledger_.hold_group(call, list, bits(made));
      return;
    }
    // Of the two groups of an intercommunicator, its process is in the local one.
    const bool first = members->local.contains(rank_);
    ledger_.add_group(call, first == remote ? members->remote : members->local, bits(made));
  });
  if (!known) ledger_.lost(call);
}

void Profile::group(const char* call, MPI_Group made, const std::function<RankMap()>& derive) noexcept {
  if (!running_ || made == mpi().group_null || made == mpi().group_empty) return;
  Watch watch(*this);
  const bool known = watch.run([&] {
    const RankMap members = derive();
    int size = 0;
    mpi().Group_size(made, &size);
    if (members.size() != size) throw Error(ErrorKind::argument, "MPI has another number of members");
    if (size > 0) ledger_.add_group(call, members, bits(made));
  });
  if (!known) ledger_.lost(call);
}

void Profile::forget(MPI_Group group) noexcept {
  if (!running_) return;
  Watch watch(*this);
  ledger_.free_group(bits(group));
}

RankMap Profile::members(MPI_Group group) const {
  if (group == mpi().group_empty) return RankMap(AffineNest(), size_, true);
  if (auto known = ledger_.group(bits(group))) return *std::move(known);
  int size = 0;
  mpi().Group_size(group, &size);
  if (checked_mul(size, size_) > most_comparisons)
    throw Error(ErrorKind::argument, "a group of " + std::to_string(size) + " ranks is too large to ask MPI for all of them");
  std::vector<int> positions(std::size_t(size), 0), ranks(std::size_t(size), 0);
  for (int i = 0; i < size; ++i) positions[std::size_t(i)] = i;
  MPI_Group everybody;
  mpi().Comm_group(mpi().comm_world, &everybody);
  mpi().Group_translate_ranks(group, size, positions.data(), everybody, ranks.data());
  mpi().Group_free(&everybody);
  return RankMap::of(std::vector<Index>(ranks.begin(), ranks.end()), size_);  // MPI_UNDEFINED is below zero and refused
}

double Profile::seconds_since_start() const { return std::chrono::duration<double>(Clock::now() - begun_).count(); }

void Profile::finish() noexcept {
  if (!running_.exchange(false)) return;
  Summary own;
  own.family = RunningMpi::family;
  own.world = size_, own.processes = 1;
  own.run_s = seconds_since_start();
  own.profile_s = own.profile_sum_s = double(spent_ns_) * 1e-9;
  Watch watch(*this);
  watch.run([&] {
    ledger_.summary(own);
    MPI_Comm apart;
    mpi().Comm_dup(mpi().comm_world, &apart);
    const Summary all = gather(std::move(own), apart);
    mpi().Comm_free(&apart);
    if (rank_ == 0) publish(all, spawned_);
  });
}

Profile& profile() {
  alignas(Profile) static std::byte room[sizeof(Profile)];
  static auto& only = *new (room) Profile;
  return only;
}

}  // namespace longshore::profile

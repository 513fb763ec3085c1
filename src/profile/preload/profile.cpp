#include "profile/preload/profile.hpp"

#include <cstring>
#include <new>

#include "longshore/ranks/rank_groups.hpp"
#include "profile/preload/gather.hpp"
#include "profile/report.hpp"

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

/// What each member of a communicator says. Collective over it.
std::vector<Index> all_say(int word, MPI_Comm comm) {
  int size = 0;
  mpi().Comm_size(comm, &size);
  std::vector<int> words(std::size_t(size), 0);
  if (mpi().Allgather(&word, sizeof word, mpi().byte, words.data(), sizeof word, mpi().byte, comm) != MPI_SUCCESS)
    throw Error(ErrorKind::transport,
                "the members of a communicator of " + std::to_string(size) + " ranks could not be gathered");
  return std::vector<Index>(words.begin(), words.end());
}

struct HeldGroup {
  MPI_Group group = mpi().group_null;
  ~HeldGroup() { mpi().Group_free(&group); }
};

/// Of a group in a world of this size, as MPI says it.
RankMap asked(MPI_Group group, int world) {
  int size = 0;
  mpi().Group_size(group, &size);
  if (checked_mul(size, world) > most_comparisons)
    throw Error(ErrorKind::argument,
                "a group of " + std::to_string(size) + " ranks is too large to ask MPI for all of them");
  std::vector<int> positions(std::size_t(size), 0), ranks(std::size_t(size), 0);
  for (int i = 0; i < size; ++i) positions[std::size_t(i)] = i;
  HeldGroup everybody;
  mpi().Comm_group(mpi().comm_world, &everybody.group);
  mpi().Group_translate_ranks(group, size, positions.data(), everybody.group, ranks.data());
  return RankMap::of(std::vector<Index>(ranks.begin(), ranks.end()), world);  // MPI_UNDEFINED is below zero and refused
}

/// The groups of an intercommunicator, without a word between them: their processes may be of different worlds.
Roster both_groups(MPI_Comm made, int world) {
  HeldGroup here, there;
  mpi().Comm_group(made, &here.group), mpi().Comm_remote_group(made, &there.group);
  const RankMap local = asked(here.group, world), remote = asked(there.group, world);
  return local.select(0) < remote.select(0) ? Roster{local, remote} : Roster{remote, local};
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
    mpi().Comm_set_attr(mpi().comm_self, key_, ledger_.add_predefined({RankMap::of(std::span(&self, 1), size_), {}}));
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
  int between = 0;
  mpi().Comm_test_inter(made, &between);
  // Whether it is followed all members have to decide alike, whatever went wrong in some of them.
  Ledger::List* list = nullptr;
  if (between)
    watch.run([&] { list = ledger_.add(call, both_groups(made, size_)); });
  else if (list_of(parent) != nullptr && !watch.run([&] {
             list = ledger_.add(call, {RankMap::of(all_say(rank_, made), size_), {}});
           }))
    list = ledger_.add_unknown(call);
  if (list != nullptr)
    mpi().Comm_set_attr(made, key_, list);
  else
    ledger_.lost(call);
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
  if (!known) ledger_.lose_group(call, bits(made));
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
  if (!known) ledger_.lose_group(call, bits(made));
}

void Profile::forget(MPI_Group group) noexcept {
  if (!running_) return;
  Watch watch(*this);
  ledger_.free_group(bits(group));
}

RankMap Profile::members(MPI_Group group) const {
  if (group == mpi().group_empty) return RankMap(AffineNest(), size_, true);
  if (auto known = ledger_.group(bits(group))) return *std::move(known);
  return asked(group, size_);
}

double Profile::seconds_since_start() const { return std::chrono::duration<double>(Clock::now() - begun_).count(); }

void Profile::finish() noexcept {
  if (!running_.exchange(false)) return;
  Watch watch(*this);
  Summary own;
  if (watch.run([&] { ledger_.summary(own); }))
    own.processes = 1;
  else
    own = Summary(), own.unread = 1;
  own.family = RunningMpi::family, own.world = size_;
  own.run_s = seconds_since_start();
  own.profile_s = own.profile_sum_s = double(spent_ns_) * 1e-9;
  // A duplicate would run the program's own copy functions of attributes, at a time when it expects none.
  MPI_Comm apart = mpi().comm_null;
  if (mpi().Comm_split(mpi().comm_world, 0, rank_, &apart) != MPI_SUCCESS) return;
  gather(own, apart);
  mpi().Comm_free(&apart);
  if (rank_ == 0) watch.run([&] { publish(own, spawned_); });
}

Profile& profile() {
  alignas(Profile) static std::byte room[sizeof(Profile)];
  static auto& only = *new (room) Profile;
  return only;
}

}  // namespace longshore::profile

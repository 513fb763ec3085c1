/// profile: `Profile`, follows this process's communicators and groups and reports them when MPI ends.
///
/// Nothing here throws: what cannot be followed is counted as lost, and the program goes on.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>

#include "profile/ledger.hpp"
#include "profile/preload/running_mpi.hpp"

namespace longshore::profile {

class Profile {
 public:
  /// After MPI has begun; the second call does nothing.
  void start() noexcept;
  /// Before MPI ends. Collective over the world: its first rank writes the report.
  void finish() noexcept;

  /// `made` was made of `parent` by this call. Collective over `made`, whose members tell each other who they are.
  /// Where the parent is not followed, one of a session, or with spawned or connected processes, this is not
  /// either, and nobody tells anything. Of an intercommunicator MPI is asked, with no message: it is followed
  /// where both groups are of this world, and not too large.
  void communicator(const char* call, MPI_Comm parent, MPI_Comm made) noexcept;
  /// A duplicate of `parent` was made. MPI tells it and its end through an attribute that it copies and deletes.
  void duplicate(const char* call, MPI_Comm parent) noexcept;

  /// `made` is the local or remote group of a communicator.
  void group_of(const char* call, MPI_Comm comm, bool remote, MPI_Group made) noexcept;
  /// `made` is a group that follows from others, whose members `derive` finds by asking `members`.
  void group(const char* call, MPI_Group made, const std::function<RankMap()>& derive) noexcept;
  void forget(MPI_Group group) noexcept;
  /// Throws `Error(argument)` where they are not known, and the group is too large to ask MPI.
  RankMap members(MPI_Group group) const;

 private:
  class Watch;

  /// Null where nobody follows it.
  Ledger::List* list_of(MPI_Comm comm) const;
  double seconds_since_start() const;

  std::atomic<bool> running_{false};
  Ledger ledger_;
  int rank_ = 0, size_ = 0, key_ = 0;
  bool spawned_ = false;  ///< by processes of another world
  std::chrono::steady_clock::time_point begun_;
  std::atomic<Index> spent_ns_{0};
};

/// That of this process. It is never destroyed, for MPI may end after everything else. The one state of its own that
/// the library has: it is loaded under a program that knows nothing of it and can hold nothing for it.
Profile& profile();

}  // namespace longshore::profile

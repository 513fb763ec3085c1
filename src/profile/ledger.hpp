/// profile: `Ledger`, what this process has seen of communicators and groups; it knows no MPI.
#pragma once

#include <algorithm>
#include <mutex>
#include <optional>

#include "profile/usage.hpp"

namespace longshore::profile {

/// Thread-safe. Up to `most_rosters` different lists of members are followed, and what is made of further ones counts
/// as lost: a program that makes new ones for ever does not fill its memory.
class Ledger {
 public:
  explicit Ledger(Index most_rosters = 100'000) : most_lines_(most_rosters) {}

  /// A list of members that MPI keeps, for one or several communicators and groups.
  struct List;

  /// Of the process of this rank.
  void begin(Index rank);

  /// A list of these members for a new communicator, made by `call`.
  List* add(const char* call, const Roster& members);
  /// One that nobody made. It counts only for what is made of it.
  List* add_predefined(const Roster& members);
  /// A list of members that are not known in this process, but may
  /// be in others: what is made of it is followed. Takes no memory.
  List* add_unknown(const char* call) noexcept;
  /// A duplicate was made, which shares the list: it counts; `hold` is called for it besides.
  void duplicated(const char* call, const List* list);
  void hold(List* list);
  void release(List* list);
  /// Something was made, and nobody knows of which members.
  void lost(const char* call) noexcept;
  /// Of members that are known, or nothing.
  std::optional<Roster> members(const List* list) const;

  /// A group made by `call`, with a list of its own, or with that
  /// of a communicator. MPI may give its handle several times.
  void add_group(const char* call, const RankMap& members, std::uint64_t handle);
  void hold_group(const char* call, List* list, std::uint64_t handle);
  void free_group(std::uint64_t handle);
  /// This handle is of a group whose members nobody knows.
  void lose_group(const char* call, std::uint64_t handle) noexcept;
  /// Of a group that is known, or nothing.
  std::optional<RankMap> group(std::uint64_t handle) const;

  /// What there is to report.
  void summary(Summary& summary) const;

 private:
  enum class Kind { communicator, group };
  struct Tally {
    Index made = 0, alive = 0, most = 0;
    void up() { most = std::max(most, ++alive); }
    void down() { --alive; }
  };
  /// What was seen of lists of the same members.
  struct Line {
    Roster members;
    Tally communicators, groups, lists;
    std::map<std::string, Index> calls;

    Tally& of(Kind kind) { return kind == Kind::group ? groups : communicators; }
    void made(const char* call, Kind kind) { ++of(kind).made, ++calls[call]; }
  };
  struct Named {
    List* list;
    Index times;
  };
  // Under the lock.
  /// Null where there are too many.
  Line* line_of(const Roster& members);
  List* new_list(Line* line, Index holders);
  List* new_list(Line& line);
  void add_holder(Kind kind, List* list);
  void drop_holder(Kind kind, List* list);
  void name_group(List* list, std::uint64_t handle);
  void drop_named(const Named& named);
  void count(const char* call, Line& line);

  mutable std::mutex mutex_;
  Index rank_ = 0, most_lines_;
  ByMembers<Line> lines_;
  std::unordered_map<const List*, std::unique_ptr<List>> lists_;
  List* unknown_ = nullptr;
  std::unordered_map<std::uint64_t, Named> groups_;
  std::map<std::string, Index> lost_;
};

struct Ledger::List {
  Line* line;  ///< null: members are not known
  Index holders;
};

}  // namespace longshore::profile

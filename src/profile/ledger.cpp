#include "profile/ledger.hpp"

namespace longshore::profile {

void Ledger::begin(Index rank) {
  std::lock_guard lock(mutex_);
  rank_ = rank;
  unknown_ = new_list(nullptr, 1);
}

Ledger::Line* Ledger::line_of(const Roster& members) {
  return Index(lines_.entries().size()) < most_lines_ ? &lines_.at(members) : lines_.find(members);
}

Ledger::List* Ledger::new_list(Line* line, Index holders) {
  auto list = std::make_unique<List>(List{line, holders});
  return (lists_[list.get()] = std::move(list)).get();
}

Ledger::List* Ledger::new_list(Line& line) {
  line.lists.up();
  return new_list(&line, 0);
}

void Ledger::add_holder(Kind kind, List* list) {
  ++list->holders;
  if (list->line != nullptr) list->line->of(kind).up();
}

void Ledger::drop_holder(Kind kind, List* list) {
  if (list->line != nullptr) list->line->of(kind).down();
  if (--list->holders > 0) return;
  if (list->line != nullptr) list->line->lists.down();
  lists_.erase(list);
}

Ledger::List* Ledger::add(const char* call, const Roster& members) {
  {
    std::lock_guard lock(mutex_);
    if (Line* line = line_of(members)) {
      List* list = new_list(*line);
      add_holder(Kind::communicator, list);
      count(call, *line);
      return list;
    }
  }
  return add_unknown(call);
}

Ledger::List* Ledger::add_predefined(const Roster& members) {
  std::lock_guard lock(mutex_);
  return new_list(&lines_.at(members), 1);
}

Ledger::List* Ledger::add_unknown(const char* call) noexcept {
  lost(call);
  std::lock_guard lock(mutex_);
  add_holder(Kind::communicator, unknown_);
  return unknown_;
}

void Ledger::duplicated(const char* call, const List* list) {
  std::lock_guard lock(mutex_);
  if (list->line != nullptr)
    count(call, *list->line);
  else
    ++lost_[call];
}

/// A communicator is counted by its first member, so that it counts once.
void Ledger::count(const char* call, Line& line) {
  if (line.members.local.select(0) == rank_) line.made(call, Kind::communicator);
}

void Ledger::hold(List* list) {
  std::lock_guard lock(mutex_);
  add_holder(Kind::communicator, list);
}

void Ledger::release(List* list) {
  std::lock_guard lock(mutex_);
  drop_holder(Kind::communicator, list);
}

void Ledger::lost(const char* call) noexcept {
  std::lock_guard lock(mutex_);
  try {
    ++lost_[call];
  } catch (const std::bad_alloc&) {
    // There is no memory even to count it.
  }
}

std::optional<Roster> Ledger::members(const List* list) const {
  std::lock_guard lock(mutex_);
  return list->line != nullptr ? std::optional(list->line->members) : std::nullopt;
}

void Ledger::add_group(const char* call, const RankMap& members, std::uint64_t handle) {
  {
    std::lock_guard lock(mutex_);
    if (Line* line = line_of({members, {}})) {
      line->made(call, Kind::group);
      name_group(new_list(*line), handle);
      return;
    }
  }
  lose_group(call, handle);
}

void Ledger::hold_group(const char* call, List* list, std::uint64_t handle) {
  std::lock_guard lock(mutex_);
  list->line->made(call, Kind::group);
  name_group(list, handle);
}

void Ledger::name_group(List* list, std::uint64_t handle) {
  add_holder(Kind::group, list);
  Named& named = groups_.try_emplace(handle, Named{list, 0}).first->second;
  if (named.list != list) {  // the one of this handle was freed where nobody saw it
    drop_named(named);
    named = {list, 0};
  }
  ++named.times;
}

void Ledger::drop_named(const Named& named) {
  for (Index i = 0; i < named.times; ++i) drop_holder(Kind::group, named.list);
}

void Ledger::free_group(std::uint64_t handle) {
  std::lock_guard lock(mutex_);
  const auto found = groups_.find(handle);
  if (found == groups_.end()) return;
  List* list = found->second.list;
  if (--found->second.times == 0) groups_.erase(found);
  drop_holder(Kind::group, list);
}

void Ledger::lose_group(const char* call, std::uint64_t handle) noexcept {
  lost(call);
  std::lock_guard lock(mutex_);
  const auto found = groups_.find(handle);
  if (found == groups_.end()) return;
  drop_named(found->second);  // freed where nobody saw it
  groups_.erase(found);
}

std::optional<RankMap> Ledger::group(std::uint64_t handle) const {
  std::lock_guard lock(mutex_);
  const auto found = groups_.find(handle);
  return found != groups_.end() ? std::optional(found->second.list->line->members.local) : std::nullopt;
}

void Ledger::summary(Summary& summary) const {
  std::lock_guard lock(mutex_);
  summary.lost = lost_;
  for (const Line* line : lines_.entries()) {
    if (line->lists.most == 0 && line->calls.empty()) continue;  // MPI_COMM_SELF, of which nobody made anything
    Usage& usage = summary.usages.at(line->members);
    usage.communicators = line->communicators.made, usage.alive_communicators = line->communicators.most;
    usage.groups = line->groups.made, usage.alive_groups = line->groups.most;
    usage.processes = 1, usage.lists = line->lists.most;
    usage.calls = line->calls;
  }
}

}  // namespace longshore::profile

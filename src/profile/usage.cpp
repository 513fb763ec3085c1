#include "profile/usage.hpp"

#include <algorithm>
#include <bit>

namespace longshore::profile {

namespace {

constexpr StoredKind stored_kind{"LSRP", 2, "rank profile"};

void add(std::map<std::string, Index>& sums, const std::map<std::string, Index>& more) {
  for (const auto& [name, count] : more) sums[name] = checked_add(sums[name], count);
}

void write_counts(WordWriter& out, const std::map<std::string, Index>& counts) {
  out.index(Index(counts.size()));
  for (const auto& [name, count] : counts) out.text(name), out.index(count);
}

Index read_count(WordReader& in, const char* name) { return in.within(0, INT64_MAX, name); }

std::map<std::string, Index> read_counts(WordReader& in) {
  std::map<std::string, Index> counts;
  for (Index left = in.count(2); left > 0; --left) {
    std::string name = in.text();
    counts[std::move(name)] = read_count(in, "count of a call");
  }
  return counts;
}

double read_seconds(WordReader& in) {
  const auto seconds = std::bit_cast<double>(in.word());
  if (!(seconds >= 0 && seconds < 1e12)) in.refuse("has a time that is none");
  return seconds;
}

RankMap read_map(WordReader& in, Index world) {
  RankMap map = RankMap::from_bytes(in.bytes(), world);
  if (map.world() != world)
    in.refuse("has a map of a world of " + std::to_string(map.world()) + " ranks, not of " + std::to_string(world));
  return map;
}

}  // namespace

std::size_t hash(const Roster& members) {
  std::uint64_t mixed = 0;
  const auto mix = [&](Index value) {
    mixed = (mixed ^ std::uint64_t(value)) * 0x9e3779b97f4a7c15u;
    mixed ^= mixed >> 32;
  };
  for (const RankMap* map : {&members.local, &members.remote}) {
    const Index last = map->size() - 1, steps = last < 64 ? last : 16;
    mix(map->size());
    for (Index step = 0; step <= steps; ++step) mix(map->select(steps > 0 ? last * step / steps : 0));
  }
  return std::size_t(mixed);
}

void Usage::merge(const Usage& other) {
  communicators = checked_add(communicators, other.communicators);
  alive_communicators = std::max(alive_communicators, other.alive_communicators);
  groups = checked_add(groups, other.groups);
  alive_groups = std::max(alive_groups, other.alive_groups);
  processes = checked_add(processes, other.processes);
  lists = checked_add(lists, other.lists);
  add(calls, other.calls);
}

void Summary::merge(const Summary& other) {
  run_s = std::max(run_s, other.run_s);
  profile_s = std::max(profile_s, other.profile_s);
  profile_sum_s += other.profile_sum_s;
  add(lost, other.lost);
  for (const Usage* usage : other.usages.entries()) usages.at(usage->members).merge(*usage);
  // At the end: where memory is short, the other's processes count as unread ones instead.
  processes = checked_add(processes, other.processes);
  unread = checked_add(unread, other.unread);
}

std::vector<std::byte> Summary::to_bytes() const {
  WordWriter out(stored_kind);
  out.text(family), out.index(world), out.index(processes), out.index(unread);
  for (const double seconds : {run_s, profile_s, profile_sum_s}) out.word(std::bit_cast<std::uint64_t>(seconds));
  write_counts(out, lost);
  out.index(Index(usages.entries().size()));
  for (const Usage* usage : usages.entries()) {
    out.bytes(usage->members.local.to_bytes());
    out.index(!usage->members.remote.empty());
    if (!usage->members.remote.empty()) out.bytes(usage->members.remote.to_bytes());
    for (const Index count : {usage->communicators, usage->alive_communicators, usage->groups, usage->alive_groups,
                              usage->processes, usage->lists})
      out.index(count);
    write_counts(out, usage->calls);
  }
  return std::move(out).finish();
}

Summary Summary::from_bytes(std::span<const std::byte> bytes, Index world) {
  WordReader in(stored_kind, bytes);
  Summary read;
  read.family = in.text();
  read.world = in.within(world, world, "size of the world");
  read.processes = in.within(0, world, "number of processes");
  read.unread = in.within(0, world, "number of processes");
  for (double* seconds : {&read.run_s, &read.profile_s, &read.profile_sum_s}) *seconds = read_seconds(in);
  read.lost = read_counts(in);
  for (Index left = in.count(9); left > 0; --left) {
    Usage usage;
    usage.members.local = read_map(in, world);
    if (in.within(0, 1, "mark of an intercommunicator") != 0) usage.members.remote = read_map(in, world);
    for (Index* count : {&usage.communicators, &usage.alive_communicators, &usage.groups, &usage.alive_groups,
                         &usage.processes, &usage.lists})
      *count = read_count(in, "count");
    usage.calls = read_counts(in);
    read.usages.at(usage.members).merge(usage);
  }
  in.end();
  return read;
}

}  // namespace longshore::profile

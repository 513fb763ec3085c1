/// profile: `Usage`, how communicators and groups of the
/// same members were used, and lists of them that are merged.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "longshore/ranks/rank_map.hpp"
#include "sequences/stored_words.hpp"

namespace longshore::profile {

/// Who is in a communicator or a group, as ranks of the world.
struct Roster {
  RankMap local;
  RankMap remote;  ///< of nobody, but for intercommunicators; their local group is the one whose first rank is lower

  Index size() const { return local.size() + remote.size(); }
  /// Of the compact maps.
  Index bytes() const { return local.bytes() + (remote.empty() ? 0 : remote.bytes()); }
  bool operator==(const Roster& other) const { return local == other.local && remote == other.remote; }
};

/// What became of one list of members: in this process, or in several together.
struct Usage {
  Roster members;
  Index communicators = 0;        ///< created; each counts once, in the process of its first member
  Index alive_communicators = 0;  ///< at one time, at most; duplicates that the library made for itself are among them
  Index groups = 0;               ///< created, in all processes together
  Index alive_groups = 0;         ///< at one time, at most, in the process that had most
  Index processes = 0;            ///< that held the list
  Index lists = 0;                ///< kept at one time, at most, summed over the processes; duplicates share theirs
  std::map<std::string, Index> calls;  ///< by which calls communicators and groups were created

  void merge(const Usage& other);
};

/// Of all members, or of some where they are many.
std::size_t hash(const Roster& members);

/// Finds what has equal members.
template <class Entry>
class ByMembers {
 public:
  /// The entry of these members, made if there is none.
  Entry& at(const Roster& members) {
    const std::size_t key = hash(members);
    if (Entry* entry = find(key, members)) return *entry;
    auto entry = std::make_unique<Entry>();
    entry->members = members;
    Entry& made = *entries_.emplace(key, std::move(entry))->second;
    order_.push_back(&made);
    return made;
  }
  /// The entry of these members, or nullptr.
  Entry* find(const Roster& members) const { return find(hash(members), members); }
  /// In the order in which they were made.
  const std::vector<Entry*>& entries() const { return order_; }

 private:
  Entry* find(std::size_t key, const Roster& members) const {
    auto [found, end] = entries_.equal_range(key);
    for (; found != end; ++found)
      if (found->second->members == members) return found->second.get();
    return nullptr;
  }

  std::unordered_multimap<std::size_t, std::unique_ptr<Entry>> entries_;
  std::vector<Entry*> order_;
};

/// What some processes of a world have to report together.
struct Summary {
  std::string family;  ///< of the MPI library
  Index world = 0;
  Index processes = 0;                ///< whose report is in it
  Index unread = 0;                   ///< whose report could not be read
  double run_s = 0;                   ///< from MPI_Init to MPI_Finalize, the longest
  double profile_s = 0;               ///< of it spent in the profile, the longest
  double profile_sum_s = 0;           ///< of all processes
  std::map<std::string, Index> lost;  ///< created, but it is not known of whom, by call
  ByMembers<Usage> usages;

  void merge(const Summary& other);
  std::vector<std::byte> to_bytes() const;
  /// What `to_bytes` wrote, of this world. Throws `Error(argument)` for anything else.
  static Summary from_bytes(std::span<const std::byte> bytes, Index world);
};

}  // namespace longshore::profile

#include <algorithm>
#include <array>
#include <numeric>

#include "longshore/mpi/groups.hpp"
#include "longshore/ranks/rank_module.hpp"
#include "mpi/agreement.hpp"
#include "mpi/byte_count.hpp"
#include "mpi/rank_split.hpp"
#include "ranks/runs.hpp"

namespace longshore::mpi {

namespace {

/// A group that goes with this object.
class OwnGroup {
 public:
  explicit OwnGroup(MPI_Comm comm) { check_mpi(MPI_Comm_group(comm, &group_), "MPI_Comm_group"); }
  explicit OwnGroup(GroupHandle handle) : group_(handle.get<MPI_Group>()) {}
  OwnGroup(const OwnGroup&) = delete;
  OwnGroup& operator=(const OwnGroup&) = delete;
  ~OwnGroup() { MPI_Group_free(&group_); }
  MPI_Group get() const { return group_; }

 private:
  MPI_Group group_ = MPI_GROUP_NULL;
};

int size_of(MPI_Comm comm) {
  int size = 0;
  check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  return size;
}

int rank_in(MPI_Comm comm) {
  int rank = 0;
  check_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  return rank;
}

/// What one process gathers of all, `each` numbers of everybody,
/// it makes a map of, and all get it, or the error. Collective.
template <class Make>
RankMap made_at_first(MPI_Comm comm, std::span<const int> mine, Make make) {
  const bool first = rank_in(comm) == 0;
  std::vector<int> all(first ? mine.size() * std::size_t(size_of(comm)) : 0);
  const int each = int(mine.size());
  check_mpi(MPI_Gather(mine.data(), each, MPI_INT, all.data(), each, MPI_INT, 0, comm), "MPI_Gather");
  std::vector<std::byte> bytes;
  std::array<Index, 2> told = {0, nobody};  // how many bytes follow, and of what error they are the words
  if (first) {
    if (const auto failure = attempt([&] { bytes = make(all).to_bytes(); })) {
      const std::string words = failure->what();
      bytes.resize(words.size());
      std::transform(words.begin(), words.end(), bytes.begin(), [](char c) { return std::byte(c); });
      told[1] = Index(failure->kind());
    }
    told[0] = Index(bytes.size());
  }
  check_mpi(MPI_Bcast(told.data(), 2, MPI_INT64_T, 0, comm), "MPI_Bcast");
  bytes.resize(std::size_t(told[0]));
  const ByteCount size(told[0]);
  check_mpi(MPI_Bcast(bytes.data(), size.count(), size.type(), 0, comm), "MPI_Bcast");
  if (told[1] != nobody)
    throw Error(ErrorKind(told[1]), std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  return RankMap::from_bytes(bytes);
}

}  // namespace

GroupHandle to_group(const RankMap& map, CommHandle handle) {
  const MPI_Comm parent = usable(handle);
  const int size = size_of(parent);
  if (map.world() != size)
    throw Error(ErrorKind::argument, "the map is of a world of " + std::to_string(map.world()) +
                                         " ranks, the communicator has " + std::to_string(size) +
                                         ": give the communicator whose ranks the map's are");
  const OwnGroup everybody(parent);
  MPI_Group group = MPI_GROUP_NULL;
  if (const auto runs = ranks::few_runs(map, (map.size() - 1) / 2)) {  // any two members make a run
    std::vector<std::array<int, 3>> triplets;
    for (const auto& run : *runs)
      triplets.push_back({int(run.first), int(run.last()), run.count > 1 ? int(run.step) : 1});
    const auto list = reinterpret_cast<int(*)[3]>(triplets.data());
    check_mpi(MPI_Group_range_incl(everybody.get(), int(triplets.size()), list, &group), "MPI_Group_range_incl");
  } else {
    std::vector<int> members;
    members.reserve(std::size_t(map.size()));
    Members(map).each_piece(
        [&](Index, std::span<const Index> values) { members.insert(members.end(), values.begin(), values.end()); });
    check_mpi(MPI_Group_incl(everybody.get(), int(members.size()), members.data(), &group), "MPI_Group_incl");
  }
  return group;
}

CommHandle create_communicator(const RankMap& map, CommHandle handle, int tag) {
  if (tag < 0) throw Error(ErrorKind::argument, "tag " + std::to_string(tag) + " is negative");
  const OwnGroup group(to_group(map, handle));
  const auto parent = handle.get<MPI_Comm>();
  MPI_Comm made = MPI_COMM_NULL;
  if (!map.contains(rank_in(parent))) return made;
  check_mpi(MPI_Comm_create_group(parent, group.get(), tag, &made), "MPI_Comm_create_group");
  MPI_Errhandler handler;
  check_mpi(MPI_Comm_get_errhandler(parent, &handler), "MPI_Comm_get_errhandler");
  const int code = MPI_Comm_set_errhandler(made, handler);
  MPI_Errhandler_free(&handler);
  check_mpi(code, "MPI_Comm_set_errhandler");
  return made;
}

RankMap rank_map_of(CommHandle handle, CommHandle parent) {
  const MPI_Comm comm = usable(handle);
  std::array<int, 2> mine = {-1, -1};  // stays so where there is no usable parent
  attempt([&] {
    const auto facts = comm_facts(parent);
    mine = {facts.rank, facts.size};
  });
  return made_at_first(comm, mine, [](const std::vector<int>& all) {
    std::vector<Index> members;
    for (std::size_t i = 0; i < all.size(); i += 2) {
      const auto who = "rank " + std::to_string(i / 2) + " of the communicator";
      if (all[i] < 0)
        throw Error(ErrorKind::argument, who + " gave a parent that is MPI_COMM_NULL or an inter-communicator");
      if (all[i + 1] != all[1])
        throw Error(ErrorKind::disagreement, who + " gave a parent of " + std::to_string(all[i + 1]) +
                                                 " ranks, rank 0 one of " + std::to_string(all[1]));
      members.push_back(all[i]);
    }
    return RankMap::of(members, all[1]);
  });
}

RankMap rank_map_of_group(GroupHandle handle, CommHandle parent, Index most) {
  const MPI_Comm comm = usable(parent);
  const auto group = handle.get<MPI_Group>();
  if (group == MPI_GROUP_NULL) throw Error(ErrorKind::argument, "the group is MPI_GROUP_NULL");
  int size = 0;
  check_mpi(MPI_Group_size(group, &size), "MPI_Group_size");
  const Index world = size_of(comm);
  if (size * world > most)
    throw Error(ErrorKind::argument,
                "MPI would compare up to " + std::to_string(size) + " members with " + std::to_string(world) +
                    " ranks each, more than " + std::to_string(most) +
                    " comparisons: give a communicator of the group instead, whose members know their ranks");
  const OwnGroup everybody(comm);
  std::vector<int> positions(static_cast<std::size_t>(size)), ranks(positions.size());
  std::iota(positions.begin(), positions.end(), 0);
  check_mpi(MPI_Group_translate_ranks(group, size, positions.data(), everybody.get(), ranks.data()),
            "MPI_Group_translate_ranks");
  std::vector<Index> members;
  for (const int rank : ranks) {
    if (rank == MPI_UNDEFINED)
      throw Error(ErrorKind::argument, "member " + std::to_string(members.size()) + " of the group is none of the " +
                                           std::to_string(world) + " ranks of the parent");
    members.push_back(rank);
  }
  return RankMap::of(members, world);
}

RankMap split_ranks(CommHandle parent, Index colour, Index key) {
  const auto communicator = Communicator::of(parent);
  const auto everybody = RankMap::whole(communicator->size());
  return split_along({communicator->world(), everybody, communicator->rank(), communicator->next_tag()}, colour, key);
}

RankMap node_aware_order(CommHandle comm) {
  const int lowest = Communicator::of(comm)->world_rank_of(0);
  return made_at_first(comm.get<MPI_Comm>(), std::span(&lowest, 1), [](const std::vector<int>& nodes) {
    return node_order(std::vector<Index>(nodes.begin(), nodes.end()));
  });
}

}  // namespace longshore::mpi

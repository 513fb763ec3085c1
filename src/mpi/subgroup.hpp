/// mpi: members of a map that send to each other with no
/// communicator of their own, and the tree that they stand in.
#pragma once

#include <type_traits>
#include <vector>

#include "longshore/ranks/rank_map.hpp"
#include "mpi/communicator.hpp"

namespace longshore::mpi {

/// Who takes part, by position, and how a message finds them: ranks of `comm`, under a tag that nobody else uses
/// meanwhile.
struct Subgroup {
  MPI_Comm comm;
  const RankMap& members;
  Index me;  ///< this process's position
  int tag;

  void send(Index to, const void* data, Index bytes) const;
  void receive(Index from, void* data, Index bytes) const;
};

// A binomial tree over positions [0, n): above v stands v without its lowest bit, and under it are the positions that
// follow.

inline Index above(Index v) { return v & (v - 1); }
/// How many positions v and those under it are.
Index branch(Index v, Index n);
/// Those right under v, the largest branch first.
std::vector<Index> below(Index v, Index n);

/// What all members bring, merged into one by `merge(mine, another)`, at all of them. Collective over the members.
template <class T, class Merge>
T merged(const Subgroup& group, T mine, Merge merge) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto children = below(group.me, group.members.size());
  for (auto child = children.rbegin(); child != children.rend(); ++child) {
    T another;
    group.receive(*child, &another, Index(sizeof another));
    merge(mine, another);
  }
  if (group.me > 0) {
    group.send(above(group.me), &mine, Index(sizeof mine));
    group.receive(above(group.me), &mine, Index(sizeof mine));
  }
  for (const Index child : children) group.send(child, &mine, Index(sizeof mine));
  return mine;
}

}  // namespace longshore::mpi

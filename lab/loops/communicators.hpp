/// The loops of `longshore bench communicators`: a world of fibers in which some ranks create a communicator, send
/// messages and gather, with one map after the other.
#pragma once

#include <span>
#include <vector>

#include <longshore/ranks/rank_map.hpp>

namespace longshore::bench {

/// What the members do; messages go between members.
struct CommunicatorWork {
  std::span<const Index> senders, receivers;  ///< of each message
  Index gathers;                              ///< by member 0
};

/// Each from when the first member begins until the last one has finished.
struct CommunicatorSeconds {
  double create, messages, gathers;
};

/// The map of an array of 32-bit ranks, taken as they are, as an MPI library fills its own. Trusted with the members.
RankMap array_map(std::span<const Index> members, Index world);

/// `maps` are all of these members, in the array's order. Each is used `repeats[k]` times, all in turn; ranks that are
/// no members wait. Every message and every gathered number is compared with the array; what differs is
/// `Error(transport)`.
std::vector<std::vector<CommunicatorSeconds>> communicator_seconds(std::span<const Index> members,
                                                                   std::span<const RankMap> maps,
                                                                   std::span<const Index> repeats,
                                                                   const CommunicatorWork& work);

}  // namespace longshore::bench

/// mpi: `VirtualComm`, a communicator that is a rank map over another one.
#pragma once

#include <optional>
#include <utility>

#include "longshore/mpi/groups.hpp"

namespace longshore::mpi {

/// `VirtualComm::receive` from whoever sends.
inline constexpr Index any_source = -2;

/// What has arrived: from which member, and how many bytes of it.
struct Arrival {
  Index source, bytes;
};

/// A message under way. The buffer is MPI's until it is complete. One that is
/// given up before is waited for if it leaves, and cancelled if it was to arrive.
class Message {
 public:
  Message(Message&&) noexcept;
  Message& operator=(Message&&) noexcept;
  ~Message();
  /// True once it is complete. Throws as `wait`.
  bool test();
  /// Of a message that leaves: from this process, with all of its bytes. Throws `Error(disagreement)` where any_source
  /// has met a message of another virtual communicator.
  Arrival wait();

 private:
  friend class VirtualComm;
  struct Flying;
  explicit Message(std::unique_ptr<Flying> flying);
  std::unique_ptr<Flying> flying_;
};

/// Members of a communicator that send to each other by their position in a map: SELECT finds the
/// peer, and MPI needs no communicator for them. All that are made of one share its private duplicate
/// of the user's communicator, which goes with the last of them; so let go of the last copy
/// everywhere at about the same point, as one frees a communicator.
///
/// Messages are told apart by a context, a number in the high bits of the tag; 0 is that of everybody. A process cannot
/// have two virtual communicators of one context at a time. `split`, whose members talk, finds a context that is free
/// at all of them. `sub` and `create` send nothing: they take the one given, or work one out from the map, and where
/// this process has it in use, that is an error here alone, with the others waiting. Where there are more than a few at
/// a process, give contexts that differ by construction; those below contexts() / 2 are taken unasked only when no
/// others are left. So do for any_source: it may meet the message of a sender that is no member and whose own virtual
/// communicator has the same context, which is an error where it arrives. There is no such sender where all are made by
/// `split`. A context is free when its virtual communicator is released: receive what is under way before, and release
/// it everywhere before the context is given again.
class VirtualComm {
 public:
  /// Of everybody in `comm`, which is duplicated. Collective over `comm`.
  static VirtualComm over(CommHandle comm);
  /// A context in use is an error of this process alone, here and in `create`: neither is collective. The members at
  /// these positions of this one; `positions` is of a world of size().
  VirtualComm sub(const RankMap& positions, std::optional<int> context = {}) const;
  /// These ranks of the communicator that all began with.
  VirtualComm create(const RankMap& ranks, std::optional<int> context = {}) const;
  /// As MPI_Comm_split. Collective over the members; who brings a negative colour is in none. A context that differs
  /// among the members of a colour, or that one of them has in use, is an error of them all.
  VirtualComm split(Index colour, Index key, std::optional<int> context = {}) const;

  const RankMap& map() const&;
  RankMap map() && { return std::as_const(*this).map(); }
  Index size() const { return map().size(); }
  /// This process's position, or `nobody`. Who is no member can ask, but neither send nor receive.
  Index rank() const;
  /// The rank of a member in the communicator that all began with, and the other way round, or `nobody`.
  Index peer(Index i) const { return map().world_rank(i); }
  Index position(Index parent_rank) const { return map().rank(parent_rank); }

  /// Tags are at most this: 1,022 at least.
  int tag_ub() const;
  int context() const;
  /// How many contexts there are: 32 at least.
  int contexts() const;

  // Messages of bytes, as many as 64 bits count. One receive takes
  // one send, whose bytes are at most those it has room for.
  void send(const void* data, Index bytes, Index to, int tag = 0) const;
  Arrival receive(void* data, Index bytes, Index from, int tag = 0) const;
  [[nodiscard]] Message start_send(const void* data, Index bytes, Index to, int tag = 0) const;
  [[nodiscard]] Message start_receive(void* data, Index bytes, Index from, int tag = 0) const;

  /// An MPI communicator of the members, for collectives: made when it is asked for the first time, which is then
  /// collective over them, and freed with the last copy of this. Errors return.
  CommHandle comm() const;

  // For members who bring MPI calls of their own: send to peer(i) on this, with this tag; and what to throw where they
  // receive from any source and meet a sender that is no member.
  CommHandle traffic() const;
  int wire_tag(int tag) const;
  Error stray(Index sender) const;

 private:
  struct Duplicate;
  struct State;
  explicit VirtualComm(std::shared_ptr<State> state) : state_(std::move(state)) {}
  static VirtualComm made(std::shared_ptr<Duplicate> duplicate, RankMap map, std::optional<int> context);
  const State& member() const;

  std::shared_ptr<State> state_;
};

}  // namespace longshore::mpi

/// A world of ranks: whose turn it is, who waits for whom, and the messages between them.
#pragma once

#include <exception>
#include <list>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engines/finegrain/fibers.hpp"
#include "longshore/engines/finegrain_communicator.hpp"

namespace longshore::finegrain {

inline std::string rank_name(Index rank) { return "rank " + std::to_string(rank); }

/// As far as ranks can compare their reductions: functions of one's own may be another one on every rank.
bool same_kind(const Reduction& a, const Reduction& b);

/// What unwinds the ranks that wait when their world ends.
struct WorldEnded {};

/// What keeps apart the messages between two ranks: whom they are members of together, and a tag.
struct Channel {
  Index context, tag;
  auto operator<=>(const Channel&) const = default;
  std::string words() const;  ///< "tag 7", "communicator 2, tag 7"
};

/// Ranks that call collective operations together: all of the world, or the members of a communicator.
struct Group {
  static constexpr Index world = 0, in_making = -1;

  RankMap members;
  Index context;                              ///< the number of a communicator
  Index arrived = 0, first_arrived = nobody;  ///< at the next collective; by world ranks

  Index size() const { return members.size(); }
  /// A member's name in an error: "rank 3", "rank 3 of communicator 2 (rank 51 of the world)".
  std::string name(Index i) const;
  std::string title() const;  ///< "the world", "communicator 2"
  std::string words() const;  ///< "", " of communicator 2"
};

/// What a rank waits for; lies on its stack meanwhile.
class Wait {
 public:
  /// A rank that keeps it waiting, and in words: "waits for a message of rank 4 (tag 7)".
  virtual Index whom(const World& world, std::string& words) const = 0;
  /// Takes a message, if that is what it waits for.
  virtual bool take(Index, Channel, std::span<const std::byte>) { return false; }
  bool arrived_at(const Group& group) const { return group_ == &group; }

 protected:
  ~Wait() = default;

 private:
  friend class World;
  friend class Arrival;
  const Group* group_ = nullptr;  ///< whose collective it has called
};

/// A rank's call of a collective operation, from when it comes until all have: what collectives are made of.
class Arrival : public Wait {
 public:
  explicit Arrival(const char* call) : call_(call) {}
  /// The operation itself: called of the group's first member when all have come, outside their turns. What it
  /// throws, all of them get.
  virtual void carry_out(World&, Group&) {}
  Index whom(const World& world, std::string& words) const override;
  const char* call() const { return call_; }

 private:
  friend class World;
  const char* call_;  ///< "barrier()"; another one for every class
  std::exception_ptr failure_;
};

/// Everybody's calls of a collective, in the order of the group.
class Arrivals {
 public:
  struct Entry {
    Arrival* arrival;
    Index rank;  ///< of the world
  };

  Arrivals(const Group& group, std::span<const Entry> entries) : group_(group), arrivals_(entries) {}
  Index size() const { return Index(arrivals_.size()); }
  template <class T>
  T& at(Index i) const {
    return static_cast<T&>(*arrivals_[std::size_t(i)].arrival);
  }
  std::string name(Index i) const { return group_.name(i); }

 private:
  const Group& group_;
  std::span<const Entry> arrivals_;
};

/// A rank at a receive().
class Reception;

/// All calls that name a rank are that rank's, in its turn. Where the world has ended there is none left to have: they
/// throw `WorldEnded`, or, of a rank that is being unwound, return at once; those that return bool, false.
class World : public std::enable_shared_from_this<World> {
 public:
  World(Index ranks, const std::function<void(Rank&)>& program, const Options& options);
  /// Gives everybody turns until all have returned.
  Statistics go();

  Index size() const { return Index(tasks_.size()); }
  /// By ranks of the world, whatever the channel.
  void send(Index from, Index to, Channel channel, std::span<const std::byte> message);
  void receive(Index to, Index from, Channel channel, std::span<std::byte> message);
  std::vector<std::byte> receive(Index to, Index from, Channel channel);
  /// A collective operation: comes back when all of the group have called it.
  bool arrive(Index rank, Group& group, Arrival& arrival);
  /// Everybody's calls of the collective that is being carried out: the members are read once, in order.
  Arrivals arrivals(const Group& group);
  Group& everybody() { return everybody_; }
  /// The group of those who make a communicator of these members, for the next of them who comes.
  std::shared_ptr<Group> join(const RankMap& members);
  Index new_context() { return ++contexts_; }
  /// `asks`: what the rank would wait for.
  bool yield(Index rank, const Wait* asks = nullptr);
  /// Waits until another rank says wake(), which does nothing to those who do not wait.
  bool block(Index rank, Wait& wait);
  void wake(Index rank);
  /// Does work that takes more stack than a rank may have, on that of
  /// run()'s caller; the rank's turn goes on. What it throws comes out here.
  void outside(Index rank, const std::function<void()>& work);
  /// Throws `Error(argument)` unless it is the rank's turn.
  bool check_turn(Index rank) const;
  /// Somebody has come any further.
  void progress();

  /// Of somebody who waits.
  const Wait& wait_of(Index rank) const { return *tasks_[std::size_t(rank)].wait; }
  bool arrived_at(Index rank, const Group& group) const {
    return tasks_[std::size_t(rank)].wait && wait_of(rank).arrived_at(group);
  }
  /// For messages that are not the program's own: whose tags are not negative.
  Index private_tag() { return --private_tags_; }
  bool returned(Index rank) const { return tasks_[std::size_t(rank)].slot == gone; }

 private:
  static constexpr Fibers::Slot fresh = ~Fibers::Slot{0}, gone = fresh - 1;

  struct Task {
    Wait* wait = nullptr;
    Fibers::Slot slot = fresh;
    std::uint32_t idle_turn = 0;  ///< the last one
  };
  /// Of messages that nobody has received yet.
  struct Address {
    Index to, from;
    Channel channel;
    auto operator<=>(const Address&) const = default;
  };
  using Queue = std::list<std::vector<std::byte>>;
  struct Hash {
    std::size_t operator()(const Address& address) const;
  };

  std::uint32_t& queued(std::size_t k);
  void enqueue(Index rank);
  Index next();
  void live();
  void give_turn(Index rank);
  void work_outside(Index rank);
  void carry_out(Group& group);
  void dismiss(const Group& group, const std::exception_ptr& failure);
  Error no_member(const Group& group) const;
  void wake_all();
  void count_idle_turn(Index rank, const Wait* asks);
  /// Ends the world with what `make` returns.
  template <class Make>
  void end(Make&& make);
  bool ended() const;
  void receive(Index to, Reception& reception);
  void check_peer(Index rank) const;
  void check_mail() const;
  Error deadlock(Index rank, const Wait* asks, std::string text) const;
  Error deadlock() const;

  const std::function<void(Rank&)>& program_;
  Options options_;
  std::mt19937_64 random_;
  std::vector<Task> tasks_;
  std::vector<std::uint32_t> queue_;          ///< a ring of those who can go on; everybody is in it once at most
  std::size_t head_ = 0, waiting_turns_ = 0;  ///< where it begins; how many wait for a turn
  std::size_t settled_ = 0;                   ///< of the first of these it is settled in which order
  std::optional<Fibers> fibers_;
  Index current_ = nobody, returned_ = 0;
  Group everybody_;
  Group* complete_ = nullptr;              ///< all of whom have come
  std::vector<Arrivals::Entry> arrivals_;  ///< of the collective that is being carried out, if it has asked for them
  std::multimap<std::pair<Index, Index>, std::shared_ptr<Group>> in_making_;  ///< by size and first member
  Index contexts_ = Group::world;
  const std::function<void()>* work_ = nullptr;  ///< that the current rank wants done outside
  std::exception_ptr work_failure_;
  std::uint32_t idle_turn_ = 1;    ///< the number of the one that everybody is to have next
  std::size_t had_idle_turn_ = 0;  ///< ranks that have had it
  Index idle_turns_ = 0;           ///< that everybody has had since anybody came any further
  std::unordered_map<Address, Queue, Hash> mail_;
  Index private_tags_ = 0;
  std::exception_ptr failure_;  ///< why the world ends
  Statistics statistics_;
};

}  // namespace longshore::finegrain

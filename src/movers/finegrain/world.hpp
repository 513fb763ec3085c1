/// A world of ranks: whose turn it is, who waits for whom, and the messages between them.
#pragma once

#include <exception>
#include <list>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "longshore/movers/finegrain.hpp"
#include "movers/finegrain/fibers.hpp"

namespace longshore::finegrain {

inline std::string rank_name(Index rank) { return "rank " + std::to_string(rank); }

/// As far as ranks can compare their reductions: functions of one's own may be another one on every rank.
bool same_kind(const Reduction& a, const Reduction& b);

/// What unwinds the ranks that wait when their world ends.
struct WorldEnded {};

/// What a rank waits for; lies on its stack meanwhile.
class Wait {
 public:
  /// A rank that keeps it waiting, and in words: "waits for a message of rank 4 (tag 7)".
  virtual Index whom(const World& world, std::string& words) const = 0;
  /// Takes a message, if that is what it waits for.
  virtual bool take(Index, Index, std::span<const std::byte>) { return false; }
  /// Whether it is at a meeting of all.
  virtual bool meets() const { return false; }

 protected:
  ~Wait() = default;
};

/// A rank at a meeting of all: what collective calls are made of.
class Guest : public Wait {
 public:
  explicit Guest(const char* call) : call_(call) {}
  /// Called of one of them when all have come, outside their turns. What it throws, all ranks get.
  virtual void hold(World&) {}
  Index whom(const World& world, std::string& words) const override;
  bool meets() const override { return true; }
  const char* call() const { return call_; }

 private:
  friend class World;
  const char* call_;  ///< "barrier()"; another one for every class
  std::exception_ptr failure_;
};

/// A rank at a receive().
class Reception;

/// All calls that name a rank are that rank's, in its turn. Where the world has ended there is none left to have: they throw
/// `WorldEnded`, or, of a rank that is being unwound, return at once; those that return bool, false.
class World : public std::enable_shared_from_this<World> {
 public:
  World(Index ranks, const std::function<void(Rank&)>& program, const Options& options);
  /// Gives everybody turns until all have returned.
  Statistics go();

  Index size() const { return Index(tasks_.size()); }
  void send(Index from, Index to, Index tag, std::span<const std::byte> message);
  void receive(Index to, Index from, Index tag, std::span<std::byte> message);
  std::vector<std::byte> receive(Index to, Index from, Index tag);
  bool meet(Index rank, Guest& guest);
  /// `asks`: what the rank would wait for.
  bool yield(Index rank, const Wait* asks = nullptr);
  /// Waits until another rank says wake(), which does nothing to those who do not wait.
  bool block(Index rank, Wait& wait);
  void wake(Index rank);
  /// Does work that takes more stack than a rank may have, on that of run()'s caller; the rank's turn goes on. What it throws comes
  /// out here.
  void outside(Index rank, const std::function<void()>& work);
  /// Throws `Error(argument)` unless it is the rank's turn.
  bool check_turn(Index rank) const;
  /// Somebody has come any further.
  void progress();

  /// Of somebody who waits.
  const Wait& wait_of(Index rank) const { return *tasks_[std::size_t(rank)].wait; }
  /// What a rank brings to the meeting that is being held.
  template <class T>
  T& guest(Index rank) const {
    return static_cast<T&>(*tasks_[std::size_t(rank)].wait);
  }
  bool meets(Index rank) const { return tasks_[std::size_t(rank)].wait && wait_of(rank).meets(); }
  /// For messages that are not the program's own: whose tags are not negative.
  Index private_tag() { return --private_tags_; }
  bool returned(Index rank) const { return tasks_[std::size_t(rank)].slot == gone; }

 private:
  static constexpr Fibers::Slot fresh = ~Fibers::Slot{0}, gone = fresh - 1;
  static constexpr Index nobody = -1;

  struct Task {
    Wait* wait = nullptr;
    Fibers::Slot slot = fresh;
    std::uint32_t idle_turn = 0;  ///< the last one
  };
  /// Of messages that nobody has received yet.
  struct Address {
    Index to, from, tag;
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
  void hold_meeting();
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
  Index current_ = nobody, returned_ = 0, guests_ = 0, first_guest_ = nobody;
  const std::function<void()>* work_ = nullptr;  ///< that the current rank wants done outside
  std::exception_ptr work_failure_;
  std::uint32_t idle_turn_ = 1;                ///< the number of the one that everybody is to have next
  std::size_t had_idle_turn_ = 0;              ///< ranks that have had it
  Index idle_turns_ = 0;                       ///< that everybody has had since anybody came any further
  std::unordered_map<Address, Queue, Hash> mail_;
  Index private_tags_ = 0;
  std::exception_ptr failure_;  ///< why the world ends
  Statistics statistics_;
};

}  // namespace longshore::finegrain

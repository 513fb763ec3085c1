/// model: LogGP, event by event: what any number of ranks take that compute, send, get and wait, and where the time
/// goes.
#pragma once

#include <cstdint>
#include <vector>

#include "longshore/model/strips.hpp"
#include "longshore/plans/block_plan.hpp"
#include "longshore/plans/motion_plan.hpp"

namespace longshore {

/// Ranks that have a processor and a network interface each.
struct Network {
  LogGP loggp;
  Link link = Link::shared;  ///< `independent`: network interfaces carry any number of messages at full rate
  Index queue = 0;           ///< messages of a rank that may be under way before it has to wait; 0: any number
  double copy = 0;           ///< seconds a byte that is packed, unpacked or copied within a rank
};

/// What each of some ranks does, step after step.
class RankSteps {
 public:
  /// Of the ranks [0, ranks), which do nothing yet. Throws `Error(argument)` where that is less than one or more than
  /// `most_ranks`.
  explicit RankSteps(Index ranks);
  static constexpr Index most_ranks = Index{1} << 31, most_stages = Index{1} << 16;
  static constexpr Index most_steps = Index{1} << 28;  ///< of all ranks; 16 bytes each

  /// The steps from here on are this rank's, which is not below the one before. All of what follows throws
  /// `Error(argument)` for ranks that there are not, for negative numbers and for stages beyond `most_stages`, and
  /// `Error(memory_limit)` beyond `most_steps`.
  void of(Index rank);
  void compute(double seconds);
  void copy(Index bytes);
  /// Starts a message, which the network interface sends when those before it have left.
  void send(Index to, Index bytes, Index stage = 0);
  static constexpr Index all = -1;
  /// Waits for so many messages of a stage, from whomever, in the order in which they arrive; or for `all` that are
  /// sent to this rank in that stage.
  void receive(Index messages, Index stage = 0);
  /// Starts to read what another rank has, which takes nothing of that rank's processor.
  void get(Index from, Index bytes);
  /// Waits for the first get that has not been waited for.
  void sync();

  Index ranks() const { return Index(begins_.size()) - 1; }

 private:
  friend class Simulator;
  enum class Kind : std::uint8_t { compute, copy, send, receive, get, sync };
  struct Step {
    std::uint32_t peer;
    std::uint16_t stage;
    Kind kind;
    union {
      Index count;  ///< bytes or messages
      double seconds;
    };
  };
  void add(Kind kind, Index peer, Index stage, Index count);

  std::vector<Step> steps_;
  std::vector<Index> begins_;  ///< of each rank's steps; those of ranks after the current one are not set
  Index rank_ = 0, gets_ = 0;  ///< the current rank, and its gets that have not been waited for
};

/// Who reads from whom.
enum class Pattern {
  one_to_one,  ///< each rank from the next one
  all_to_one,  ///< all others from rank 0
  all_to_all,  ///< each rank from all others in turn, a strip each
};
/// A loop over remote elements on each rank that reads, as `strip_cost` has it.
RankSteps strip_steps(const StripSchedule& schedule, const StripLoop& loop, Pattern pattern, Index ranks);
/// A plan's messages, one for each two ranks: each rank packs and starts its own, copies what stays, and receives.
RankSteps exchange_steps(const MotionPlan& plan);
RankSteps exchange_steps(const BlockPlan& plan, Index element_bytes);

/// Seconds of ranks' processors.
struct TimeShares {
  double computing = 0;  ///< and copying
  double issuing = 0;    ///< o_s and o_r
  double queue = 0;      ///< waiting until fewer messages are under way
  double gap = 0;        ///< waiting for network interfaces that pass few messages a second
  double bandwidth = 0;  ///< waiting for bytes, and behind those of others
  double latency = 0;    ///< L
  double waiting = 0;    ///< for ranks that have not begun yet to send what is waited for

  double sum() const { return computing + issuing + queue + gap + bandwidth + latency + waiting; }
  TimeShares& operator+=(const TimeShares& other);
};

struct Simulation {
  /// Ranks that send and receive equally many messages.
  struct Class {
    Index messages_out = 0, messages_in = 0;
    Index ranks = 0;
    TimeShares shares;   ///< of all of them
    Index slowest = 0;   ///< the rank of them that ends last
    double seconds = 0;  ///< when it does
  };
  double seconds = 0;  ///< when the last rank ends
  Index critical = 0;  ///< that rank
  TimeShares critical_shares, shares;
  std::vector<Class> classes;  ///< the one that ends last first
  Index messages = 0;
  double bytes = 0;
};

/// Throws `Error(argument)` for a network with negative or infinite parameters, and `Error(deadlock)` that names a rank
/// where one waits for what nobody sends. The same steps take the same time on any machine.
Simulation simulate(const RankSteps& steps, const Network& network);

}  // namespace longshore

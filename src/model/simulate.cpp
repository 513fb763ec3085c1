/// Ranks carry out their steps until they have to wait; messages are events at the network interfaces that they reach.
#include "longshore/model/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "model/event_queue.hpp"

namespace longshore {

TimeShares& TimeShares::operator+=(const TimeShares& other) {
  computing += other.computing, issuing += other.issuing, queue += other.queue, gap += other.gap;
  bandwidth += other.bandwidth, latency += other.latency, waiting += other.waiting;
  return *this;
}

class Simulator {
 public:
  Simulator(const RankSteps& steps, const Network& network)
      : steps_(steps), network_(network), p_(network.loggp), ranks_(std::size_t(steps.ranks())) {
    check(p_);
    if (!(network.copy >= 0 && std::isfinite(network.copy)) || network.queue < 0)
      throw Error(ErrorKind::argument, "a network with " + std::to_string(network.copy) + " s for a byte's copy and " +
                                           std::to_string(network.queue) + " messages under way; both are 0 or more");
    for (const auto& step : steps_.steps_)
      if (is(step, Kind::receive) && step.count == RankSteps::all) sent_to_[step.stage].resize(ranks_.size());
    Index gets = 0;
    for (Index r = 0; r < steps.ranks(); ++r) {
      auto& rank = ranks_[std::size_t(r)];
      rank.next = begin(r), rank.end = begin(r + 1), rank.first_get = gets, rank.issue_end = -p_.g;
      for (Index at = rank.next; at < rank.end; ++at) {
        const auto& step = steps_.steps_[std::size_t(at)];
        gets += is(step, Kind::get);
        if (!sent_to_.empty() && is(step, Kind::send))
          if (const auto stage = sent_to_.find(step.stage); stage != sent_to_.end()) ++stage->second[step.peer];
      }
    }
    gets_.resize(std::size_t(gets));
  }

  Simulation run() {
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) proceed(r);
    while (!events_.empty()) {
      const Event event = events_.pop();
      switch (event.kind) {
        case Event::issued: issued(event); break;
        case Event::requested: answer(event); break;
        case Event::left: leave(event.rank, event.time); break;
        default: arrive(event);
      }
    }
    return result();
  }

 private:
  using Kind = RankSteps::Kind;
  using Step = RankSteps::Step;

  /// 32 bytes, for there are as many of them as messages are under way.
  struct Event {
    enum Kind : std::uint32_t {
      issued,     // a rank's processor has started a message
      requested,  // a get is at the network interface of the rank that has the data
      reached,    // a message begins to arrive at a rank
      came,       // what a rank got does
      left,       // one message less of a rank is under way
    };
    double time = 0;
    Index bytes = 0;
    std::uint32_t rank = 0, peer = 0;
    float held = 0;  // seconds that it has waited behind others
    std::uint32_t kind : 3 = issued;
    std::uint32_t number : 29 = 0;  // of the stage, or of the rank's get
  };
  static constexpr std::uint32_t nothing = UINT32_MAX;
  /// A message or what was got, as its rank sees it.
  struct Arrival {
    double end = -1;  // not yet
    Index bytes = 0;
    float held = 0;
    std::uint32_t stage = 0, next = nothing;
  };
  struct Rank {
    double time = 0;                   // of its processor
    double issue_end = 0;              // of its last message
    double out_free = 0, in_free = 0;  // of its network interface
    Index next = 0, end = 0;           // steps
    Index first_get = 0;
    Index missing = 0;                   // messages that it waits for
    std::uint32_t gets = 0, synced = 0;  // that it has issued and waited for
    std::uint32_t under_way = 0;         // where that is limited
    // Messages that it has not waited for yet: those of one stage that are there, and a list of others.
    std::uint32_t come_stage = 0;
    Index come = 0;
    double come_bytes = 0;
    std::uint32_t early = nothing, last_early = nothing;
    std::uint32_t sent = 0, received = 0;
    bool waits = false;  // in the step `next`
    TimeShares shares;
  };

  static bool is(const Step& step, Kind kind) { return step.kind == kind; }
  Index begin(Index rank) const {
    return rank > steps_.rank_ ? Index(steps_.steps_.size()) : steps_.begins_[std::size_t(rank)];
  }
  const Step& step_of(const Rank& rank) const { return steps_.steps_[std::size_t(rank.next)]; }

  /// Steps until one waits or starts a message.
  void proceed(std::uint32_t r) {
    auto& rank = ranks_[r];
    for (rank.waits = false; rank.next < rank.end; ++rank.next) {
      const auto& step = step_of(rank);
      switch (step.kind) {
        case Kind::compute: compute(rank, step.seconds); break;
        case Kind::copy: compute(rank, network_.copy * double(step.count)); break;
        case Kind::send:
        case Kind::get:
          if (network_.queue > 0 && rank.under_way == network_.queue) {
            rank.waits = true;
            return;
          }
          return issue(r, step);
        case Kind::receive:
          rank.missing = step.count == RankSteps::all ? sent_to_.at(step.stage)[r] : step.count;
          receive_early(rank, step.stage);
          if (rank.missing > 0) {
            rank.waits = true;
            return;
          }
          break;
        case Kind::sync: {
          const auto& got = gets_[std::size_t(rank.first_get + rank.synced)];
          if (got.end < 0) {
            rank.waits = true;
            return;
          }
          wait(rank, got, 2 * p_.L), ++rank.synced;
        }
      }
    }
  }

  static void compute(Rank& rank, double seconds) { rank.time += seconds, rank.shares.computing += seconds; }

  void issue(std::uint32_t r, const Step& step) {
    auto& rank = ranks_[r];
    const bool sends = is(step, Kind::send);
    if (sends) compute(rank, network_.copy * double(step.count));
    const double overhead = sends ? p_.o_s : p_.o(), ready = rank.time + overhead;
    rank.issue_end = std::max(ready, rank.issue_end + p_.g);
    rank.shares.issuing += overhead, rank.shares.gap += rank.issue_end - ready;
    rank.time = rank.issue_end;
    ++(sends ? rank.sent : rank.gets), rank.under_way += network_.queue > 0;
    ++found_.messages, found_.bytes += double(step.count);
    push(Event::issued, r, rank.time);
  }

  void issued(const Event& event) {
    auto& rank = ranks_[event.rank];
    const auto& step = step_of(rank);
    Event message;
    message.bytes = step.count;
    if (is(step, Kind::send)) {
      message.rank = step.peer, message.kind = Event::reached, message.number = step.stage;
      const double leaves = send(rank, event.time, message);
      if (network_.queue > 0) push(Event::left, event.rank, leaves);
    } else {
      message.rank = event.rank, message.peer = step.peer, message.number = rank.gets - 1;
      message.time = event.time + p_.L, message.kind = Event::requested;
      events_.push(message);
    }
    ++rank.next;
    proceed(event.rank);
  }

  void answer(Event message) {
    message.kind = Event::came;
    send(ranks_[message.peer], message.time, message);
  }

  /// From one network interface to another. When it will have left.
  double send(Rank& from, double time, Event& message) {
    const double begins = pass(from.out_free, time, message);
    message.time = begins + p_.L;
    events_.push(message);
    return begins + transfer(message.bytes);
  }

  /// When a message begins to pass a network interface that is free from a time on.
  double pass(double& free, double time, Event& message) {
    if (network_.link == Link::independent) return time;
    const double begins = std::max(time, free);
    message.held += float(begins - time);
    free = begins + std::max(p_.g, transfer(message.bytes));
    return begins;
  }

  void arrive(Event message) {
    auto& rank = ranks_[message.rank];
    Arrival arrival;
    arrival.end = pass(rank.in_free, message.time, message) + transfer(message.bytes);
    arrival.held = message.held, arrival.bytes = message.bytes, arrival.stage = message.number;
    ++rank.received;
    const auto* waits = rank.waits ? &step_of(rank) : nullptr;
    if (message.kind == Event::came) {
      gets_[std::size_t(rank.first_get + message.number)] = arrival;
      if (network_.queue > 0) push(Event::left, message.rank, arrival.end);
      if (waits && is(*waits, Kind::sync) && rank.synced == message.number) proceed(message.rank);
    } else if (waits && is(*waits, Kind::receive) && waits->stage == message.number) {
      receive(rank, arrival);
      if (rank.missing == 0) ++rank.next, proceed(message.rank);
    } else {
      keep_early(rank, arrival);
    }
  }

  /// Of a rank that does something else. What has arrived by the rank's own time will not be waited for, so that it is
  /// enough to count it; the others are a list.
  void keep_early(Rank& rank, const Arrival& arrival) {
    while (rank.early != nothing && has_come(rank, arrivals_[rank.early])) {
      const auto place = rank.early;
      rank.early = arrivals_[place].next;
      arrivals_[place].next = std::exchange(unused_, place);
    }
    if (rank.early == nothing && has_come(rank, arrival)) return;
    std::uint32_t place = unused_;
    if (place == nothing) {
      place = std::uint32_t(arrivals_.size());
      arrivals_.push_back(arrival);
    } else {
      unused_ = arrivals_[place].next;
      arrivals_[place] = arrival;
    }
    (rank.early == nothing ? rank.early : arrivals_[rank.last_early].next) = place;
    rank.last_early = place;
  }
  static bool has_come(Rank& rank, const Arrival& arrival) {
    if (arrival.end > rank.time || (rank.come > 0 && rank.come_stage != arrival.stage)) return false;
    ++rank.come, rank.come_bytes += double(arrival.bytes), rank.come_stage = arrival.stage;
    return true;
  }
  void receive_early(Rank& rank, std::uint32_t stage) {
    if (rank.come > 0 && rank.come_stage == stage) {
      const Index messages = std::min(rank.come, rank.missing);
      const double bytes = rank.come_bytes * (double(messages) / double(rank.come));
      take(rank, messages, bytes);
      rank.come -= messages, rank.come_bytes -= bytes;
    }
    std::uint32_t *link = &rank.early, last = nothing;
    while (*link != nothing && rank.missing > 0) {
      auto& arrival = arrivals_[*link];
      if (arrival.stage != stage) {
        last = *link, link = &arrival.next;
        continue;
      }
      receive(rank, arrival);
      const auto place = std::exchange(*link, arrival.next);
      if (place == rank.last_early) rank.last_early = last;
      arrival.next = std::exchange(unused_, place);
    }
  }
  void receive(Rank& rank, const Arrival& arrival) {
    wait(rank, arrival, p_.L);
    take(rank, 1, double(arrival.bytes));
  }
  void take(Rank& rank, Index messages, double bytes) {
    const double overhead = p_.o_r * double(messages);
    rank.time += overhead, rank.shares.issuing += overhead;
    compute(rank, network_.copy * bytes);
    rank.missing -= messages;
  }

  /// A wait is explained from its end: by what the message took at last.
  void wait(Rank& rank, const Arrival& arrival, double latency) {
    double left = std::max(0.0, arrival.end - rank.time);
    rank.time += left;
    auto take = [&](double& share, double seconds) {
      const double part = std::min(left, seconds);
      share += part, left -= part;
    };
    const double bytes = transfer(arrival.bytes);
    take(rank.shares.bandwidth, bytes);
    take(bytes < p_.g ? rank.shares.gap : rank.shares.bandwidth, double(arrival.held));
    take(rank.shares.latency, latency);
    rank.shares.waiting += left;
  }

  void push(decltype(Event::issued) kind, std::uint32_t rank, double time) {
    Event event;
    event.time = time, event.rank = rank, event.kind = kind;
    events_.push(event);
  }
  void leave(std::uint32_t r, double time) {
    auto& rank = ranks_[r];
    --rank.under_way;
    if (!rank.waits || !(is(step_of(rank), Kind::send) || is(step_of(rank), Kind::get))) return;
    const double waited = std::max(0.0, time - rank.time);
    rank.time += waited, rank.shares.queue += waited;
    proceed(r);
  }

  double transfer(Index bytes) const { return p_.G * double(bytes); }

  Simulation result() {
    std::map<std::pair<Index, Index>, Simulation::Class> classes;
    for (Index r = 0; r < steps_.ranks(); ++r) {
      const auto& rank = ranks_[std::size_t(r)];
      if (rank.next < rank.end)
        throw Error(ErrorKind::deadlock, "rank " + std::to_string(r) + " waits for " + std::to_string(rank.missing) +
                                             " more messages of stage " + std::to_string(step_of(rank).stage) +
                                             ", which nobody sends");
      auto& of = classes[{rank.sent, rank.received}];
      of.messages_out = rank.sent, of.messages_in = rank.received;
      if (of.ranks++ == 0 || rank.time > of.seconds) of.slowest = r, of.seconds = rank.time;
      of.shares += rank.shares;
    }
    for (const auto& [messages, of] : classes) {
      found_.shares += of.shares;
      found_.classes.push_back(of);
    }
    std::stable_sort(found_.classes.begin(), found_.classes.end(),
                     [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
    found_.critical = found_.classes.front().slowest, found_.seconds = found_.classes.front().seconds;
    found_.critical_shares = ranks_[std::size_t(found_.critical)].shares;
    return std::move(found_);
  }

  const RankSteps& steps_;
  const Network& network_;
  const LogGP& p_;
  std::vector<Rank> ranks_;
  std::vector<Arrival> gets_;                                    // of all ranks
  std::vector<Arrival> arrivals_;                                // early ones
  std::uint32_t unused_ = nothing;                               // of these places
  std::map<std::uint32_t, std::vector<std::uint32_t>> sent_to_;  // messages to each rank, by stages
  EventQueue<Event> events_;
  Simulation found_;
};

Simulation simulate(const RankSteps& steps, const Network& network) { return Simulator(steps, network).run(); }

}  // namespace longshore

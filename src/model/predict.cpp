#include "longshore/model/predict.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace longshore {

namespace {

constexpr const char *same_node = "same node", *other_node = "other node";
constexpr Index most_parts = 1024;

/// One rank's traffic on a machine, priced in one way after the other.
class Pricing {
 public:
  Pricing(const Traffic& traffic, const MachineProfile& profile, const Job& job)
      : traffic_(traffic), profile_(profile), job_(job) {
    std::set<Index> peers;
    for (const auto* list : {&traffic.outgoing, &traffic.incoming})
      for (const auto& item : *list)
        if (on_node(item.peer))
          peers.insert(item.peer);
        else
          leaves_ = true;
    busy_ = 1 + int(peers.size());
    if (leaves_ && !profile.exchange("messages", other_node))
      throw Error(ErrorKind::argument,
                  "the profile of " + profile.machine() +
                      " does not say what messages to other nodes take; calibrate on two nodes, or give it an entry of "
                      "\"exchanges\" for the pair \"other node\"");
  }

  WayCost threads() {
    auto cost = begin("threads");
    const auto& all = traffic_.local;
    const int n = Traffic::bytes(all) < threads_from_bytes ? 1 : std::max(job_.threads, 1);
    // Each thread takes tasks as it is done with others; one of them has computed the sources, as a rule the caller.
    const Index part = traffic_.touched_bytes / n;
    const CopySituation caller{traffic_.touched_bytes, 1, false}, own{part, n, false}, another{part, n, true};
    double by_caller = 0, by_all = 0;
    for (const auto& item : all) {
      const double transfers = double(item.transfers) * own_transfer();
      by_caller += copy_seconds(item, caller) + transfers;
      const double mine = copy_seconds(item, own), other = n > 1 ? copy_seconds(item, another) : mine;
      by_all += 1 / (1 / mine + (n - 1) / other) + transfers / n;
    }
    // Until the others are awake the caller is alone with it.
    const double wake = n > 1 ? profile_.calls().wake : 0;
    cost.seconds = profile_.calls().start + (wake < by_caller ? wake + (1 - wake / by_caller) * by_all : by_caller);
    if (const auto* most = most_of({&all})) explain(cost, *most, own, nullptr);
    return cost;
  }

  /// One access for all that arrives, from a window over everybody's arrays.
  std::optional<WayCost> gets() {
    const auto* most = most_of({&traffic_.incoming, &traffic_.local});
    const auto* near = profile_.exchange("gets", same_node);
    const auto* far = profile_.exchange("gets", other_node);
    if ((busy_ > 1 && !near) || (leaves_ && !far)) return {};
    auto cost = begin("gets");
    cost.seconds = local_seconds();
    for (const bool here : {true, false})
      for (const auto& [peer, bytes] : by_peer(here))
        if (bytes[1] > 0) cost.seconds += (here ? near : far)->seconds(bytes[1]);
    cost.seconds += scattering(near, true) + scattering(far, false);
    if (most) explain(cost, *most, situation(true), on_node(most->peer) ? near : far);
    return cost;
  }
  /// What comes from other nodes in strips, each while the loop works on the one before. The rest is got at once.
  std::optional<WayCost> strips() {
    const auto* near = profile_.exchange("gets", same_node);
    const auto* far = profile_.exchange("gets", other_node);
    if (!leaves_ || !far || !job_.loggp || (busy_ > 1 && !near)) return {};
    auto cost = begin("strips");
    const Traffic::Item* most = nullptr;
    Index bytes = 0;
    for (const auto& item : traffic_.incoming) {
      if (on_node(item.peer)) continue;
      bytes = checked_add(bytes, item.bytes);
      if (!most || item.bytes > most->bytes) most = &item;
    }
    if (!most || bytes == 0) return {};
    StripLoop loop{ceil_div(bytes, 8), 8, *job_.work};
    loop.link = Link::shared;
    double best = std::numeric_limits<double>::infinity();
    for (Index parts = 2; parts <= most_parts && parts <= loop.elements; parts *= 2) {
      const Index strip = ceil_div(loop.elements, parts);
      const double seconds = strip_cost(StripSchedule::fixed(strip, 2), loop, *job_.loggp).seconds();
      if (seconds < best) best = seconds, cost.extra_bytes = 2 * strip * loop.element_bytes;
    }
    if (!std::isfinite(best)) return {};
    cost.seconds = local_seconds() + scattering(near, true) + scattering(far, false) + best;
    for (const auto& [peer, both] : by_peer(true))
      if (both[1] > 0) cost.seconds += near->seconds(both[1]);
    cost.seconds += *job_.work * double(arriving() - bytes);
    explain(cost, *most, situation(true), far);
    return cost;
  }
  Index arriving() const { return checked_add(Traffic::bytes(traffic_.incoming), Traffic::bytes(traffic_.local)); }

  std::optional<WayCost> within_node(const char* way) {
    const auto* exchange = profile_.exchange(way, same_node);
    const bool direct = way == std::string_view("direct");
    if (!exchange || (leaves_ && way == std::string_view("collective"))) return {};
    auto cost = begin(way);
    // Who exchanges with nobody waits for nobody.
    cost.seconds = (busy_ > 1 || leaves_ ? exchange->seconds(1) : profile_.calls().start) + own_copies();
    const CopySituation own = situation(false), another = situation(true);
    for (const auto& item : traffic_.incoming) {
      if (!on_node(item.peer)) continue;
      cost.seconds += double(item.transfers) * exchange->transfer_seconds;
      if (direct) cost.seconds += copy_seconds(item, another);
    }
    if (!direct) exchange_with_peers(cost, *exchange);
    if (leaves_) exchange_with_others(cost);
    const auto* most = direct ? most_of({&traffic_.incoming, &traffic_.local}) : most_of({&traffic_.outgoing});
    if (!most) most = most_of({&traffic_.incoming, &traffic_.local});
    if (most) explain(cost, *most, direct ? another : own, exchange);
    return cost;
  }

 private:
  double own_transfer() const { return traffic_.blocks ? profile_.calls().block_transfer : profile_.calls().transfer; }
  using Items = std::vector<Traffic::Item>;

  bool on_node(Index peer) const {
    return job_.ranks_per_node == 0 || peer / job_.ranks_per_node == traffic_.rank / job_.ranks_per_node;
  }
  double own_copies() const {
    double seconds = 0;
    for (const auto& item : traffic_.local)
      seconds += copy_seconds(item, situation(false)) + double(item.transfers) * own_transfer();
    return seconds;
  }
  double local_seconds() const { return profile_.calls().start + own_copies(); }
  /// So many stretches of a peer's memory are told in an access.
  static Index stretches(const Traffic::Item& item) {
    if (item.shape.packing().contiguous() || item.bytes == 0) return item.transfers;
    const Index run = std::max(item.shape.run_bytes, item.shape.read.block * item.shape.word_bytes);
    return std::max(item.transfers, ceil_div(item.bytes, run));
  }
  /// What accesses take beyond one contiguous stretch from each peer of this node, or of others.
  double scattering(const ExchangeTimes* exchange, bool here) const {
    double seconds = 0;
    for (const auto& item : traffic_.incoming) {
      if (on_node(item.peer) != here) continue;
      const auto at = situation(true);
      seconds += double(stretches(item) - 1) * exchange->transfer_seconds;
      seconds += std::max(0.0, copy_seconds(item, at) - profile_.copy_seconds({}, item.bytes, at));
    }
    return seconds;
  }
  /// Short runs of a halo share their cache lines: where one is written, another one is read.
  double copy_seconds(const Traffic::Item& item, const CopySituation& here) const {
    const double seconds = profile_.copy_seconds(item.shape, item.bytes, here);
    return traffic_.halo && item.shape.in_short_runs() ? seconds / 2 : seconds;
  }
  CopySituation situation(bool from_another) const {
    return {std::max<Index>(traffic_.touched_bytes, 1), busy(), from_another};
  }
  /// Unless told otherwise, all that exchange with this rank within the node copy when it does.
  int busy() const { return job_.busy > 0 ? job_.busy : busy_; }

  WayCost begin(const char* way) const {
    WayCost cost;
    cost.way = way;
    cost.bytes = Traffic::bytes(traffic_.outgoing);
    Index last = -1;
    for (const auto& item : traffic_.outgoing) cost.messages += std::exchange(last, item.peer) != item.peer;
    return cost;
  }
  static const Traffic::Item* most_of(std::initializer_list<const Items*> lists) {
    const Traffic::Item* most = nullptr;
    for (const auto* items : lists)
      for (const auto& item : *items)
        if (!most || item.bytes > most->bytes) most = &item;
    return most;
  }

  /// Bytes by peers of this node (of others).
  std::map<Index, std::array<Index, 2>> by_peer(bool here) const {
    std::map<Index, std::array<Index, 2>> bytes;
    for (const auto& [items, side] : {std::pair{&traffic_.outgoing, 0}, {&traffic_.incoming, 1}})
      for (const auto& item : *items)
        if (on_node(item.peer) == here) bytes[item.peer][std::size_t(side)] += item.bytes;
    return bytes;
  }
  /// Both directions at once with each peer, and what packing and unpacking take beyond contiguous copies.
  void exchange_with_peers(WayCost& cost, const ExchangeTimes& exchange) {
    double rest = 0;
    for (const auto& [peer, bytes] : by_peer(true)) {
      // What is measured is an exchange: where less goes one way, it is less by half of that.
      const Index both = bytes[0] + bytes[1];
      rest += exchange.seconds(std::max<Index>(ceil_div(both, 2), 1)) - exchange.seconds(1);
    }
    cost.seconds += rest;
    const bool ring = exchange.way == "ring";
    for (const auto& [items, out] : {std::pair{&traffic_.outgoing, true}, {&traffic_.incoming, false}})
      for (const auto& item : *items) {
        if (!on_node(item.peer)) continue;
        const auto half = out ? item.shape.packing() : item.shape.unpacking();
        if (half.contiguous() && (ring || item.transfers == 1)) continue;
        // A ring's packets are copied in any case, and are in cache; messages are copied once more.
        const double copied = profile_.copy_seconds(half, item.bytes, situation(false));
        cost.seconds += ring ? std::max(0.0, copied - profile_.copy_seconds({}, item.bytes, situation(false))) : copied;
        if (!ring) cost.extra_bytes = checked_add(cost.extra_bytes, item.bytes);
      }
  }
  void exchange_with_others(WayCost& cost) {
    const auto& exchange = *profile_.exchange("messages", other_node);
    for (const auto& [peer, bytes] : by_peer(false))
      cost.seconds += exchange.seconds(std::max<Index>(std::max(bytes[0], bytes[1]), 1));
    for (const auto& [items, out] : {std::pair{&traffic_.outgoing, true}, {&traffic_.incoming, false}})
      for (const auto& item : *items) {
        const auto half = out ? item.shape.packing() : item.shape.unpacking();
        if (on_node(item.peer) || (half.contiguous() && item.transfers == 1)) continue;
        cost.seconds += profile_.copy_seconds(half, item.bytes, situation(false));
        cost.extra_bytes = checked_add(cost.extra_bytes, item.bytes);
      }
  }
  /// Seconds a byte of a copy beyond those of a contiguous one.
  double excess(const CopyShape& shape) const {
    const auto here = situation(false);
    return std::max(0.0, 1 / profile_.copy_rate(shape, here) - 1 / profile_.copy_rate({}, here));
  }

  /// The expression of what most bytes are, and its rate and bottleneck by the rules of the model.
  void explain(WayCost& cost, const Traffic::Item& item, const CopySituation& here, const ExchangeTimes* exchange) {
    const auto& shape = item.shape;
    std::vector<MeasuredTransfer> measured;
    auto rated = [&](const BasicTransfer& transfer, double rate) {
      const bool known = std::any_of(measured.begin(), measured.end(),
                                     [&](const MeasuredTransfer& one) { return one.transfer == transfer; });
      if (!known) measured.push_back({transfer, rate / 1e6});
      return TransferExpression(transfer);
    };
    auto copy = [&](const CopyShape& one) { return rated(one.copy(), profile_.copy_rate(one, here)); };
    if (!exchange || exchange->way == "direct") {
      cost.expression = copy(shape);
    } else {
      const Index bytes = std::max<Index>(item.bytes, 1);
      const double rate = double(bytes) / std::max(exchange->seconds(bytes), 1e-12);
      if (exchange->way == "gets") {
        const bool whole = item.transfers == 1 && shape.packing().contiguous() && shape.unpacking().contiguous();
        auto side = [&](const CopyShape& one) { return 1 / (1 / rate + excess(one)); };
        cost.expression = TransferExpression::parallel({rated(fetch_send(shape.read), side(shape.packing())),
                                                        rated(whole ? network_data() : network_address_data(), rate),
                                                        rated(receive_deposit(shape.write), side(shape.unpacking()))});
      } else if (exchange->way == "ring") {
        // Of an exchange, half the time goes into packing and half into unpacking.
        auto half = [&](const CopyShape& one) { return 1 / (0.5 / rate + excess(one)); };
        cost.expression = TransferExpression::sequence({rated(load_send(shape.read), half(shape.packing())),
                                                        rated(receive_store(shape.write), half(shape.unpacking()))});
      } else {
        std::vector<TransferExpression> steps;
        if (!shape.packing().contiguous() || item.transfers > 1) steps.push_back(copy(shape.packing()));
        steps.push_back(TransferExpression::parallel(
            {rated(load_send(1), rate), rated(network_data(), rate), rated(receive_deposit(1), rate)}));
        if (!shape.unpacking().contiguous() || item.transfers > 1) steps.push_back(copy(shape.unpacking()));
        cost.expression = steps.size() == 1 ? steps[0] : TransferExpression::sequence(std::move(steps));
      }
    }
    const auto estimate = evaluate(cost.expression, ThroughputTable(profile_.machine(), std::move(measured)));
    cost.expression_megabytes_per_second = estimate.megabytes_per_second;
    cost.bottleneck = estimate.parts[estimate.bottleneck].name;
  }

  const Traffic& traffic_;
  const MachineProfile& profile_;
  const Job& job_;
  int busy_ = 1;
  bool leaves_ = false;
};

}  // namespace

Prediction predict(const Traffic& traffic, const MachineProfile& profile, const Job& job) {
  Prediction found{traffic.rank, profile.coarse(), {}};
  if (job.work && !(*job.work >= 0 && std::isfinite(*job.work)))
    throw Error(ErrorKind::argument,
                "work is " + std::to_string(*job.work) + " seconds a byte; it must be finite and not negative");
  Pricing pricing(traffic, profile, job);
  const double work = job.work.value_or(0) * double(job.work ? pricing.arriving() : 0);
  if (job.threads > 0) {
    found.ways.push_back(pricing.threads());
    found.ways.back().seconds += work;
    return found;
  }
  for (const char* way : {"direct", "ring", "messages", "collective"})
    if (auto cost = pricing.within_node(way)) found.ways.push_back(*std::move(cost));
  if (job.work) {
    if (auto cost = pricing.gets()) found.ways.push_back(*std::move(cost));
    for (auto& way : found.ways) way.seconds += work;
    if (auto cost = pricing.strips()) found.ways.push_back(*std::move(cost));
  }
  if (found.ways.empty())
    throw Error(ErrorKind::argument, "the profile of " + profile.machine() +
                                         " says nothing of ways between processes; calibrate on a machine with MPI");
  std::stable_sort(found.ways.begin(), found.ways.end(),
                   [](const WayCost& a, const WayCost& b) { return a.seconds < b.seconds; });
  return found;
}

Prediction predict(const std::vector<Traffic>& ranks, const MachineProfile& profile, const Job& job) {
  if (ranks.empty()) throw Error(ErrorKind::argument, "there is no rank to predict the cost of");
  // The slowest rank of each way; the rank is that of the way that is taken.
  std::map<std::string, std::pair<WayCost, Index>> slowest;
  Prediction found;
  for (const auto& one : ranks) {
    auto prediction = predict(one, profile, job);
    found.coarse = prediction.coarse;
    for (auto& way : prediction.ways) {
      auto [known, is_new] = slowest.try_emplace(way.way, way, one.rank);
      if (!is_new && way.seconds > known->second.first.seconds) known->second = {way, one.rank};
    }
  }
  for (auto& [name, way] : slowest) found.ways.push_back(way.first);
  std::stable_sort(found.ways.begin(), found.ways.end(),
                   [](const WayCost& a, const WayCost& b) { return a.seconds < b.seconds; });
  found.rank = slowest.at(found.ways.front().way).second;
  return found;
}

}  // namespace longshore

/// Rates looked up, between those of the table where need be, and put together.
#include "longshore/model/throughput.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

namespace longshore {

namespace {

[[noreturn]] void fail(const std::string& message) { throw Error(ErrorKind::argument, message); }

/// So far from what a double can hold that sums, products and reciprocals are finite, too.
void check(const std::string& what, double value, double least) {
  if (!(value >= least && value <= 1e30))
    fail(what + " is " + std::to_string(value) + "; it must be " +
         (least > 0 ? "positive and finite" : "finite and not negative"));
}

using Rate = ThroughputTable::Rate;
using Found = std::optional<Rate>;

/// Between what is known at `low` and at `high`, at a position from 0 to 1: times per byte lie on a line.
Rate between(Rate low, const Rate& high, double position) {
  low.megabytes_per_second = 1 / ((1 - position) / low.megabytes_per_second + position / high.megabytes_per_second);
  low.measured.insert(low.measured.end(), high.measured.begin(), high.measured.end());
  return low;
}

/// The rate with one side's pattern as wanted, from those with the patterns that the table has of that side. `at` has
/// the rate with one of these, where there is one.
Found along(const std::vector<ReferencePattern>& tabulated, ReferencePattern wanted,
            const std::function<Found(ReferencePattern)>& at) {
  if (const auto exact = at(wanted)) return exact;
  if (!wanted.strided()) return {};
  std::set<Index, std::greater<>> blocks;
  for (const auto& pattern : tabulated)
    if (pattern.strided() && pattern.block <= wanted.block) blocks.insert(pattern.block);
  for (const Index block : blocks) {
    Found below, above;
    Index lower = 0, upper = 0;
    for (const auto& pattern : tabulated) {
      const bool contiguous = pattern.stride == 1;
      if (!contiguous && (!pattern.strided() || pattern.block != block)) continue;
      const Index stride = contiguous ? block : pattern.stride;
      const bool low = stride <= wanted.stride;
      if (low ? below && stride <= lower : above && stride >= upper) continue;
      const auto found = at(pattern);
      if (!found) continue;
      (low ? below : above) = found;
      (low ? lower : upper) = stride;
    }
    if (!below) continue;
    if (above && lower < wanted.stride)
      return between(*below, *above,
                     std::log(double(wanted.stride) / double(lower)) / std::log(double(upper) / double(lower)));
    if (lower > block) return below;  // not where contiguous is all that is known
  }
  return {};
}

Found congested(const ThroughputTable& table, const BasicTransfer& wanted) {
  const double congestion = wanted.congestion.value_or(table.congestion());
  Found below, above;
  double lower = 0, upper = 0;
  for (const auto& [transfer, rate] : table.transfers()) {
    if (transfer.kind != wanted.kind) continue;
    const double at = transfer.congestion.value_or(table.congestion());
    const bool low = at <= congestion;
    if (low ? below && at <= lower : above && at >= upper) continue;
    (low ? below : above) = Rate{rate, {transfer}};
    (low ? lower : upper) = at;
  }
  if (!below) return {};
  if (above && lower < congestion) return between(*below, *above, (congestion - lower) / (upper - lower));
  below->megabytes_per_second *= lower / congestion;
  return below;
}

}  // namespace

ThroughputTable::ThroughputTable(std::string machine, std::vector<MeasuredTransfer> transfers, double congestion,
                                 std::vector<ResourceConstraint> constraints)
    : machine_(std::move(machine)),
      transfers_(std::move(transfers)),
      congestion_(congestion),
      constraints_(std::move(constraints)) {
  (void)TransferExpression(network_data(congestion));  // throws where no network can have it
  std::set<std::string> seen;
  for (auto [transfer, rate] : transfers_) {
    (void)TransferExpression(transfer);
    const std::string name = transfer.to_string();
    check("the rate of " + name + " of " + machine_ + ", in MB/s,", rate, 1e-30);
    if (transfer.network()) transfer.congestion = transfer.congestion.value_or(congestion);
    if (!seen.insert(transfer.to_string()).second) fail(name + " is twice in the table of " + machine_);
  }
  for (const auto& [resource, uses, rate] : constraints_) {
    check("the rate of the resource " + resource + " of " + machine_ + ", in MB/s,", rate, 1e-30);
    for (const auto& [kind, bytes] : uses)
      check("what a byte of " + std::string(to_string(kind)) + " takes of the resource " + resource + ", in bytes,",
            bytes, 0);
  }
}

std::optional<Rate> ThroughputTable::find(const BasicTransfer& wanted) const {
  (void)TransferExpression(wanted);  // throws where there is no such transfer
  if (wanted.network()) return congested(*this, wanted);
  std::vector<ReferencePattern> reads, writes;
  for (const auto& [transfer, _] : transfers_) {
    if (transfer.kind != wanted.kind) continue;
    reads.push_back(transfer.read);
    writes.push_back(transfer.write);
  }
  const auto tabulated = [&](ReferencePattern read, ReferencePattern write) -> Found {
    for (const auto& [transfer, rate] : transfers_)
      if (transfer.kind == wanted.kind && transfer.read == read && transfer.write == write)
        return Rate{rate, {transfer}};
    return {};
  };
  return along(reads, wanted.read, [&](ReferencePattern read) {
    return along(writes, wanted.write, [&](ReferencePattern write) { return tabulated(read, write); });
  });
}

Rate ThroughputTable::rate(const BasicTransfer& wanted) const {
  if (auto found = find(wanted)) return *std::move(found);
  std::string has;
  for (const auto& [transfer, _] : transfers_)
    if (transfer.kind == wanted.kind) has += (has.empty() ? "" : ", ") + transfer.to_string();
  fail("there is no figure for " + wanted.to_string() + " of " + machine_ + "; of " + to_string(wanted.kind) +
       " its table has " + (has.empty() ? "none" : has));
}

namespace {

struct Evaluation {
  const ThroughputTable& table;
  std::vector<ThroughputEstimate::Part> parts;

  struct Result {
    double megabytes_per_second = INFINITY;
    std::vector<double> used;  ///< bytes of each constraint's resource for each byte of data
  };

  /// Appends the parts of an expression, with their shares of its time.
  Result operator()(const TransferExpression& expression) {
    using Composition = TransferExpression::Composition;
    const std::size_t first = parts.size();
    Result result{INFINITY, std::vector<double>(table.constraints().size())};
    if (expression.composition() == Composition::basic) {
      const auto& transfer = expression.transfer();
      auto [rate, measured] = table.rate(transfer);
      parts.push_back({transfer.to_string(), rate, 1, std::move(measured)});
      result.megabytes_per_second = rate;
      for (std::size_t c = 0; c < result.used.size(); ++c)
        for (const auto& [kind, bytes] : table.constraints()[c].uses)
          if (kind == transfer.kind) result.used[c] += bytes;
    } else {
      std::vector<std::size_t> begins;
      std::vector<double> rates;
      double seconds = 0;
      for (const auto& part : expression.parts()) {
        begins.push_back(parts.size());
        const auto [rate, used] = (*this)(part);
        rates.push_back(rate);
        seconds += 1 / rate;
        for (std::size_t c = 0; c < used.size(); ++c) result.used[c] += used[c];
      }
      begins.push_back(parts.size());
      const bool steps = expression.composition() == Composition::sequence;
      const auto slowest = std::size_t(std::min_element(rates.begin(), rates.end()) - rates.begin());
      result.megabytes_per_second = steps ? 1 / seconds : rates[slowest];
      for (std::size_t i = 0; i < rates.size(); ++i)
        scale(begins[i], begins[i + 1], steps ? 1 / rates[i] / seconds : i == slowest);
      // Steps take a resource one after the other: a sequence keeps a constraint that each of them keeps.
      if (steps) return result;
    }
    for (std::size_t c = 0; c < result.used.size(); ++c) {
      const auto& constraint = table.constraints()[c];
      if (result.megabytes_per_second * result.used[c] <= constraint.megabytes_per_second) continue;
      result.megabytes_per_second = constraint.megabytes_per_second / result.used[c];
      scale(first, parts.size(), 0);
      parts.push_back({constraint.resource, result.megabytes_per_second, 1, {}});
    }
    return result;
  }

  void scale(std::size_t first, std::size_t end, double by) {
    for (std::size_t i = first; i < end; ++i) parts[i].share_of_time *= by;
  }
};

}  // namespace

ThroughputEstimate evaluate(const TransferExpression& expression, const ThroughputTable& table) {
  Evaluation evaluation{table, {}};
  const double rate = evaluation(expression).megabytes_per_second;
  auto& parts = evaluation.parts;
  const auto longest = std::max_element(parts.begin(), parts.end(),
                                        [](const auto& a, const auto& b) { return a.share_of_time < b.share_of_time; });
  const auto bottleneck = std::size_t(longest - parts.begin());
  return {rate, std::move(parts), bottleneck};
}

}  // namespace longshore

/// Intersections of two one-dimensional distributions, in closed form.
///
/// A coordinate of a block-cyclic dimension owns a family of line segments: blocks of b indices every b * P. Two such
/// families meet in a pattern that repeats with the least common multiple of their cycles. One period of it is found by
/// whichever way has the least to look at: the blocks of one side, the blocks of the other, or the solutions of the
/// linear congruence that says when two blocks overlap.
#include <algorithm>
#include <tuple>

#include "longshore/plans/motion_plan.hpp"
#include "plans/intersect.hpp"
#include "plans/periodic_count.hpp"

namespace longshore {

namespace {

/// The blocks [start + k * cycle, start + k * cycle + block), k >= 0, of one coordinate, in global indices; `start` may
/// be negative where the array begins inside a block. Clipped to [0, extent).
struct Family {
  Wide start, cycle;
  Index block;
};

Family family(const Distribution& d, Index coordinate) {
  Index position = coordinate - d.source();
  if (position < 0) position += d.coordinates();
  return {Wide(position) * d.block() - d.origin(), Wide(d.block()) * d.coordinates(), d.block()};
}

/// Calls f with every interval of a coordinate within [first, last), in order, at O(1) each.
template <class F>
void for_each_block(const Family& family, Index first, Index last, F&& f) {
  Wide k = std::max<Wide>(floor_div(Wide(first) - family.start - family.block + 1, family.cycle), 0);
  for (Wide start = family.start + k * family.cycle; start < last; start += family.cycle) {
    const Index lo = Index(std::max<Wide>(start, first)), hi = Index(std::min<Wide>(start + family.block, last));
    if (lo < hi) f(Interval{lo, hi});
  }
}

/// Builds paired runs from global intervals: the local indices follow from the distributions.
class Collector {
 public:
  Collector(const Distribution& a, Index ca, const Distribution& b, Index cb) : a_(a), b_(b), ca_(ca), cb_(cb) {}

  /// `count` intervals of `length`, `step` apart; every one within a single block of both sides.
  void add(Index first, Index length, Index count = 1, Index step = 0) {
    if (length <= 0 || count <= 0) return;
    PairedRun run{first, a_.count_below(ca_, first), b_.count_below(cb_, first), length, count, 0, 0, 0};
    if (count > 1) {
      run.global_step = step;
      run.source_step = a_.count_below(ca_, first + step) - run.source;
      run.destination_step = b_.count_below(cb_, first + step) - run.destination;
    }
    runs_.push_back(run);
  }
  std::vector<PairedRun> take() {
    std::sort(runs_.begin(), runs_.end(), [](const auto& x, const auto& y) { return x.global < y.global; });
    auto result = compress(runs_);
    runs_.clear();
    return result;
  }

 private:
  const Distribution &a_, &b_;
  Index ca_, cb_;
  std::vector<PairedRun> runs_;
};

/// The part of `f` within one interval: a cut block, whole blocks, a cut block. O(1).
void clip(const Family& f, Interval interval, Collector& out) {
  auto [first, last] = interval;
  // Step into the first block that ends after `first`.
  Wide k = std::max<Wide>(floor_div(Wide(first) - f.start - f.block, f.cycle) + 1, 0);
  Wide start = f.start + k * f.cycle;
  if (start >= last) return;
  if (start < first) {
    out.add(first, Index(std::min<Wide>(start + f.block, last) - first));
    start += f.cycle;
  }
  if (start >= last) return;
  const Wide whole = last - start >= f.block ? (last - start - f.block) / f.cycle + 1 : 0;
  out.add(Index(start), f.block, Index(whole), whole > 1 ? Index(f.cycle) : 0);
  start += whole * f.cycle;
  if (start < last) out.add(Index(start), Index(last - start));
}

Wide greatest_common_divisor(Wide a, Wide b) {
  while (b != 0) std::tie(a, b) = std::pair{b, a % b};
  return a;
}

/// Two families, and what a window of their pattern can be found from, by how much there is to look at.
struct TwoFamilies {
  Family f, g;
  Wide gcd = greatest_common_divisor(f.cycle, g.cycle), period = f.cycle / gcd * g.cycle;

  /// The blocks that may reach into a window of this many indices.
  static Wide blocks(const Family& family, Wide window) { return window / family.cycle + 2; }
  /// The solutions of the congruence.
  Wide solutions() const { return (Wide(f.block) + g.block) / gcd + 1; }
  Wide least(Wide window) const {
    const Wide repeated = std::min(window, period);
    return std::min({blocks(f, repeated), blocks(g, repeated), solutions()});
  }
};

/// The inverse of a modulo m, coprime (extended Euclid).
Wide inverse_modulo(Wide a, Wide m) {
  Wide r0 = m, r1 = floor_mod(a, m), t0 = 0, t1 = 1;
  while (r1 != 0) {
    const Wide q = r0 / r1;
    std::tie(r0, r1) = std::pair{r1, r0 - q * r1};
    std::tie(t0, t1) = std::pair{t1, t0 - q * t1};
  }
  return floor_mod(t0, m);
}

/// Overlaps by congruence: block k of f and block l of g overlap when (g.start + l*g.cycle) -
/// (f.start + k*f.cycle) lies in (-g.block, f.block). Each admissible difference fixes k
/// modulo g.cycle / gcd. Covers a window of at most one period.
void solve(const TwoFamilies& both, Index first, Index last, Collector& out) {
  const auto& [f, g, gcd, period] = both;
  const Wide offset = g.start - f.start, modulus = g.cycle / gcd;
  const Wide inverse = modulus == 1 ? 0 : inverse_modulo(f.cycle / gcd, modulus);
  // Smallest difference > -g.block that is congruent to offset modulo gcd.
  Wide difference = -Wide(g.block) + 1;
  difference += floor_mod(offset - difference, gcd);
  for (; difference < f.block; difference += gcd) {
    // k * f.cycle == offset - difference (mod g.cycle)
    const Wide k = floor_mod((offset - difference) / gcd % modulus * inverse, modulus);
    const Wide begin = f.start + k * f.cycle + std::max<Wide>(difference, 0);
    const Wide end = f.start + k * f.cycle + std::min<Wide>(f.block, difference + g.block);
    // Every copy of [begin, end), a period apart, that reaches into the window.
    for (Wide shift = floor_div(Wide(first) - end, period) * period; begin + shift < last; shift += period) {
      const Wide lo = std::max<Wide>(begin + shift, first), hi = std::min<Wide>(end + shift, last);
      if (lo < hi) out.add(Index(lo), Index(hi - lo));
    }
  }
}

void check_extents(const Distribution& a, const Distribution& b) {
  if (a.extent() != b.extent())
    throw Error(ErrorKind::shape,
                "extents " + std::to_string(a.extent()) + " and " + std::to_string(b.extent()) + " differ");
}

/// Of two coordinates that own an interval each.
Interval common_interval(const Distribution& a, Index ca, const Distribution& b, Index cb) {
  const Interval ia = a.interval(ca), ib = b.interval(cb);
  return {std::max(ia.first, ib.first), std::min(ia.last, ib.last)};
}

/// Of two coordinates that own blocks in step.
Index common_of_families(const Distribution& a, Index ca, const Distribution& b, Index cb) {
  Family f = family(a, ca), g = family(b, cb);
  if (f.cycle < g.cycle) return common_of_families(b, cb, a, ca);  // f has the fewest blocks
  const Index extent = a.extent();
  Index found = 0;
  auto count = [&](Interval interval) {
    found += b.count_below(cb, interval.last) - b.count_below(cb, interval.first);
  };
  constexpr Index few = 64;  // which are looked at in less time
  const Wide first = f.start < 0 ? floor_mod(f.start, f.cycle) : f.start;
  const Wide whole = extent - first >= f.block ? (extent - first - f.block) / f.cycle + 1 : 0;
  if (whole < few) {
    for_each_block(f, 0, extent, count);
    return found;
  }
  const Wide last = first + whole * f.cycle;
  for_each_block(f, 0, Index(std::min<Wide>(first, extent)), count);  // cut blocks before and behind
  for_each_block(f, Index(std::min<Wide>(last, extent)), extent, count);
  return found +
         periodic_count({floor_mod(first - g.start, g.cycle), f.cycle, f.block, Index(whole)}, Index(g.cycle), g.block);
}

/// Listing more than this takes gigabytes.
constexpr Index most_blocks = Index{1} << 25;

[[noreturn]] void throw_too_many(const Distribution& a, const Distribution& b, Wide blocks) {
  auto words = [](const Distribution& d) { return d.to_string() + " on " + std::to_string(d.coordinates()); };
  throw Error(ErrorKind::memory_limit,
              "to list what " + words(a) + " and " + words(b) + " have in common of a dimension of " +
                  std::to_string(a.extent()) + ", " + std::to_string(Index(blocks)) +
                  " blocks have to be looked at, and at most " + std::to_string(most_blocks) +
                  " are: choose blocks of which one is a multiple of the other, or larger ones");
}

}  // namespace

Index common_indices(const Distribution& a, Index ca, const Distribution& b, Index cb) {
  check_extents(a, b);
  if (!a.intervals() && !b.intervals()) return common_of_families(a, ca, b, cb);
  if (a.intervals() && b.intervals()) return std::max<Index>(common_interval(a, ca, b, cb).size(), 0);
  const Interval one = a.intervals() ? a.interval(ca) : b.interval(cb);
  auto below = [&](Index end) { return a.intervals() ? b.count_below(cb, end) : a.count_below(ca, end); };
  return one.empty() ? 0 : below(one.last) - below(one.first);
}

PairedRuns intersect(const Distribution& a, Index ca, const Distribution& b, Index cb) {
  check_extents(a, b);
  if (a.intervals() && b.intervals()) {
    const auto both = common_interval(a, ca, b, cb);
    if (both.empty()) return PairedRuns();
    return PairedRuns::run(both.size(), a.count_below(ca, both.first), b.count_below(cb, both.first), both.first);
  }
  if (a.count(ca) == 0 || b.count(cb) == 0) return PairedRuns();
  const Index extent = a.extent();
  Collector out(a, ca, b, cb);
  auto once = [&] { return PairedRuns({PairedPeriod{out.take(), 1, 0, 0, 0}}); };

  if (a.intervals() || b.intervals()) {
    Interval ia{0, extent}, ib{0, extent};
    if (a.intervals()) ia = a.interval(ca);
    if (b.intervals()) ib = b.interval(cb);
    const Interval both{std::max(ia.first, ib.first), std::min(ia.last, ib.last)};
    if (both.empty()) return PairedRuns();
    clip(a.intervals() ? family(b, cb) : family(a, ca), both, out);
    return once();
  }

  const TwoFamilies both{family(a, ca), family(b, cb)};
  const auto& [f, g, gcd, period] = both;
  if (const Wide least = both.least(extent); least > most_blocks) throw_too_many(a, b, least);
  auto collect = [&](Index first, Index last) {
    const Wide window = last - first, by_f = TwoFamilies::blocks(f, window), by_g = TwoFamilies::blocks(g, window);
    if (both.solutions() < std::min(by_f, by_g))
      solve(both, first, last, out);
    else if (by_f <= by_g)
      for_each_block(f, first, last, [&](Interval interval) { clip(g, interval, out); });
    else
      for_each_block(g, first, last, [&](Interval interval) { clip(f, interval, out); });
    return out.take();
  };

  if (period >= extent) {
    auto runs = collect(0, extent);
    return PairedRuns({PairedPeriod{std::move(runs), 1, 0, 0, 0}});
  }
  const Index length = Index(period), repeats = extent / length;
  std::vector<PairedPeriod> periods;
  periods.push_back({collect(0, length), repeats, length, a.count_below(ca, length), b.count_below(cb, length)});
  if (repeats * length < extent) periods.push_back({collect(repeats * length, extent), 1, 0, 0, 0});
  return PairedRuns(std::move(periods));
}

PairedRuns beginning_of_intersection(const Distribution& a, Index ca, const Distribution& b, Index cb, Index blocks) {
  check_extents(a, b);
  if (a.intervals() || b.intervals()) return intersect(a, ca, b, cb);
  const TwoFamilies both{family(a, ca), family(b, cb)};
  if (both.least(a.extent()) <= blocks || common_indices(a, ca, b, cb) == 0) return intersect(a, ca, b, cb);
  Index low = 0, high = a.extent() - 1;  // the first index in common is within
  while (low < high) {
    const Index middle = low + (high - low) / 2;
    if (common_indices(a.window(0, middle + 1), ca, b.window(0, middle + 1), cb) > 0)
      high = middle;
    else
      low = middle + 1;
  }
  const Wide length = Wide(blocks) * std::max(both.f.cycle, both.g.cycle);
  const Index last = Index(std::min<Wide>(a.extent(), low + length));
  auto periods = intersect(a.window(low, last), ca, b.window(low, last), cb).periods();
  for (auto& period : periods)
    for (auto& run : period.runs)
      run.global += low, run.source += a.count_below(ca, low), run.destination += b.count_below(cb, low);
  return PairedRuns(std::move(periods));
}

std::vector<Index> partners(const Distribution& a, Index coordinate, const Distribution& b) {
  std::vector<Index> result;
  if (a.count(coordinate) == 0) return result;
  if (b.coordinates() == 1) return {0};
  if (b.kind() == Distribution::Kind::general_block) {
    for (Index c = 0; c < b.coordinates(); ++c)
      if (!intersect(a, coordinate, b, c).empty()) result.push_back(c);
    return result;
  }

  auto block_of = [&](Wide index) { return Index((index + b.origin()) / b.block()); };
  auto coordinate_of = [&](Wide block) { return Index((block + b.source()) % b.coordinates()); };
  const Index first = a.global(coordinate, 0), last = a.global(coordinate, a.count(coordinate) - 1) + 1;
  const Family f = family(a, coordinate);
  if (a.intervals() || b.block() > f.cycle - f.block) {
    // No block of b fits between two of a's: every one from the first index to the last is met.
    const Index low = block_of(first), count = std::min(block_of(last - 1) - low + 1, b.coordinates());
    for (Index k = 0; k < count; ++k) result.push_back(coordinate_of(Wide(low) + k));
    std::sort(result.begin(), result.end());
    return result;
  }

  // What each of a's blocks meets, until the pattern repeats, after lcm(f.cycle, cycle). The first block may be cut
  // short, so it is seen again.
  const Wide cycle = Wide(b.block()) * b.coordinates();
  const Wide start = f.start + floor_div(Wide(first) - f.start, f.cycle) * f.cycle;
  const Wide blocks = std::min(cycle / greatest_common_divisor(f.cycle, cycle) + 1, (last - start - 1) / f.cycle + 1);
  auto met_by = [&](Wide k, auto&& take) {
    const Wide from = start + k * f.cycle;
    const Index low = block_of(std::max<Wide>(from, first));
    const Index count = std::min(block_of(std::min<Wide>(from + f.block, last) - 1) - low + 1, b.coordinates());
    for (Index n = 0; n < count; ++n) take(coordinate_of(Wide(low) + n));
  };
  if (blocks * (f.block / b.block() + 2) < b.coordinates() / 16) {  // the others are not looked at
    for (Wide k = 0; k < blocks; ++k) met_by(k, [&](Index c) { result.push_back(c); });
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  }
  std::vector<bool> marked(b.coordinates(), false);
  Index left = b.coordinates();
  const Wide looked_at = std::min(blocks, Wide{256} * left);  // they take about as long as counting for each of them
  for (Wide k = 0; k < looked_at && left > 0; ++k)
    met_by(k, [&](Index c) {
      if (!marked[c]) marked[c] = true, --left;
    });
  for (Index c = 0; c < b.coordinates(); ++c)
    if (marked[c] || (looked_at < blocks && common_indices(a, coordinate, b, c) > 0)) result.push_back(c);
  return result;
}

}  // namespace longshore

/// Intersections of two one-dimensional distributions, in closed form.
///
/// A coordinate of a block-cyclic dimension owns a family of line segments: blocks of b indices every b * P. Two such
/// families meet in a pattern that repeats with the least common multiple of their cycles. One period of it is found by
/// whichever way has the least to look at: the blocks of one side, the blocks of the other, or the solutions of the
/// linear congruence that says when two blocks overlap.
#include <algorithm>
#include <tuple>

#include "longshore/plans/motion_plan.hpp"

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

/// The number of blocks of `f` that may reach into a window of this many indices.
Wide blocks_in(const Family& f, Wide window) { return window / f.cycle + 2; }

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
void solve(const Family& f, const Family& g, Wide gcd, Wide period, Index first, Index last, Collector& out) {
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

}  // namespace

Index common_indices(const Distribution& a, Index ca, const Distribution& b, Index cb) {
  if (!a.intervals() && !b.intervals()) return intersect(a, ca, b, cb).elements();
  check_extents(a, b);
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

  const Family f = family(a, ca), g = family(b, cb);
  const Wide gcd = greatest_common_divisor(f.cycle, g.cycle);
  const Wide period = f.cycle / gcd * g.cycle;
  auto collect = [&](Index first, Index last) {
    const Wide by_f = blocks_in(f, last - first), by_g = blocks_in(g, last - first);
    const Wide by_congruence = (Wide(f.block) + g.block) / gcd + 1;
    if (by_congruence < by_f && by_congruence < by_g)
      solve(f, g, gcd, period, first, last, out);
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
  for (Wide k = 0; k < blocks && left > 0; ++k)
    met_by(k, [&](Index c) {
      if (!marked[c]) marked[c] = true, --left;
    });
  for (Index c = 0; c < b.coordinates(); ++c)
    if (marked[c]) result.push_back(c);
  return result;
}

}  // namespace longshore

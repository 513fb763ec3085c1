// Intersections of two dimensions and the algebra of paired runs, against enumerated pairs.
#include "support/generators.hpp"

#include "longshore/plans/motion_plan.hpp"
#include "plans/intersect.hpp"
#include "plans/periodic_count.hpp"
#include "support/pairs.hpp"

namespace longshore::test {
namespace {

struct TwoDimensions {
  DimensionSpec a, b;
};

std::ostream& operator<<(std::ostream& out, const TwoDimensions& two) { return out << two.a << "  and  " << two.b; }

TwoDimensions draw_two() {
  const Index extent = draw_extent(400);
  return {draw_dimension(extent, 9), draw_dimension(extent, 9)};
}

/// The shared indices of two coordinates, the plainest way.
std::vector<PairedRuns::Pair> dense_intersection(const DenseDimension& a, Index ca, const DenseDimension& b, Index cb) {
  std::vector<PairedRuns::Pair> pairs;
  for (std::size_t i = 0; i < a.owner.size(); ++i)
    if (a.owner[i] == ca && b.owner[i] == cb) pairs.push_back({Index(i), a.local[i], b.local[i]});
  return pairs;
}

/// Some non-empty relation of many kinds: an intersection, its own slices included.
PairedRuns draw_runs() {
  const auto two = draw_two();
  const auto a = distribution(two.a), b = distribution(two.b);
  return intersect(a, draw(0, two.a.coordinates - 1), b, draw(0, two.b.coordinates - 1));
}

RC_GTEST_PROP(Intersect, equals_the_dense_intersection, ()) {
  const auto two = draw_two();
  RC_LOG() << two << '\n';
  const auto a = distribution(two.a), b = distribution(two.b);
  const DenseDimension dense_a(two.a), dense_b(two.b);
  for (Index ca = 0; ca < two.a.coordinates; ++ca)
    for (Index cb = 0; cb < two.b.coordinates; ++cb) {
      const auto expected = dense_intersection(dense_a, ca, dense_b, cb);
      const auto found = intersect(a, ca, b, cb);
      RC_ASSERT(pairs_of(found) == expected);
      RC_ASSERT(found.elements() == Index(expected.size()));
      RC_ASSERT(common_indices(a, ca, b, cb) == Index(expected.size()));
    }
}

RC_GTEST_PROP(Intersect, counts_of_many_blocks_are_those_of_the_list, ()) {
  const Index extent = draw(0, 200'000);
  auto deal = [&] {
    const Index coordinates = draw(2, 9);
    return Distribution::cyclic(extent, coordinates, draw(1, 60), draw(0, coordinates - 1), draw(0, 2000));
  };
  const auto a = deal(), b = deal();
  RC_LOG() << extent << ": " << a.to_string() << " on " << a.coordinates() << ", " << b.to_string() << " on "
           << b.coordinates() << '\n';
  const Index ca = draw(0, a.coordinates() - 1), cb = draw(0, b.coordinates() - 1);
  const auto listed = intersect(a, ca, b, cb);
  RC_ASSERT(common_indices(a, ca, b, cb) == listed.elements());
  const auto expected = pairs_of(listed), beginning = pairs_of(beginning_of_intersection(a, ca, b, cb, draw(1, 40)));
  RC_ASSERT(beginning.size() <= expected.size() && beginning.empty() == expected.empty());
  RC_ASSERT(std::equal(beginning.begin(), beginning.end(), expected.begin()));
}

RC_GTEST_PROP(Intersect, a_periodic_count_is_that_of_single_numbers, ()) {
  const Index cycle = draw(2, 40), block = draw(1, cycle - 1);
  const IntervalsInStep intervals{draw(0, 100), draw(0, 90), draw(0, 60), draw(0, 40)};
  Index expected = 0;
  for (Index k = 0; k < intervals.count; ++k)
    for (Index i = 0; i < intervals.length; ++i) expected += (intervals.first + k * intervals.step + i) % cycle < block;
  RC_ASSERT(periodic_count(intervals, cycle, block) == expected);
}

RC_GTEST_PROP(Intersect, partners_are_those_that_share_an_index, ()) {
  const auto two = draw_two();
  RC_LOG() << two << '\n';
  const auto a = distribution(two.a), b = distribution(two.b);
  const DenseDimension dense_a(two.a), dense_b(two.b);
  for (Index ca = 0; ca < two.a.coordinates; ++ca) {
    Indices expected;
    for (Index cb = 0; cb < two.b.coordinates; ++cb)
      if (!dense_intersection(dense_a, ca, dense_b, cb).empty()) expected.push_back(cb);
    RC_ASSERT(partners(a, ca, b) == expected);
  }
}

RC_GTEST_PROP(Intersect, keeps_no_more_than_two_periods_of_runs, ()) {
  using Kind = DimensionSpec::Kind;
  auto deal = [](Index extent, Index coordinates, Index block, Index origin) {
    return distribution({Kind::cyclic, extent, coordinates, block, 0, origin, {}});
  };
  const Index pa = draw(1, 9), pb = draw(1, 9), ba = draw(1, 9), bb = draw(1, 9), oa = draw(0, 99), ob = draw(0, 99);
  const Index period = std::lcm(pa * ba, pb * bb);
  const Index extent = period * draw(1, 1000000) + draw(0, period);
  const Index ca = draw(0, pa - 1), cb = draw(0, pb - 1);
  std::size_t runs = 0;
  const auto found = intersect(deal(extent, pa, ba, oa), ca, deal(extent, pb, bb, ob), cb);
  for (const auto& one : found.periods()) runs += one.runs.size();
  // A segment begins where a block of one side or of the other begins; two periods, and a cut block at each end.
  RC_ASSERT(Index(runs) <= 2 * (period / (pa * ba) + period / (pb * bb)) + 4);
}

RC_GTEST_PROP(PairedRuns, at_follows_the_order_of_the_runs, ()) {
  const auto runs = draw_runs();
  const auto expected = pairs_of(runs);
  for (Index p = 0; p < runs.elements(); ++p) RC_ASSERT(runs.at(p) == expected[std::size_t(p)]);
  RC_ASSERT_THROWS_AS(runs.at(runs.elements()), Error);
  RC_ASSERT_THROWS_AS(runs.at(-1), Error);
}

RC_GTEST_PROP(PairedRuns, restrict_is_a_slice, ()) {
  const auto runs = draw_runs();
  const auto all = pairs_of(runs);
  const Index first = draw(0, runs.elements()), last = draw(first, runs.elements());
  const auto slice = runs.restrict(first, last);
  RC_ASSERT(pairs_of(slice) == std::vector(all.begin() + first, all.begin() + last));
  RC_ASSERT(slice.elements() == last - first);
  // And of a slice again.
  const Index a = draw(0, last - first), b = draw(a, last - first);
  RC_ASSERT(pairs_of(slice.restrict(a, b)) == std::vector(all.begin() + first + a, all.begin() + first + b));
}

RC_GTEST_PROP(PairedRuns, halves_go_through_the_position, ()) {
  const auto runs = draw_runs();
  const auto all = pairs_of(runs), assembly = pairs_of(runs.source_to_position()),
             disassembly = pairs_of(runs.inverse().source_to_position().inverse()), inverse = pairs_of(runs.inverse());
  RC_ASSERT(assembly.size() == all.size() && disassembly.size() == all.size() && inverse.size() == all.size());
  for (std::size_t p = 0; p < all.size(); ++p) {
    RC_ASSERT(assembly[p].source == all[p].source && assembly[p].destination == Index(p));
    RC_ASSERT(disassembly[p].source == Index(p) && disassembly[p].destination == all[p].destination);
    RC_ASSERT(inverse[p].source == all[p].destination && inverse[p].destination == all[p].source);
  }
}

RC_GTEST_PROP(PairedRuns, scaled_replaces_every_index_by_a_stretch, ()) {
  const auto runs = draw_runs();
  const Index n = draw(1, 5);
  std::vector<PairedRuns::Pair> expected;
  for (const auto& pair : pairs_of(runs))
    for (Index e = 0; e < n; ++e)
      expected.push_back({pair.global * n + e, pair.source * n + e, pair.destination * n + e});
  RC_ASSERT(pairs_of(runs.scaled(n)) == expected);
}

RC_GTEST_PROP(PairedRuns, joined_keeps_the_pairs_and_has_no_more_runs, ()) {
  const auto runs = chance(50) ? draw_runs() : draw_runs().source_to_position();
  const auto joined = runs.joined();
  const auto before = pairs_of(runs), after = pairs_of(joined);
  RC_ASSERT(before.size() == after.size());
  for (std::size_t p = 0; p < before.size(); ++p)
    RC_ASSERT(after[p] == (PairedRuns::Pair{Index(p), before[p].source, before[p].destination}));
  RC_ASSERT(joined.run_count() <= runs.run_count());
  RC_ASSERT(joined.joined() == joined);
}

RC_GTEST_PROP(PairedRuns, position_of_destination_is_a_lower_bound, ()) {
  const auto runs = draw_runs();
  const auto all = pairs_of(runs);
  const Index end = all.empty() ? 3 : all.back().destination + 3;
  for (Index index = -1; index < end; ++index) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& pair) { return pair.destination >= index; });
    RC_ASSERT(runs.position_of_destination(index) == found - all.begin());
  }
}

RC_GTEST_PROP(PairedRuns, compress_keeps_the_pairs, ()) {
  std::vector<PairedRun> runs;
  Index global = draw(0, 5), source = draw(0, 5), destination = draw(0, 5);
  for (Index n = draw(0, 12); n > 0; --n) {
    const Index length = draw(1, 3), gap = draw(0, 2);
    runs.push_back({global, source, destination, length, 1, 0, 0, 0});
    global += length + gap, source += length + gap * draw(0, 1), destination += length + gap;
  }
  const auto compressed = compress(runs);
  const auto before = pairs_of(PairedRuns({PairedPeriod{runs}})),
             after = pairs_of(PairedRuns({PairedPeriod{compressed}}));
  RC_ASSERT(before == after);
  RC_ASSERT(compressed.size() <= runs.size());
}

}  // namespace
}  // namespace longshore::test

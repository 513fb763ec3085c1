// Metadata near 2^31 and 2^63: nothing is enumerated, counts add up, and nothing wraps.
#include "support/generators.hpp"

#include "longshore/plans/motion_plan.hpp"

namespace longshore::test {
namespace {

using Kind = DimensionSpec::Kind;

Index draw_huge_extent() {
  return *rc::gen::element<Index>((Index{1} << 31) - 1, Index{1} << 31, (Index{1} << 32) + 1, Index{1} << 62,
                                  INT64_MAX - 1, INT64_MAX, 1000000007) -
         draw(0, 3);
}

DimensionSpec draw_huge_dimension(Index extent) {
  DimensionSpec spec;
  spec.extent = extent;
  spec.coordinates = chance(30) ? *rc::gen::element<Index>(1021, 1024, 4099) : draw(1, 9);
  spec.source = draw(0, spec.coordinates - 1);
  if (chance(40)) spec.origin = chance(50) ? std::min(draw(0, 1000), INT64_MAX - extent) : INT64_MAX - extent;
  spec.kind = *rc::gen::element(Kind::block, Kind::cyclic, Kind::cyclic, Kind::cyclic, Kind::general_block);
  if (spec.kind == Kind::cyclic) {
    spec.block = *rc::gen::element<Index>(1, 2, 3, 5, 64, 1000, 4096, (Index{1} << 31) - 1, (Index{1} << 40) + 1,
                                          Index{1} << 61, Index{1} << 62);
  } else if (spec.kind == Kind::general_block) {
    spec.source = spec.origin = 0;
    spec.coordinates = draw(1, 5);
    Index left = extent;
    for (Index c = 1; c < spec.coordinates; ++c) spec.sizes.push_back(left / draw(1, 7)), left -= spec.sizes.back();
    spec.sizes.push_back(left);
  }
  return spec;
}

/// The definitions again, in 128 bits.
Index owner(const DimensionSpec& spec, Index index) {
  if (spec.kind == Kind::general_block) {
    Index c = 0, last = spec.sizes[0];
    while (index >= last) last += spec.sizes[std::size_t(++c)];
    return c;
  }
  const Wide cells = Wide(spec.extent) + spec.origin;
  const Wide block =
      spec.block ? Wide(*spec.block) : std::max<Wide>((cells + spec.coordinates - 1) / spec.coordinates, 1);
  return Index(((Wide(index) + spec.origin) / block + spec.source) % spec.coordinates);
}

Indices probes(Index n) {
  Indices result;
  for (const Index i : {Index{0}, Index{1}, n / 3, n / 2, n - 2, n - 1})
    if (i >= 0 && i < n && (result.empty() || i > result.back())) result.push_back(i);
  return result;
}

/// The index at a position of the runs; -1 where there are not so many.
Index index_at(const Runs& runs, Index position) {
  for (const auto& run : runs.runs()) {
    const Index n = run.length * run.count;
    if (position < n) return run.first + position / run.length * run.step + position % run.length;
    position -= n;
  }
  return -1;
}

RC_GTEST_PROP(Huge, distributions_hold_together, ()) {
  const auto spec = draw_huge_dimension(draw_huge_extent());
  RC_LOG() << spec << '\n';
  const auto dealt = distribution(spec);
  for (const Index i : probes(spec.extent)) {
    RC_ASSERT(dealt.owner(i) == owner(spec, i));
    RC_ASSERT(dealt.global(dealt.owner(i), dealt.local(i)) == i);
    RC_ASSERT(index_at(dealt.owned(dealt.owner(i)), dealt.local(i)) == i);
  }
  Wide total = 0;
  Index largest = 0;
  for (Index c = 0; c < dealt.coordinates(); ++c) {
    total += dealt.count(c);
    largest = std::max(largest, dealt.count(c));
    RC_ASSERT(dealt.owned(c).size() == dealt.count(c));
    for (const Index local : probes(dealt.count(c))) {
      RC_ASSERT(dealt.owner(dealt.global(c, local)) == c);
      RC_ASSERT(dealt.local(dealt.global(c, local)) == local);
    }
  }
  RC_ASSERT(total == Wide(spec.extent));
  RC_ASSERT(dealt.largest_count() == largest);
  const auto window = dealt.window(spec.extent / 3, spec.extent / 2);
  for (Index c = 0; c < std::min<Index>(dealt.coordinates(), 20); ++c)
    RC_ASSERT(window.count(c) == dealt.count_below(c, spec.extent / 2) - dealt.count_below(c, spec.extent / 3));
}

/// The segments that one period has at least, whichever way they are found: what a closed form may cost.
Wide segments(const DimensionSpec& a, const DimensionSpec& b) {
  auto cycle = [](const DimensionSpec& d) {
    return d.kind == Kind::cyclic ? std::min(Wide(*d.block) * d.coordinates, Wide(d.extent)) : Wide(d.extent);
  };
  const Wide ca = std::max<Wide>(cycle(a), 1), cb = std::max<Wide>(cycle(b), 1);
  Wide x = ca, y = cb;
  while (y != 0) std::tie(x, y) = std::pair{y, x % y};
  const Wide window = std::min<Wide>(ca / x * cb, a.extent);
  const Wide blocks = a.block && b.block ? (Wide(*a.block) + *b.block) / x : Wide(a.extent);
  return std::min({window / ca, window / cb, blocks});
}

RC_GTEST_PROP(Huge, intersections_add_up, ()) {
  const Index extent = draw_huge_extent();
  const auto sa = draw_huge_dimension(extent), sb = draw_huge_dimension(extent);
  RC_LOG() << sa << "  and  " << sb << '\n';
  RC_PRE(segments(sa, sb) < 20000);
  const auto a = distribution(sa), b = distribution(sb);
  const Index ca = draw(0, a.coordinates() - 1);
  const auto shared = partners(a, ca, b);
  Wide total = 0;
  for (std::size_t k = 0; k < shared.size() && (k < 3 || b.coordinates() < 12); ++k) {
    const Index cb = shared[k];
    const auto pairs = intersect(a, ca, b, cb);
    RC_ASSERT(!pairs.empty());
    RC_ASSERT(pairs.elements() == common_indices(a, ca, b, cb));
    total += pairs.elements();
    Index before = -1;
    for (const Index p : probes(pairs.elements())) {
      const auto pair = pairs.at(p);
      RC_ASSERT(pair.global > before);
      before = pair.global;
      RC_ASSERT(owner(sa, pair.global) == ca && owner(sb, pair.global) == cb);
      RC_ASSERT(a.local(pair.global) == pair.source);
      RC_ASSERT(b.local(pair.global) == pair.destination);
    }
  }
  if (b.coordinates() < 12) {
    RC_ASSERT(total == Wide(a.count(ca)));
    for (Index cb = 0; cb < b.coordinates(); ++cb)
      RC_ASSERT(std::binary_search(shared.begin(), shared.end(), cb) == !intersect(a, ca, b, cb).empty());
  }
}

RC_GTEST_PROP(Huge, plans_conserve_elements, ()) {
  const Index extent = draw_huge_extent();
  const auto sa = draw_huge_dimension(extent), sb = draw_huge_dimension(extent);
  RC_LOG() << sa << "  to  " << sb << '\n';
  RC_PRE(segments(sa, sb) < 20000 && sa.coordinates < 12 && sb.coordinates < 12);
  auto whole = [](const DimensionSpec& spec) {
    return Layout({distribution(spec)}, ProcessGrid{{spec.coordinates}, {false}, Order::C, {}});
  };
  const MotionPlan plan(whole(sa), whole(sb), 1);
  for (Index rank = 0; rank < plan.world_size(); ++rank) {
    Wide sent = 0, received = 0;
    plan.for_each_send(rank, [&](const Motion& motion) {
      sent += motion.elements;
      const auto relation = plan.relation(motion);
      RC_ASSERT(relation.elements() == motion.elements);
      const auto last = relation.at(relation.elements() - 1);
      RC_ASSERT(last.source < plan.source().local_size(motion.source));
      RC_ASSERT(last.destination < plan.destination().local_size(motion.destination));
    });
    plan.for_each_receive(rank, [&](const Motion& motion) { received += motion.elements; });
    RC_ASSERT(sent == Wide(plan.source().local_size(rank)));
    RC_ASSERT(received == Wide(plan.destination().local_size(rank)));
  }
}

}  // namespace
}  // namespace longshore::test

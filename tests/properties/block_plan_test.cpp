// Plans between floor plans, carried out a point at a time, against what every cell must hold.
#include "support/generators.hpp"

#include <map>

#include "longshore/plans/block_algebra.hpp"
#include "longshore/plans/block_builders.hpp"
#include "longshore/regions/partition.hpp"

namespace longshore::test {
namespace {

/// What a block's array holds at each point: the number of the cell it came from.
using Cells = std::map<std::vector<Index>, Index>;

Index number(const Point& point) {
  Index n = 0;
  for (const Index x : point) n = n * 1000 + x + 500;
  return n;
}

Cells fill(const Region& region) {
  Cells cells;
  for (Index k = 0; k < region.size(); ++k) {
    const Point p = region.point_at(k, Order::C);
    cells[p.to_vector()] = number(p);
  }
  return cells;
}

/// One element's way, from a block's point to a block's point.
struct Way {
  Index source;
  std::vector<Index> from;
  Index destination;
  std::vector<Index> to;
  auto operator<=>(const Way&) const = default;
};

std::vector<Way> ways_of(const BlockMotion& motion, const Axes& axes) {
  std::vector<Way> ways;
  for (Index k = 0; k < motion.points(); ++k) {
    Point from = motion.is_list() ? motion.source_points[k] : motion.source_region.point_at(k, Order::F);
    const Point to = motion.is_list() ? motion.destination_points[k] : motion.destination_region.point_at(k, Order::F);
    for (std::size_t d = 0; d < axes.size() && !motion.is_list(); ++d)
      from[axes[d]] = motion.source_region.lower()[axes[d]] + to[d] - motion.destination_region.lower()[d];
    ways.push_back({motion.source, from.to_vector(), motion.destination, to.to_vector()});
  }
  return ways;
}

std::vector<Way> ways_of(const BlockPlan& plan) {
  std::vector<Way> ways;
  for (const auto& motion : plan.motions()) {
    RC_ASSERT(motion.axes == (motion.is_list() ? Axes() : plan.axes()));
    for (auto& way : ways_of(motion, plan.axes())) ways.push_back(std::move(way));
  }
  return ways;
}

void carry_out(const BlockPlan& plan, const std::vector<Cells>& from, std::vector<Cells>& to) {
  for (const auto& way : ways_of(plan))  // throws where a block does not have the point
    to.at(std::size_t(way.destination))[way.to] = from.at(std::size_t(way.source)).at(way.from);
}

std::vector<Cells> contents(const FloorPlan& plan) {
  std::vector<Cells> all;
  for (Index k = 0; k < plan.size(); ++k) all.push_back(fill(plan.region(k)));
  return all;
}

/// Blocks that do not overlap: a domain cut up, some of it left out, or boxes thrown at random, minus what they share.
FloorPlan draw_blocks(const Region& domain) {
  std::vector<Region> blocks;
  if (chance(50)) {
    Point parts(domain.dims());
    for (auto& n : parts) n = draw(1, 3);
    blocks = split_evenly(domain, parts);
  } else {
    for (Index n = draw(0, 6); n > 0; --n) {
      Point lower(domain.dims()), upper(domain.dims());
      for (std::size_t d = 0; d < domain.dims(); ++d) {
        lower[d] = draw(domain.lower()[d], domain.upper()[d]);
        upper[d] = draw(lower[d], domain.upper()[d]);
      }
      blocks.emplace_back(lower, upper);
    }
    blocks = unite(blocks);
  }
  if (!blocks.empty() && chance(30)) blocks.erase(blocks.begin() + draw(0, Index(blocks.size()) - 1));
  Map owners;
  for (std::size_t k = 0; k < blocks.size(); ++k) owners.push_back(draw(0, 3));
  return {blocks, owners};
}

Region draw_domain(std::size_t dims) {
  Point lower(dims), shape(dims);
  for (std::size_t d = 0; d < dims; ++d) lower[d] = draw(-4, 4), shape[d] = draw(1, dims < 3 ? 9 : 5);
  return Region(lower, lower + shape);
}

/// The plans of single ranks are the whole plan's parts.
template <class Make>
void check_parts(const BlockPlan& whole, Make&& make) {
  for (Index rank = 0; rank < 5; ++rank) {
    const BlockPlan part = make(rank);
    RC_ASSERT(part.digest() == whole.digest());
    RC_ASSERT(part.receives(rank) == whole.receives(rank));
    RC_ASSERT(part.sends(rank) == whole.sends(rank));  // in the same order, for messages have one
    std::vector<BlockMotion> touching;
    for (const auto& motion : whole.motions())
      if (whole.source().owner(motion.source) == rank || whole.destination().owner(motion.destination) == rank)
        touching.push_back(motion);
    RC_ASSERT(part.motions() == touching);
  }
}

RC_GTEST_PROP(BlockPlan, halos_fill_every_ghost_cell_that_somebody_has, ()) {
  const auto dims = std::size_t(draw(1, 3));
  const Region domain = draw_domain(dims);
  const FloorPlan blocks = draw_blocks(domain);
  Halo halo(dims, 0, domain, {});
  for (std::size_t d = 0; d < dims; ++d) {
    // Several times around a small domain, but not around more images than a plan takes.
    halo.below[d] = draw(0, dims == 1   ? 12
                            : dims == 2 ? 6
                                        : 2),
    halo.above[d] = chance(50) ? halo.below[d] : draw(0, 2);
    halo.periodic.push_back(chance(50));
  }
  halo.corners = chance(50);
  RC_LOG() << domain.to_string() << ' ' << blocks.to_string(20) << ' ' << halo.below.to_string()
           << halo.above.to_string() << '\n';
  const BlockPlan plan = halo_exchange(blocks, halo);
  check_races(plan);

  auto found = contents(blocks), expected = found;
  carry_out(plan, contents(blocks), found);
  for (Index i = 0; i < blocks.size(); ++i) {
    const Region own = blocks.region(i), reach = own.grow(halo.below, halo.above);
    for (Index k = 0; k < reach.size(); ++k) {
      const Point p = reach.point_at(k, Order::C);
      std::size_t beyond = 0;
      Point wrapped = p;
      for (std::size_t d = 0; d < dims; ++d) {
        beyond += p[d] < own.lower()[d] || p[d] >= own.upper()[d];
        if (halo.periodic[d])
          wrapped[d] = domain.lower()[d] + Index(floor_mod(Wide(p[d]) - domain.lower()[d], domain.extent(d)));
      }
      if (beyond == 0 || (beyond > 1 && !halo.corners)) continue;
      for (Index j = 0; j < blocks.size(); ++j)
        if (blocks.region(j).contains(wrapped)) expected[std::size_t(i)][p.to_vector()] = number(wrapped);
    }
  }
  RC_ASSERT(found == expected);
  check_parts(plan, [&](Index rank) { return halo_exchange(blocks, halo, rank); });

  const BlockPlan back = plan.reverse();
  RC_ASSERT(back.reverse() == plan && back.reverse().digest() == plan.digest());
  RC_ASSERT(back.motions().size() == plan.motions().size());
  Index points = 0;
  for (const auto& volume : volumes(plan)) points += volume.points;
  for (const auto& motion : plan.motions()) points -= motion.source_region.size();
  RC_ASSERT(points == 0);
}

// Who sends what where blocks overlap is anybody's race, but all ranks must mean the same.
RC_GTEST_PROP(BlockPlan, ranks_agree_where_blocks_overlap, ()) {
  const auto dims = std::size_t(draw(1, 2));
  const Region domain = draw_domain(dims);
  auto draw_heap = [&] {
    std::vector<Region> blocks;
    Map owners;
    for (Index n = draw(0, 5); n > 0; --n) {
      blocks.push_back(draw_domain(dims) & domain);
      owners.push_back(draw(0, 3));
    }
    return FloorPlan(blocks, owners);
  };
  Halo halo(dims, draw(0, 3), domain, std::vector<bool>(dims, chance(50)));
  if (chance(50)) halo.above = Point(dims, draw(0, 3));
  halo.corners = chance(50);
  const FloorPlan plan = draw_heap(), other = chance(20) ? plan : draw_heap().grow(Point(dims, draw(0, 2)));
  check_parts(halo_exchange(plan, halo), [&](Index rank) { return halo_exchange(plan, halo, rank); });
  auto between = [&](std::optional<Index> rank) { return copy_between(plan, other, rank, halo.domain, halo.periodic); };
  check_parts(between({}), between);
  check_parts(between({}).reverse(), [&](Index rank) { return between(rank).reverse(); });
}

/// The same motions one by one, by hand.
BlockPlan by_hand(const BlockPlan& plan) {
  BlockPlan hand(plan.source(), plan.destination(), plan.axes());
  for (const auto& motion : plan.motions())
    hand.copy(motion.destination_region, motion.destination, motion.source_region, motion.source);
  return hand;
}

RC_GTEST_PROP(BlockPlan, what_never_races_does_not, ()) {
  const auto dims = std::size_t(draw(1, 3));
  const Region domain = draw_domain(dims);
  FloorPlan blocks = draw_blocks(domain), other = chance(30) ? blocks : draw_blocks(domain);
  if (chance(30)) blocks = blocks.grow(Point(dims, draw(0, 1)));  // may overlap, and leave the domain
  const std::vector<bool> periodic(blocks.empty() || domain.contains(blocks.bounding()) ? dims : 0, chance(50));
  Halo halo(dims, draw(0, 3), domain, periodic);
  halo.corners = chance(70);
  const bool filling = chance(60), endogenous = chance(50), combining = chance(50);
  BlockPlan plan = filling ? halo_exchange(blocks, halo) : copy_between(blocks, other, {}, domain, periodic);
  if (chance(50)) plan = plan.reverse();
  const BlockPlan hand = by_hand(plan);
  RC_ASSERT(hand.motions() == plan.motions());
  std::vector<BlockMotion> one_by_one;
  plan.for_each([&](const BlockMotion& motion) { one_by_one.push_back(motion); });
  std::stable_sort(one_by_one.begin(), one_by_one.end(), [](const BlockMotion& a, const BlockMotion& b) {
    return a.destination != b.destination ? a.destination < b.destination : a.source < b.source;
  });
  RC_ASSERT(plan.motions() == one_by_one);
  auto races = [&](const BlockPlan& one) {
    try {
      check_races(one, endogenous, combining);
      return false;
    } catch (const Error&) {
      return true;
    }
  };
  const bool racing = races(hand), never = plan.never_races(endogenous, combining);
  RC_CLASSIFY(never, "told from how it was made");
  RC_CLASSIFY(racing, "races");
  RC_ASSERT(!never || !racing);
  RC_ASSERT(races(plan) == racing);
}

/// What every point of a destination block must get: what the blocks of `source` have at `origin(point)`.
template <class Origin>
void expect_copies(const BlockPlan& plan, const FloorPlan& source, const FloorPlan& destination, Origin&& origin) {
  RC_ASSERT(plan.source() == source && plan.destination() == destination);
  check_races(plan);
  std::vector<Cells> found(std::size_t(destination.size())), expected(found);
  carry_out(plan, contents(source), found);
  for (Index i = 0; i < destination.size(); ++i)
    for (Index k = 0; k < destination.region(i).size(); ++k) {
      const Point to = destination.region(i).point_at(k, Order::C), from = origin(to);
      for (Index j = 0; j < source.size(); ++j)
        if (source.region(j).contains(from)) expected[std::size_t(i)][to.to_vector()] = number(from);
    }
  RC_ASSERT(found == expected);
}

Point itself(const Point& point) { return point; }

std::vector<bool> draw_periodic(std::size_t dims) {
  std::vector<bool> periodic;
  for (std::size_t d = 0; d < dims; ++d) periodic.push_back(chance(50));
  return periodic;
}

/// Into a domain that is periodic in some dimensions.
auto wrapping(const Region& domain, const std::vector<bool>& periodic) {
  return [=](Point point) {
    for (std::size_t d = 0; d < domain.dims(); ++d)
      if (periodic[d])
        point[d] = domain.lower()[d] + Index(floor_mod(Wide(point[d]) - domain.lower()[d], domain.extent(d)));
    return point;
  };
}

RC_GTEST_PROP(BlockPlan, copies_between_floor_plans_bring_every_point, ()) {
  const auto dims = std::size_t(draw(1, 3));
  const Region domain = draw_domain(dims);
  const FloorPlan source = draw_blocks(domain), destination = draw_blocks(domain.grow(draw(-1, 1)));
  expect_copies(copy_between(source, destination), source, destination, itself);
  const BlockPlan plan = copy_between(source, destination);
  check_parts(plan, [&](Index rank) { return copy_between(source, destination, rank); });
  check_parts(plan.reverse(), [&](Index rank) { return copy_between(source, destination, rank).reverse(); });
}

RC_GTEST_PROP(BlockPlan, copies_between_floor_plans_go_around_a_periodic_domain, ()) {
  const auto dims = std::size_t(draw(1, 3));
  const Region domain = draw_domain(dims);
  const auto periodic = draw_periodic(dims);
  const FloorPlan source = draw_blocks(domain);
  const FloorPlan destination = draw_blocks(domain.grow(draw(0, 2)).shift(Point(dims, draw(-12, 12))));
  auto make = [&](std::optional<Index> rank) { return copy_between(source, destination, rank, domain, periodic); };
  expect_copies(make({}), source, destination, wrapping(domain, periodic));
  check_parts(make({}), make);
}

RC_GTEST_PROP(BlockPlan, meshes_are_coarsened_and_refined, ()) {
  const auto dims = std::size_t(draw(1, 3));
  Point ratio(dims), width(dims);
  for (std::size_t d = 0; d < dims; ++d) ratio[d] = draw(1, 3), width[d] = draw(0, dims < 3 ? 4 : 2);
  const Region domain = draw_domain(dims);
  const auto periodic = draw_periodic(dims);
  const FloorPlan coarse = draw_blocks(domain), boxes = draw_blocks(domain);
  // Fine blocks as refinement makes them: of whole coarse cells.
  const FloorPlan fine = boxes.refine(ratio);
  auto down = [&](std::optional<Index> rank) { return coarsen_fine(fine, coarse, ratio, rank); };
  expect_copies(down({}), boxes, coarse, itself);
  check_parts(down({}), down);
  // Periodic, it is the way back from fine blocks that may lie across the domain's sides.
  const FloorPlan across = draw_blocks(domain.grow(draw(0, 2)).shift(Point(dims, draw(-12, 12)))).refine(ratio);
  auto back = [&](std::optional<Index> rank) { return coarsen_fine(across, coarse, ratio, rank, domain, periodic); };
  RC_ASSERT(back({}) == refine_coarse(coarse, across, ratio, Point(dims), {}, domain, periodic).reverse());
  RC_ASSERT(back({}).source() == across.coarsen(ratio) && back({}).destination() == coarse);
  check_parts(back({}), back);
  auto up = [&](std::optional<Index> rank) {
    return refine_coarse(coarse, fine, ratio, width, rank, domain, periodic);
  };
  expect_copies(up({}), coarse, boxes.grow(width), wrapping(domain, periodic));
  check_parts(up({}), up);
  // Any others may share a coarse cell, and race for it if somebody wants it.
  const FloorPlan any = draw_blocks(domain.refine(ratio));
  const auto cells = any.coarsen(ratio).regions();
  const FloorPlan all(std::vector{domain}, {0});
  bool race = false;
  for (std::size_t a = 0; a < cells.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) race = race || cells[a].overlaps(cells[b]);
  try {
    check_races(coarsen_fine(any, all, ratio));
    RC_ASSERT(!race);
  } catch (const Error& error) {
    RC_ASSERT(race && error.kind() == ErrorKind::argument);
  }
}

RC_GTEST_PROP(BlockPlan, panels_reach_every_block, ()) {
  const auto dims = std::size_t(draw(1, 3)), dim = std::size_t(draw(0, Index(dims) - 1));
  const FloorPlan blocks = draw_blocks(draw_domain(dims));
  const Region all = blocks.bounding();
  if (blocks.empty() || all.empty()) return;
  const Index first = draw(all.lower()[dim], all.upper()[dim]), last = draw(first, all.upper()[dim]);
  std::vector<Region> panels;
  for (const auto& region : blocks.regions()) {
    Point lower = region.lower(), upper = region.upper();
    if (!region.empty()) lower[dim] = first, upper[dim] = last;
    panels.emplace_back(lower, upper);
  }
  auto make = [&](std::optional<Index> rank) { return broadcast(blocks, dim, first, last, rank); };
  // A point of a panel that nobody has is an error on every rank.
  bool everywhere = true;
  const auto regions = blocks.regions();
  for (const auto& panel : panels)
    for (Index k = 0; k < panel.size(); ++k)
      everywhere = everywhere && std::any_of(regions.begin(), regions.end(), [&](const Region& region) {
                     return region.contains(panel.point_at(k, Order::C));
                   });
  RC_CLASSIFY(everywhere, "panels that are there");
  for (const auto rank : {std::optional<Index>(), {0}, {3}}) {
    bool refused = false;
    try {
      make(rank);
    } catch (const Error& error) {
      refused = error.kind() == ErrorKind::argument;
    }
    RC_ASSERT(refused == !everywhere);
  }
  if (!everywhere) return;
  expect_copies(make({}), blocks, FloorPlan(panels, blocks.owners()), itself);
  check_parts(make({}), make);
}

Axes draw_axes(std::size_t dims) {
  Axes axes(dims);
  for (std::size_t d = 0; d < dims; ++d) axes[d] = d;
  for (std::size_t d = 0; d < dims; ++d) std::swap(axes[d], axes[std::size_t(draw(Index(d), Index(dims) - 1))]);
  return axes;
}

/// q[axes[d]] of what is transposed is p[d]: where a point came from.
auto untransposing(const Axes& axes) {
  return [=](const Point& q) {
    Point p(q.dims());
    for (std::size_t d = 0; d < axes.size(); ++d) p[axes[d]] = q[d];
    return p;
  };
}

RC_GTEST_PROP(BlockPlan, transposes_bring_every_point, ()) {
  const auto dims = std::size_t(draw(1, 3));
  const Axes axes = draw_axes(dims);
  const Region domain = draw_domain(dims);
  Point lower(dims), upper(dims);
  for (std::size_t d = 0; d < dims; ++d) lower[d] = domain.lower()[axes[d]], upper[d] = domain.upper()[axes[d]];
  const FloorPlan source = draw_blocks(domain), destination = draw_blocks(Region(lower, upper));
  auto make = [&](std::optional<Index> rank) { return transpose(source, destination, axes, rank); };
  const BlockPlan plan = make({}), back = plan.reverse();
  expect_copies(plan, source, destination, untransposing(axes));
  check_parts(plan, make);
  // Backwards it is the transpose with the inverse axes, and carries the same elements.
  RC_ASSERT(back.reverse() == plan && back.axes() == BlockPlan(destination, source, inverse(axes)).axes());
  std::vector<Cells> found(std::size_t(source.size())), expected(found);
  carry_out(back, contents(destination), found);
  carry_out(transpose(destination, source, inverse(axes)), contents(destination), expected);
  RC_ASSERT(found == expected);
}

/// Motions by hand between the blocks of two floor plans: regions, wherever they are, and lists. Sparse: many of one
/// point or none, so that as often as not no two meet.
BlockPlan draw_motions(const FloorPlan& source, const FloorPlan& destination, const Axes& axes, Index most,
                       bool sparse = false) {
  BlockPlan plan(source, destination, axes);
  const std::size_t dims = source.dims();
  const Index reach = !sparse ? 3 : dims == 1 ? 1000 : dims == 2 ? 31 : 9, extent = sparse ? 0 : 3;
  for (Index n = draw(sparse ? most / 2 : 0, most); n > 0; --n) {
    const Index i = draw(0, destination.size() - 1), j = draw(0, source.size() - 1);
    if (chance(50)) {
      Point lower(dims), shape(dims), to(dims), to_shape(dims);
      for (std::size_t d = 0; d < dims; ++d) {
        lower[d] = draw(-1, reach), to[d] = draw(-1, reach);
        shape[d] = draw(0, extent) + chance(sparse ? 80 : 50);
      }
      for (std::size_t d = 0; d < dims; ++d) to_shape[d] = shape[axes.empty() ? d : axes[d]];
      plan.copy(Region(to, to + to_shape), i, Region(lower, lower + shape), j);
    } else {
      std::vector<Index> from, to;
      for (Index k = draw(0, sparse ? 1 : 5) * Index(dims); k > 0; --k)
        from.push_back(draw(-1, reach)), to.push_back(draw(-1, reach));
      plan.copy_points({dims, to}, i, {dims, from}, j);
    }
  }
  return chance(30) ? plan.reverse() : plan;
}

FloorPlan draw_boxes(std::size_t dims) {
  std::vector<Region> regions;
  Map owners;
  for (Index n = draw(1, 2); n > 0; --n) regions.push_back(draw_domain(dims)), owners.push_back(draw(0, 3));
  return {regions, owners};
}

RC_GTEST_PROP(BlockPlan, races_are_found_to_the_point, ()) {
  const auto dims = std::size_t(draw(1, 3));
  const FloorPlan blocks = draw_boxes(dims);
  // Sometimes more uses of a block than are looked at in pairs.
  const bool many = chance(40);
  const BlockPlan plan = draw_motions(blocks, blocks, {}, many ? 120 : 4, many);
  const bool endogenous = chance(50), combining = chance(50);
  std::map<std::pair<Index, std::vector<Index>>, std::pair<int, int>> uses;  // how often written and read
  for (const auto& way : ways_of(plan)) {
    ++uses[{way.destination, way.to}].first;
    if (endogenous) ++uses[{way.source, way.from}].second;
  }
  bool race = false;
  for (const auto& [point, n] : uses) race = race || (n.first > 1 && !combining) || (n.first > 0 && n.second > 0);
  RC_CLASSIFY(race && many, "races of many");
  RC_CLASSIFY(!race && many, "many, and no races");
  RC_CLASSIFY(race && !many, "races of few");
  try {
    check_races(plan, endogenous, combining);
    RC_ASSERT(!race);
  } catch (const Error& error) {
    RC_ASSERT(error.kind() == ErrorKind::argument);
    RC_ASSERT(race);
  }
}

RC_GTEST_PROP(BlockPlan, composes_what_goes_all_the_way, ()) {
  const auto dims = std::size_t(draw(1, 3));
  const FloorPlan a = draw_boxes(dims), b = draw_boxes(dims), c = draw_boxes(dims);
  const BlockPlan first = draw_motions(a, b, chance(50) ? draw_axes(dims) : Axes(), 5);
  const BlockPlan last =
      draw_motions(first.destination(), first.destination() == b ? c : b, chance(50) ? draw_axes(dims) : Axes(), 5);
  if (!(last.source() == first.destination())) return;  // one that was reversed
  std::vector<Way> expected;
  for (const auto& one : ways_of(first))
    for (const auto& two : ways_of(last))
      if (one.destination == two.source && one.to == two.from)
        expected.push_back({one.source, one.from, two.destination, two.to});
  const BlockPlan both = compose(first, last);
  RC_ASSERT(both.source() == first.source() && both.destination() == last.destination());
  auto found = ways_of(both);
  std::sort(found.begin(), found.end()), std::sort(expected.begin(), expected.end());
  RC_CLASSIFY(!found.empty(), "something goes all the way");
  RC_ASSERT(found == expected);
}

RC_GTEST_PROP(BlockPlan, ghost_vertices_are_gathered, ()) {
  // Ranges of vertices in any order of the blocks, some left out.
  const Index n = draw(1, 5);
  std::vector<Region> ranges;
  Map owners;
  for (Index at = draw(-20, 20); Index(ranges.size()) < n;) {
    const Index size = draw(0, 9);
    ranges.push_back(Region({at}, {at + size}));
    at += size + (chance(20) ? draw(0, 5) : 0);
  }
  for (Index k = 0; k < n; ++k)
    std::swap(ranges[std::size_t(k)], ranges[std::size_t(draw(k, n - 1))]), owners.push_back(draw(0, 3));
  const FloorPlan blocks(ranges, owners);
  std::vector<Index> vertices;
  for (const auto& range : ranges)
    for (Index v = range.lower()[0]; v < range.upper()[0]; ++v) vertices.push_back(v);
  std::vector<std::vector<Index>> needed(static_cast<std::size_t>(n));
  if (!vertices.empty())
    for (auto& list : needed)
      for (Index k = draw(0, 12); k > 0; --k)
        list.push_back(vertices[std::size_t(draw(0, Index(vertices.size()) - 1))]);

  auto make = [&](std::optional<Index> rank) { return gather_points(blocks, needed, rank); };
  const BlockPlan plan = make({});
  check_races(plan, true);
  RC_ASSERT(plan.source() == plan.destination() && plan.source().owners() == blocks.owners());
  auto found = contents(blocks);
  carry_out(plan, contents(blocks), found);
  for (Index k = 0; k < n; ++k) {
    const auto& list = needed[std::size_t(k)];
    const Region own = blocks.region(k), all = plan.source().region(k);
    RC_ASSERT(all.lower() == own.lower() && all.upper()[0] == own.upper()[0] + Index(list.size()));
    RC_ASSERT(found[std::size_t(k)].size() == std::size_t(own.size()) + list.size());
    for (std::size_t i = 0; i < list.size(); ++i)
      RC_ASSERT(found[std::size_t(k)].at({own.upper()[0] + Index(i)}) == number(Point{list[i]}));
  }
  check_parts(plan, make);
}

RC_GTEST_PROP(BlockPlan, comes_back_from_its_bytes, ()) {
  const auto dims = std::size_t(draw(1, 3));
  const Region domain = draw_domain(dims);
  const FloorPlan blocks = draw_blocks(domain);
  std::optional<Index> rank;
  if (chance(50)) rank = draw(0, 3);
  Halo halo(dims, draw(0, 2), domain, draw_periodic(dims));
  halo.corners = chance(50);
  BlockPlan plan = chance(50)   ? halo_exchange(blocks, halo, rank)
                   : chance(50) ? copy_between(blocks, draw_blocks(domain), rank, domain, halo.periodic)
                   : chance(50)
                       ? transpose(blocks, draw_blocks(domain), draw_axes(dims), rank)
                       : draw_motions(draw_boxes(dims), draw_boxes(dims), chance(50) ? draw_axes(dims) : Axes(), 5);
  if (!plan.source().empty() && !plan.destination().empty())
    plan.copy_points({dims, std::vector<Index>(2 * dims, 5)}, 0, {dims, std::vector<Index>(2 * dims, -3)}, 0);
  if (chance(30)) plan = plan.reverse();
  const auto bytes = plan.to_bytes();
  const BlockPlan again = BlockPlan::from_bytes(bytes);
  RC_ASSERT(again == plan && again.digest() == plan.digest() && again.motions() == plan.motions());
  RC_ASSERT(again.to_bytes() == bytes);
  RC_ASSERT(FloorPlan::from_bytes(blocks.to_bytes()) == blocks);
}

}  // namespace
}  // namespace longshore::test

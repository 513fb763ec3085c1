// Plans between floor plans, carried out a point at a time, against what every cell must hold.
#include "support/generators.hpp"

#include <map>

#include "longshore/plans/block_plan.hpp"

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

void carry_out(const std::vector<BlockMotion>& motions, const std::vector<Cells>& from, std::vector<Cells>& to) {
  for (const auto& motion : motions)
    for (Index k = 0; k < motion.source_region.size(); ++k) {
      const auto s = motion.source_region.point_at(k, Order::F).to_vector();
      to.at(std::size_t(motion.destination))[motion.destination_region.point_at(k, Order::F).to_vector()] =
          from.at(std::size_t(motion.source)).at(s);  // throws where a block does not have the point
    }
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
    halo.below[d] = draw(0, dims == 1 ? 12 : dims == 2 ? 6 : 2), halo.above[d] = chance(50) ? halo.below[d] : draw(0, 2);
    halo.periodic.push_back(chance(50));
  }
  halo.corners = chance(50);
  RC_LOG() << domain.to_string() << ' ' << blocks.to_string(20) << ' ' << halo.below.to_string() << halo.above.to_string() << '\n';
  const BlockPlan plan = BlockPlan::halo(blocks, halo);
  plan.check_races();

  auto found = contents(blocks), expected = found;
  carry_out(plan.motions(), contents(blocks), found);
  for (Index i = 0; i < blocks.size(); ++i) {
    const Region own = blocks.region(i), reach = own.grow(halo.below, halo.above);
    for (Index k = 0; k < reach.size(); ++k) {
      const Point p = reach.point_at(k, Order::C);
      std::size_t beyond = 0;
      Point wrapped = p;
      for (std::size_t d = 0; d < dims; ++d) {
        beyond += p[d] < own.lower()[d] || p[d] >= own.upper()[d];
        if (halo.periodic[d]) wrapped[d] = domain.lower()[d] + Index(floor_mod(Wide(p[d]) - domain.lower()[d], domain.extent(d)));
      }
      if (beyond == 0 || (beyond > 1 && !halo.corners)) continue;
      for (Index j = 0; j < blocks.size(); ++j)
        if (blocks.region(j).contains(wrapped)) expected[std::size_t(i)][p.to_vector()] = number(wrapped);
    }
  }
  RC_ASSERT(found == expected);
  check_parts(plan, [&](Index rank) { return BlockPlan::halo(blocks, halo, rank); });

  const BlockPlan back = plan.reverse();
  RC_ASSERT(back.reverse() == plan && back.reverse().digest() == plan.digest());
  RC_ASSERT(back.motions().size() == plan.motions().size());
  Index points = 0;
  for (const auto& volume : plan.volumes()) points += volume.points;
  for (const auto& motion : plan.motions()) points -= motion.source_region.size();
  RC_ASSERT(points == 0);
}

// Who sends what where blocks overlap is anybody's race, but all ranks must mean the same.
RC_GTEST_PROP(BlockPlan, ranks_agree_where_blocks_overlap, ()) {
  const auto dims = std::size_t(draw(1, 2));
  const Region domain = draw_domain(dims);
  std::vector<Region> blocks;
  Map owners;
  for (Index n = draw(0, 5); n > 0; --n) {
    blocks.push_back(draw_domain(dims) & domain);
    owners.push_back(draw(0, 3));
  }
  Halo halo(dims, draw(0, 3), domain, std::vector<bool>(dims, chance(50)));
  if (chance(50)) halo.above = Point(dims, draw(0, 3));
  halo.corners = chance(50);
  const FloorPlan plan(blocks, owners);
  check_parts(BlockPlan::halo(plan, halo), [&](Index rank) { return BlockPlan::halo(plan, halo, rank); });
}

RC_GTEST_PROP(BlockPlan, copies_between_floor_plans_bring_every_point, ()) {
  const auto dims = std::size_t(draw(1, 3));
  const Region domain = draw_domain(dims);
  const FloorPlan source = draw_blocks(domain), destination = draw_blocks(domain.grow(draw(-1, 1)));
  const BlockPlan plan = BlockPlan::copy_between(source, destination);
  plan.check_races();
  std::vector<Cells> found(std::size_t(destination.size())), expected(found);
  carry_out(plan.motions(), contents(source), found);
  for (Index i = 0; i < destination.size(); ++i)
    for (const auto& [point, value] : fill(destination.region(i)))
      for (Index j = 0; j < source.size(); ++j)
        if (source.region(j).contains(Point(point))) expected[std::size_t(i)][point] = value;
  RC_ASSERT(found == expected);
  check_parts(plan, [&](Index rank) { return BlockPlan::copy_between(source, destination, rank); });
  check_parts(plan.reverse(), [&](Index rank) { return BlockPlan::copy_between(source, destination, rank).reverse(); });
}

}  // namespace
}  // namespace longshore::test

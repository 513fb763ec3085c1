// Halos dimension by dimension, against the same halos all at once.
#include <cstring>
#include <map>

#include "longshore/movers/mover.hpp"
#include "longshore/plans/block_algebra.hpp"
#include "longshore/plans/block_builders.hpp"
#include "longshore/regions/partition.hpp"
#include "support/generators.hpp"

namespace longshore::test {
namespace {

struct DrawnHalo {
  FloorPlan blocks;
  Halo halo;
};

/// Cells of a lattice, of one cell or more, in any order; or of one with a hole, or a piece that is cut once more, or
/// not up to the domain's end.
DrawnHalo draw_halo() {
  const auto dims = std::size_t(draw(1, 4));
  const Index most_cuts = dims < 3 ? 4 : 2, most_extent = dims < 3 ? 5 : 2,
              most_width = dims < 3    ? 4
                           : dims == 3 ? 2
                                       : 1;
  std::vector<Region> blocks{Region(Point(dims), Point(dims, 1))};
  Point lower(dims), upper(dims);
  for (std::size_t d = 0; d < dims; ++d) {
    const auto before = std::exchange(blocks, {});
    Index cut = lower[d] = draw(-4, 4);
    for (Index n = draw(1, most_cuts); n > 0; --n) {
      upper[d] = cut + draw(1, most_extent);
      for (Region block : before) block.set(d, cut, upper[d]), blocks.push_back(block);
      cut = upper[d];
    }
  }
  for (std::size_t k = blocks.size(); k > 1; --k) std::swap(blocks[k - 1], blocks[std::size_t(draw(0, Index(k) - 1))]);
  if (chance(10)) blocks.erase(blocks.begin() + draw(0, Index(blocks.size()) - 1));
  if (chance(10)) blocks.push_back(Region(lower, lower));
  if (!blocks.empty() && chance(10)) {
    Region rest = blocks.back();
    const auto d = std::size_t(draw(0, Index(dims) - 1));
    const Index middle = draw(rest.lower()[d], rest.upper()[d]);
    blocks.back().set(d, rest.lower()[d], middle), rest.set(d, middle, rest.upper()[d]);
    blocks.push_back(rest);
  }
  Map owners;
  const Index ranks = draw(1, 6);  // some have no blocks
  for (std::size_t k = 0; k < blocks.size(); ++k) owners.push_back(draw(0, ranks - 1));
  Halo halo(dims, 0, Region(lower, upper), {});
  for (std::size_t d = 0; d < dims; ++d) {
    halo.below[d] = draw(0, most_width), halo.above[d] = chance(50) ? halo.below[d] : draw(0, most_width);
    halo.periodic.push_back(chance(50));
    if (chance(5)) halo.domain.set(d, lower[d], upper[d] + 1);
  }
  return {FloorPlan(blocks, owners), halo};
}

/// Whose cell a block has at each point.
using Cells = std::map<std::pair<Index, std::vector<Index>>, std::pair<Index, std::vector<Index>>>;

Cells own_cells(const FloorPlan& blocks) {
  Cells cells;
  for (Index k = 0; k < blocks.size(); ++k)
    for (Index i = 0; i < blocks.region(k).size(); ++i) {
      const auto point = blocks.region(k).point_at(i, Order::C).to_vector();
      cells[{k, point}] = {k, point};
    }
  return cells;
}

/// Throws where a motion reads what is not there.
Index carry_out(const BlockPlan& plan, Cells& cells) {
  Index points = 0;
  for (const auto& motion : plan.motions())
    for (Index i = 0; i < motion.points(); ++i, ++points) {
      const auto from = motion.source_region.point_at(i, Order::C),
                 to = motion.destination_region.point_at(i, Order::C);
      cells[{motion.destination, to.to_vector()}] = cells.at({motion.source, from.to_vector()});
    }
  return points;
}

RC_GTEST_PROP(Phases, fill_the_same_cells_with_the_same_values, ()) {
  const auto [blocks, halo] = draw_halo();
  RC_LOG() << blocks.to_string(90) << ", widths " << halo.below.to_string() << halo.above.to_string() << '\n';
  const BlockPlan whole = halo_exchange(blocks, halo);
  const Order order = chance(50) ? Order::C : Order::F;
  const auto parts = phases(whole, order);
  const bool several = phases_obstacle(whole).empty();
  RC_CLASSIFY(several, "in phases");
  RC_ASSERT((several ? parts.size() > 1 : parts == std::vector{whole}));

  auto at_once = own_cells(blocks), in_phases = at_once;
  Index points = carry_out(whole, at_once);
  std::vector<std::uint64_t> digests{whole.digest()};
  for (const auto& phase : parts) {
    points -= carry_out(phase, in_phases);
    check_races(phase, true);
    // What is told from how it was made is so of the motions one by one.
    BlockPlan hand(blocks, blocks);
    for (const auto& motion : phase.motions())
      hand.copy(motion.destination_region, motion.destination, motion.source_region, motion.source);
    check_races(hand, true);
    RC_ASSERT(phase.reverse().reverse() == phase);
    if (several) RC_ASSERT(std::count(digests.begin(), digests.end(), phase.digest()) == 0);
    digests.push_back(phase.digest());
  }
  RC_ASSERT(points == 0);  // each ghost cell once
  RC_ASSERT(in_phases == at_once);

  for (Index rank = 0; rank < 7; ++rank) {
    const BlockPlan mine = halo_exchange(blocks, halo, rank);
    const auto my_parts = phases(mine, order);
    RC_ASSERT(my_parts.size() == parts.size() && phases_pay(mine) == phases_pay(whole));
    for (std::size_t k = 0; k < parts.size(); ++k) {
      RC_ASSERT(my_parts[k].digest() == parts[k].digest());
      RC_ASSERT(my_parts[k].receives(rank) == parts[k].receives(rank));
      RC_ASSERT(my_parts[k].sends(rank) == parts[k].sends(rank));
    }
  }
}

RC_GTEST_PROP(Phases, movers_leave_the_same_arrays, ()) {
  const auto [blocks, halo] = draw_halo();
  const BlockPlan plan = halo_exchange(blocks, halo);
  if (!phases_obstacle(plan).empty()) return;
  GridFormat format{Index(sizeof(double)), Point(blocks.dims()), chance(50) ? Order::C : Order::F};
  for (std::size_t d = 0; d < blocks.dims(); ++d) {
    format.ghost.below[d] = halo.below[d] + draw(0, 1);
    format.ghost.above[d] = halo.above[d] + draw(0, 1);
  }
  const XArray u(blocks, {}, format), v(blocks, {}, format);
  for (const auto* array : {&u, &v})
    for (Index i = 0; i < array->memory()->bytes() / Index(sizeof(double)); ++i) {
      const double value = double(i);
      std::memcpy(array->memory()->data() + i * Index(sizeof value), &value, sizeof value);
    }
  MoveOptions options;
  options.threads = int(draw(1, 3)), options.proxy = chance(20);
  options.phases = Phases::never;
  auto at_once = bind_threads(plan, u, u, options);
  options.phases = Phases::always;
  auto in_phases = bind_threads(plan, v, v, options);
  RC_ASSERT(at_once->moved_bytes() == in_phases->moved_bytes());
  at_once->move();
  for (Index again = draw(1, 3); again > 0; --again) {
    if (chance(50)) {
      in_phases->move();
      continue;
    }
    in_phases->start();
    while (chance(80) && !in_phases->test()) {
    }
    in_phases->wait();
  }
  RC_ASSERT(std::memcmp(u.memory()->data(), v.memory()->data(), std::size_t(u.memory()->bytes())) == 0);
}

}  // namespace
}  // namespace longshore::test

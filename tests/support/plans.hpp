/// Plans and floor plans of every kind, for what must hold for all.
#pragma once

#include <limits>

#include "longshore/layouts/balance.hpp"
#include "longshore/plans/block_builders.hpp"

namespace longshore::test {

inline std::vector<BlockPlan> every_kind_of_plan() {
  const Region domain({0, 0}, {8, 6});
  const FloorPlan four = even_floor_plan(domain, 4);
  const FloorPlan tall = even_floor_plan(Region({-3, 0}, {6, 8}), 3), line = even_floor_plan(Region({0}, {100}), 5);
  Halo faces(2, 1, domain, {true, false});
  faces.corners = false;
  BlockPlan hand(four, tall, {1, 0});
  hand.copy(Region({3, 0}, {6, 4}), 0, Region({0, 3}, {4, 6}), 1);
  hand.copy_points({2, std::vector<Index>{0, 0, 5, 5}}, 2, {2, std::vector<Index>{1, 1, 1, 1}}, 3);
  hand.copy(Region({3, 4}, {6, 5}), 1, Region({0, 3}, {1, 6}), 1);
  std::vector<std::vector<Index>> needed(5);
  for (Index k = 0; k < 60; ++k) needed[std::size_t(k % 5)].push_back(k * 37 % 100);
  BlockPlan both = halo_exchange(four, Halo(2, 1), 2);
  for (const Index k : {3, 2}) both.copy(Region({0, 0}, {1, 1}), k, Region({1, 0}, {2, 1}), 3);
  return {BlockPlan(FloorPlan(), FloorPlan()),
          hand,
          hand.reverse(),
          halo_exchange(four, faces),
          both,
          both.reverse(),
          copy_between(four, tall, 1, domain, {false, true}),
          transpose(four, tall, {1, 0}),
          transpose(four, tall, {1, 0}).reverse(),
          gather_points(line, needed, 3),
          gather_points(line, needed)};
}

inline std::vector<FloorPlan> odd_floor_plans() {
  const Index far = std::numeric_limits<Index>::max();
  return {
      FloorPlan(), even_floor_plan(Region({0, 0}, {8, 6}), 4), even_floor_plan(Region({-5}, {1000}), 7),
      FloorPlan(std::vector{Region({3, 3}, {3, 9}), Region({-far - 1, 0}, {far, 1})}, {RankMap::largest_world - 1, 0}),
      FloorPlan(std::vector(3, Region(Point(), Point())), {0, 1, 2})};
}

}  // namespace longshore::test

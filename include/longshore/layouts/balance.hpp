/// Floor plans and owners that give every rank its share: even blocks, and load balance.
#pragma once

#include "longshore/layouts/floor_plan.hpp"
#include "longshore/regions/partition.hpp"

namespace longshore {

/// A domain in even blocks on a grid of `ranks` processes that
/// has the least surface in common; block k belongs to rank k.
FloorPlan even_floor_plan(const Region& domain, Index ranks, const std::vector<bool>& periodic = {});

/// Owners for things of these weights (not negative) in their given order: ranks get consecutive ones, and the heaviest
/// rank as little as can be. With `order_along`, load balance by a space-filling curve.
Map balance_in_order(std::span<const Index> weights, Index ranks);
/// Owners for things of these weights in any order: the heaviest first, each to the rank that has the least (at most
/// 4/3 of the best possible, and usually near it).
Map balance_by_knapsack(std::span<const Index> weights, Index ranks);
/// The regions on `ranks` ranks, balanced by weight (none: by points) along a curve.
FloorPlan balanced_along(std::span<const Region> regions, Index ranks, Curve curve = Curve::hilbert,
                         std::span<const Index> weights = {});

}  // namespace longshore

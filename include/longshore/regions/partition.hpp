/// Cutting regions into blocks, and putting blocks in an order in which neighbours are near.
#pragma once

#include <span>
#include <vector>

#include "longshore/regions/region.hpp"

namespace longshore {

/// `blocks[d]` blocks in every dimension, whose extents differ by one at most;
/// the last dimension's fastest. More blocks than points leave some empty.
std::vector<Region> split_evenly(const Region& domain, const Point& blocks);
/// Blocks between the cuts of every dimension: cuts[d] ascend within the domain, its two ends not among them.
std::vector<Region> split_at(const Region& domain, const std::vector<std::vector<Index>>& cuts);
/// As few even blocks as there must be for none to be larger than `largest` in any dimension.
std::vector<Region> split_to_size(const Region& domain, const Point& largest);

/// `processes` as a product of one extent a dimension, such that blocks of a domain of this shape have
/// the least surface in common: of equals, the one with the longest contiguous runs (the largest
/// extents first). Where it can be avoided, no dimension is cut into more blocks than it has points.
/// Periodic dimensions, if given, have one more surface to share.
Point process_grid(Index processes, const Point& shape, const std::vector<bool>& periodic = {});

enum class Curve { morton, hilbert };
/// The places of the regions in the list, sorted along a curve through their middles. Empty ones come last.
std::vector<Index> order_along(std::span<const Region> regions, Curve curve);

}  // namespace longshore

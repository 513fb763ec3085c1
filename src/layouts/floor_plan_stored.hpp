/// Floor plans and regions as lists of integers in what is stored.
#pragma once

#include "longshore/layouts/floor_plan.hpp"
#include "sequences/stored_words.hpp"

namespace longshore {

void write(WordWriter& out, const FloorPlan& plan);
/// Refuses more regions, so that a few bytes that say "all alike" cannot ask for any memory.
FloorPlan read_floor_plan(WordReader& in, Index most_regions);

/// Regions of more dimensions are not read: what is done with two of them takes time as the square.
inline constexpr Index most_dims = 64;
/// The lower coordinates and the extents of regions, a list a dimension; and back.
void write_regions(WordWriter& out, std::size_t dims, std::span<const Region> regions);
std::vector<Region> read_regions(WordReader& in, std::size_t dims, std::size_t n);

}  // namespace longshore

/// Floor plans among stored lists.
#pragma once

#include "longshore/layouts/floor_plan.hpp"
#include "sequences/stored_lists.hpp"

namespace longshore {

void write(ListWriter& out, const FloorPlan& plan);
/// Refuses more regions, so that a few bytes that say "all alike" cannot ask for any memory.
FloorPlan read_floor_plan(ListReader& in, Index most_regions);

/// Regions of more dimensions are not read: what is done with two of them takes time as the square.
inline constexpr Index most_dims = 64;
/// The lower coordinates and the extents of regions, a list a dimension; and back.
void write_regions(ListWriter& out, std::size_t dims, std::span<const Region> regions);
std::vector<Region> read_regions(ListReader& in, std::size_t dims, std::size_t n);

/// Carries out `read`; whatever it refuses for reasons of its own was a mistake in the bytes.
template <class Read>
auto read_stored(Read&& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(ErrorKind::argument, error.what());
  }
}

}  // namespace longshore

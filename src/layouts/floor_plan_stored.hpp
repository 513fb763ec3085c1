/// Floor plans among stored lists.
#pragma once

#include "longshore/layouts/floor_plan.hpp"
#include "sequences/stored_lists.hpp"

namespace longshore {

void write(ListWriter& out, const FloorPlan& plan);
FloorPlan read_floor_plan(ListReader& in);

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

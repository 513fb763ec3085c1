/// Sets of indices as NumPy's arrays are indexed with.
#pragma once

#include <algorithm>

#include "longshore/regions/point_list.hpp"
#include "longshore/sequences/runs.hpp"
#include "relation_buffers.hpp"

namespace longshore::python {

/// What to index an array with, by dimension: a slice where indices are evenly spaced, or an array. NumPy keeps the
/// dimension in its place where only one index is an array; where there are more, all are arrays that make an open
/// mesh.
inline nb::tuple to_index(const std::vector<Runs>& runs) {
  const auto uneven = std::count_if(runs.begin(), runs.end(), [](const Runs& one) { return !one.affine(); });
  nb::list indices;
  for (std::size_t d = 0; d < runs.size(); ++d) {
    const auto run = runs[d].affine();
    if (uneven > 1) {
      std::vector<Index> extents(runs.size(), 1);
      extents[d] = -1;
      indices.append(to_array<1>(runs[d].to_vector()).attr("reshape")(to_tuple(extents)));
    } else if (!run) {
      indices.append(to_array<1>(runs[d].to_vector()));
    } else {
      const Index stop = run->count == 0 ? run->first : run->last() + 1;
      indices.append(run->step == 1 ? nb::slice(run->first, stop) : nb::slice(run->first, stop, run->step));
    }
  }
  return nb::tuple(indices);
}

/// A list of points as an array of shape (n,) or (n, dims); None where there are none.
inline nb::object to_array(const PointList& points) {
  if (points.empty()) return nb::none();
  auto flat = to_array<1>(points.rows());
  return points.dims() == 1 ? flat : nb::object(flat.attr("reshape")(-1, points.dims()));
}

}  // namespace longshore::python

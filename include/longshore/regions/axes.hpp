/// Permutations of dimensions, as NumPy's transpose has them.
#pragma once

#include <cstddef>
#include <vector>

#include "longshore/regions/region.hpp"

namespace longshore {

/// Dimension d of what comes out is dimension axes[d] of what goes in. No axes: everything stays as it is.
using Axes = std::vector<std::size_t>;

/// Throws `Error(argument)` naming the entry unless these are all of so many dimensions, each once; or none.
void check_axes(const Axes& axes, std::size_t dims);
/// What undoes them.
Axes inverse(const Axes& axes);
/// First these, then those.
Axes then(const Axes& first, const Axes& next);

std::vector<Index> permuted(std::vector<Index> values, const Axes& axes);
Region permuted(Region region, const Axes& axes);

}  // namespace longshore

/// From what a test asks for to the library's own objects.
#pragma once

#include "support/dense.hpp"

namespace longshore::test {

inline Distribution distribution(const DimensionSpec& spec) {
  using Kind = Distribution::Kind;
  switch (spec.kind) {
    case Kind::collapsed: return Distribution::collapsed(spec.extent);
    case Kind::block:
      return Distribution::block(spec.extent, spec.coordinates, spec.block.value_or(-1), spec.source, spec.origin);
    case Kind::cyclic:
      return Distribution::cyclic(spec.extent, spec.coordinates, spec.block.value_or(1), spec.source, spec.origin);
    case Kind::general_block: return Distribution::general_block(spec.extent, spec.sizes);
  }
  throw Error(ErrorKind::argument, "no such kind");
}

/// By the constructor; `LayoutSpec::text` goes through the parser.
inline Layout layout(const LayoutSpec& spec) {
  std::vector<Distribution> dimensions;
  for (const auto& dimension : spec.dimensions) dimensions.push_back(distribution(dimension));
  ProcessGrid grid;
  for (const auto& g : spec.grid) grid.extents.push_back(g.extent), grid.replicated.push_back(g.replicated);
  grid.rank_order = spec.column_major_ranks ? Order::F : Order::C;
  const Index first = spec.first_rank;
  grid.ranks = spec.ranks.empty() ? RankMap::of_nest(AffineNest::stride(first, grid.size(), 1), first + grid.size())
                                  : process_ranks(spec.ranks);
  return Layout(std::move(dimensions), std::move(grid), spec.fortran ? Order::F : Order::C, spec.ld());
}

}  // namespace longshore::test

/// Random dimensions, layouts and moves for rapidcheck. Everything is drawn small: what is wrong shows at small sizes,
/// and the dense owner array can follow.
#pragma once

#include <gtest/gtest.h>
// In this order: its macros want GoogleTest.
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <numeric>

#include "support/build.hpp"
#include "support/quick.hpp"

namespace longshore::test {

/// Quick runs draw fewer cases, unless RC_PARAMS in the environment says how many.
inline const bool cases_chosen = [] {
  if (quick()) ::setenv("RC_PARAMS", "max_success=20", 0);
  return true;
}();

/// In [low, high].
inline Index draw(Index low, Index high) { return *rc::gen::resize(100, rc::gen::inRange(low, high + 1)); }
inline bool chance(int percent) { return draw(0, 99) >= 100 - percent; }  // shrinks to false

/// Extents that are interesting: zero, one, primes, powers of two, or anything small.
inline Index draw_extent(Index largest) {
  if (chance(30)) return std::min<Index>(*rc::gen::element<Index>(0, 1, 2, 3, 7, 8, 13, 16, 31, 37, 64, 97), largest);
  return draw(0, largest);
}

inline DimensionSpec draw_dimension(Index extent, Index most_coordinates, bool allow_collapsed = true) {
  using Kind = DimensionSpec::Kind;
  DimensionSpec spec;
  spec.extent = extent;
  spec.kind = *rc::gen::element(Kind::collapsed, Kind::block, Kind::cyclic, Kind::cyclic, Kind::general_block);
  if (!allow_collapsed && spec.kind == Kind::collapsed) spec.kind = Kind::cyclic;
  if (spec.kind == Kind::collapsed) return spec;
  spec.coordinates = draw(1, most_coordinates);
  if (spec.kind == Kind::general_block) {
    spec.sizes.assign(std::size_t(spec.coordinates), 0);
    for (Index left = extent; left > 0;) {
      const Index part = chance(50) ? left : draw(1, left);
      spec.sizes[std::size_t(draw(0, spec.coordinates - 1))] += part;
      left -= part;
    }
    return spec;
  }
  if (chance(40)) spec.source = draw(0, spec.coordinates - 1);
  if (chance(40)) spec.origin = draw(0, 3 * std::max<Index>(extent, 4));
  if (spec.kind == Kind::cyclic) {
    if (chance(80)) spec.block = draw(1, chance(20) ? extent + 3 : 6);
  } else if (chance(50)) {
    spec.block = spec.block_size() + draw(0, 3);
  }
  return spec;
}

/// What a test may ask of `draw_layout`.
struct LayoutLimits {
  Index processes = 12;
  bool ld = true;
};

/// A layout of this shape: any distributions, replicas, orders and ranks, on at most about `limits.processes`
/// processes.
inline LayoutSpec draw_layout(const Indices& shape, const LayoutLimits& limits = {}) {
  LayoutSpec spec;
  Index left = limits.processes;
  auto add_replicas = [&] {
    if (left < 2 || !chance(15)) return;
    const Index copies = draw(1, std::min<Index>(left, 3));
    spec.grid.push_back({copies, true});
    left /= copies;
  };
  add_replicas();
  for (const Index extent : shape) {
    spec.dimensions.push_back(draw_dimension(extent, std::min<Index>(left, 7)));
    const auto& dimension = spec.dimensions.back();
    if (dimension.kind == DimensionSpec::Kind::collapsed) continue;
    spec.grid.push_back({dimension.coordinates, false});
    left /= dimension.coordinates;
    add_replicas();
  }
  if (spec.grid.empty()) spec.grid.push_back({1, false});
  spec.fortran = chance(40);
  spec.column_major_ranks = chance(30);
  Index processes = 1;
  for (const auto& g : spec.grid) processes *= g.extent;
  if (chance(30)) {
    spec.first_rank = draw(0, 15);
  } else if (chance(40)) {
    Indices all(std::size_t(processes + draw(0, 5)));
    std::iota(all.begin(), all.end(), Index{0});
    for (std::size_t p = 0; p < std::size_t(processes); ++p)
      std::swap(all[p], all[std::size_t(draw(Index(p), Index(all.size()) - 1))]);
    spec.ranks.assign(all.begin(), all.begin() + processes);
  }
  if (limits.ld && chance(25)) spec.padding = draw(1, 5);
  return spec;
}

/// A shape of at most `most_elements` elements and `most_dimensions` dimensions.
inline Indices draw_shape(Index most_elements, Index most_dimensions) {
  Indices shape(std::size_t(chance(70) ? draw(1, std::min<Index>(most_dimensions, 3)) : draw(1, most_dimensions)));
  Index left = most_elements;
  for (auto& extent : shape) {
    extent = chance(5)
                 ? 0
                 : std::max<Index>(
                       1, draw_extent(shape.size() == 1 ? left : std::min<Index>(left, shape.size() < 4 ? 20 : 4)));
    left = std::max<Index>(left / std::max<Index>(extent, 1), 1);
  }
  return shape;
}

/// A redistribution with everything that may differ between its two sides.
struct MoveSpec {
  LayoutSpec source, destination;
  std::vector<std::size_t> axes;
  Index element_bytes = 1;
};

inline std::ostream& operator<<(std::ostream& out, const MoveSpec& spec) {
  out << spec.source << "\n -> " << spec.destination << ", axes";
  for (const auto axis : spec.axes) out << ' ' << axis;
  return out << ", " << spec.element_bytes << "-byte elements";
}

inline MoveSpec draw_move(Index most_elements = 600) {
  MoveSpec spec;
  const auto shape = draw_shape(most_elements, 8);
  spec.axes.resize(shape.size());
  std::iota(spec.axes.begin(), spec.axes.end(), std::size_t{0});
  if (chance(50))
    for (std::size_t d = 0; d + 1 < shape.size(); ++d)
      std::swap(spec.axes[d], spec.axes[std::size_t(draw(Index(d), Index(shape.size()) - 1))]);
  Indices permuted;
  for (const auto axis : spec.axes) permuted.push_back(shape[axis]);
  spec.source = draw_layout(shape);
  spec.destination = chance(10) && permuted == shape ? spec.source : draw_layout(permuted);
  spec.element_bytes = *rc::gen::element<Index>(1, 2, 3, 4, 8, 8, 12, 16, 24);
  return spec;
}

}  // namespace longshore::test

namespace rc {

template <>
struct Arbitrary<longshore::test::DimensionSpec> {
  static Gen<longshore::test::DimensionSpec> arbitrary() {
    return gen::exec([] { return longshore::test::draw_dimension(longshore::test::draw_extent(200), 12); });
  }
};

template <>
struct Arbitrary<longshore::test::LayoutSpec> {
  static Gen<longshore::test::LayoutSpec> arbitrary() {
    return gen::exec([] { return longshore::test::draw_layout(longshore::test::draw_shape(1500, 8)); });
  }
};

template <>
struct Arbitrary<longshore::test::MoveSpec> {
  static Gen<longshore::test::MoveSpec> arbitrary() {
    return gen::exec([] { return longshore::test::draw_move(); });
  }
};

}  // namespace rc

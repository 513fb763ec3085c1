/// Points, shapes and what goes with them, as Python gives them and as it gets them.
#pragma once

#include <nanobind/ndarray.h>

#include "lists.hpp"
#include "longshore/layouts/floor_plan.hpp"
#include "longshore/regions/axes.hpp"
#include "longshore/regions/partition.hpp"
#include "rooms.hpp"

namespace longshore::python {

/// A shape or index: an integer for one dimension, or a sequence.
inline std::vector<Index> to_indices(nb::handle value) {
  Index single = 0;
  if (nb::try_cast<Index>(value, single)) return {single};
  std::vector<Index> several;
  if (nb::try_cast<std::vector<Index>>(value, several)) return several;
  throw nb::next_overload();  // there is none: an argument that makes no sense, which mistakes.hpp tells about
}

inline Point to_point(nb::handle value) { return Point(to_indices(value)); }

/// Widths or ratios: an integer stands for every dimension.
inline Point to_point(nb::handle value, std::size_t dims) {
  Index single = 0;
  return nb::try_cast<Index>(value, single) ? Point(dims, single) : to_point(value);
}

/// Ghost widths: an integer stands for every dimension, one in a sequence for both sides of its dimension, where a pair
/// has those below and above.
inline GhostWidths to_widths(nb::handle value, std::size_t dims) {
  Index single = 0;
  if (nb::try_cast<Index>(value, single)) return Point(dims, single);
  std::vector<Index> below, above;
  for (const nb::handle each : nb::iter(value)) {
    const auto sides = nb::try_cast<Index>(each, single) ? std::vector<Index>(2, single) : to_indices(each);
    if (sides.size() != 2)
      throw Error(ErrorKind::argument, "the ghost width of dimension " + std::to_string(below.size()) + " has " +
                                           std::to_string(sides.size()) + " numbers; give one, or (below, above)");
    below.push_back(sides[0]), above.push_back(sides[1]);
  }
  return {Point(below), Point(above)};
}

/// A region, or the shape of one that begins at 0.
inline Region to_region(nb::handle value) {
  return nb::isinstance<Region>(value) ? nb::cast<Region>(value) : Region::of_shape(to_point(value));
}

inline Order to_order(const std::string& text) {
  if (text == "C" || text == "c") return Order::C;
  if (text == "F" || text == "f") return Order::F;
  throw Error(ErrorKind::argument, "order is \"" + text + "\"; it must be \"C\" or \"F\"");
}

inline Curve to_curve(const std::string& name) {
  if (name == "hilbert") return Curve::hilbert;
  if (name == "morton") return Curve::morton;
  throw Error(ErrorKind::argument, "there is no curve \"" + name + "\"; \"hilbert\" and \"morton\" are known");
}

inline nb::tuple to_tuple(const Point& point) { return to_tuple(point.to_vector()); }

/// Integers as an array of NumPy's, of this shape.
template <class T>
auto to_numpy(const T& values, std::initializer_list<std::size_t> shape) {
  auto* copy = new std::vector<Index>(values.begin(), values.end());
  nb::capsule owner(copy, [](void* p) noexcept { delete static_cast<std::vector<Index>*>(p); });
  return nb::ndarray<nb::numpy, Index>(copy->data(), shape, owner);
}

inline nb::bytes to_bytes(const std::vector<std::byte>& bytes) {
  return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

inline std::span<const std::byte> to_span(const nb::bytes& bytes) {
  return {reinterpret_cast<const std::byte*>(bytes.c_str()), bytes.size()};
}

/// NumPy's axes: negative ones are counted from the end. None: none.
inline Axes to_axes(nb::handle value, std::size_t dims) {
  Axes axes;
  if (value.is_none()) return axes;
  for (const Index axis : to_indices(value)) {
    if (axis < -Index(dims) || axis >= Index(dims))
      throw Error(ErrorKind::argument, "axes entry " + std::to_string(axes.size()) + " is " + std::to_string(axis) +
                                           ", outside [" + std::to_string(-Index(dims)) + ", " + std::to_string(dims) +
                                           ")");
    axes.push_back(std::size_t(axis < 0 ? axis + Index(dims) : axis));
  }
  if (axes.empty() && dims > 0)
    throw Error(ErrorKind::argument, "axes has 0 entries, there are " + std::to_string(dims) + " dimensions");
  return axes;
}

/// The same of transposes, which reverse the dimensions where there are none.
inline Axes to_transpose_axes(nb::handle value, std::size_t dims) {
  if (!value.is_none()) return to_axes(value, dims);
  Axes axes(dims);
  for (std::size_t d = 0; d < dims; ++d) axes[d] = dims - 1 - d;
  return axes;
}

/// A flag a dimension; one stands for all. None: none.
inline std::vector<bool> to_flags(nb::handle value, std::size_t dims) {
  if (value.is_none()) return {};
  std::vector<bool> flags;
  for (const Index flag : to_indices(value)) {
    if (flag != 0 && flag != 1)
      throw Error(ErrorKind::argument, "a flag is " + std::to_string(flag) +
                                           "; it must be True or False, one for each dimension or one for all");
    flags.push_back(flag != 0);
  }
  Index one = 0;
  return nb::try_cast<Index>(value, one) ? std::vector<bool>(dims, one != 0) : flags;
}

/// What is periodic: all blocks together, unless told otherwise.
inline Region domain_of(const FloorPlan& blocks, nb::handle domain, nb::handle periodic) {
  return !domain.is_none() ? to_region(domain) : periodic.is_none() ? Region() : blocks.bounding();
}

}  // namespace longshore::python

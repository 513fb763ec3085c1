/// What the bindings of rank maps have in common: integers from Python, of any shape, and back.
#pragma once

#include <nanobind/ndarray.h>

#include "longshore/ranks/rank_map.hpp"
#include "rooms.hpp"

namespace longshore::python {

using Array = nb::ndarray<const Index, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// An array of int64, of the shape of `like` where that is given.
nb::object to_array(std::vector<Index> values, const nb::object& like = nb::object());

/// Integers of any shape, one behind the other, and the array they came in.
struct Integers {
  nb::object array;
  Array flat;
  std::span<const Index> values() const { return {flat.data(), flat.size()}; }
};
/// `what` they are, for errors.
Integers integers(const nb::handle& given, const char* what);

/// What takes no Python, while others have it.
template <class Operation>
auto unlocked(Operation operation) {
  const nb::gil_scoped_release release;
  return operation();
}

void bind_rank_algebra(nb::class_<RankMap>& type);
void bind_rank_orders(nb::module_& module);

}  // namespace longshore::python

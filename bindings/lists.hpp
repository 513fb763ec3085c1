/// A `List` is a list in Python, as the vector that it is.
#pragma once

#include <nanobind/stl/vector.h>

#include "longshore/core/list.hpp"

namespace nanobind::detail {

template <class T>
struct type_caster<longshore::List<T>> : list_caster<longshore::List<T>, T> {};

}  // namespace nanobind::detail

/// One file a room: each binds what its room offers to Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "longshore/core/checked.hpp"

namespace longshore::python {

namespace nb = nanobind;

void bind_regions(nb::module_& module);
void bind_layouts(nb::module_& module);
void bind_ranks(nb::module_& module);
void bind_floor_plans(nb::module_& module);
void bind_xarrays(nb::module_& module);
void bind_relations(nb::module_& module);
void bind_chunks(nb::module_& module);
void bind_encodings(nb::module_& module);
void bind_messages(nb::module_& module);
void bind_relation_cache(nb::module_& module);
void bind_plans(nb::module_& module);
void bind_block_plans(nb::module_& module);
void bind_model(nb::module_& module);
void bind_predict(nb::module_& module);
void bind_copy_transfer(nb::module_& module);
void bind_movers(nb::module_& module);
void bind_tune(nb::module_& module);
void bind_strips(nb::module_& module);
void bind_windows(nb::module_& module);
void bind_finegrain(nb::module_& module);

inline nb::tuple to_tuple(const std::vector<Index>& values) { return nb::tuple(nb::cast(values)); }

}  // namespace longshore::python

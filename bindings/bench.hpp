/// `_bench`: the loops that benchmarks time. The library itself carries none of them. One file a bench.
#pragma once

#include <nanobind/nanobind.h>

namespace longshore::python {

namespace nb = nanobind;

void bind_breakeven(nb::module_& module);
void bind_assembly(nb::module_& module);
void bind_ranks_bench(nb::module_& module);
void bind_communicators_bench(nb::module_& module);

}  // namespace longshore::python

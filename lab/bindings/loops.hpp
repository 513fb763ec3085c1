/// `_loops`: what benches time in C++. One file a bench.
#pragma once

#include <nanobind/nanobind.h>

namespace longshore::bench {

namespace nb = nanobind;

void bind_breakeven(nb::module_& module);
void bind_assembly(nb::module_& module);
void bind_ranks_bench(nb::module_& module);
void bind_communicators_bench(nb::module_& module);

}  // namespace longshore::bench

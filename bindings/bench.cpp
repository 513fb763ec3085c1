#include "bench.hpp"

#include "errors.hpp"

NB_MODULE(_bench, module) {
  using namespace longshore::python;
  module.doc() = "The loops that `longshore bench` times; nothing of the library needs them.";
  register_errors();
  bind_breakeven(module);
  bind_assembly(module);
  bind_ranks_bench(module);
  bind_communicators_bench(module);
}

#include "loops.hpp"

NB_MODULE(_loops, module) {
  using namespace longshore::bench;
  module.doc() = "The loops that `longshore bench` times.";
  nb::module_::import_("longshore");  // its types and its errors are bound there
  bind_breakeven(module);
  bind_assembly(module);
  bind_ranks_bench(module);
  bind_communicators_bench(module);
}

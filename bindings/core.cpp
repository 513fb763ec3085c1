#include "errors.hpp"
#include "rooms.hpp"

NB_MODULE(_core, module) {
  using namespace longshore::python;
  module.doc() = "Longshore's C++ core: layouts, plans, relations, models and the threads engine. Use it through `longshore`.";
  module.attr("__version__") = LONGSHORE_VERSION;
  register_errors();
  bind_layouts(module);
  bind_relations(module);
  bind_encodings(module);
  bind_plans(module);
  bind_model(module);
  bind_movers(module);
}

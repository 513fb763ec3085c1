#include "build_identity.hpp"
#include "errors.hpp"
#include "mistakes.hpp"
#include "rooms.hpp"

NB_MODULE(_core, module) {
  using namespace longshore::python;
  nb::set_leak_warnings(false);  // a program may end while a thread, or an error that is kept, has something of ours
  module.doc() =
      "Longshore's C++ core: regions, layouts, plans, relations, models and the threads engine. Use it through "
      "`longshore`.";
  module.attr("version") = LONGSHORE_VERSION;
  module.attr("build_identity") = LONGSHORE_BUILD_IDENTITY;  // modules of another build are refused
  register_errors();
  bind_regions(module);
  bind_ranks(module);
  bind_layouts(module);
  bind_floor_plans(module);
  bind_relations(module);
  bind_chunks(module);
  bind_encodings(module);
  bind_messages(module);
  bind_relation_cache(module);
  bind_plans(module);
  bind_block_plans(module);
  bind_model(module);
  bind_copy_transfer(module);
  bind_movers(module);
  bind_predict(module);
  bind_strips(module);
  bind_windows(module);
  bind_tune(module);
  bind_xarrays(module);
  bind_finegrain(module);
  tell_mistakes(module);
}

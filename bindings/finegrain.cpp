#include "longshore/movers/finegrain.hpp"

#include <chrono>

#include "points.hpp"

namespace longshore::python {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

void bind_finegrain(nb::module_& module) {
  module.def("finegrain_available", &finegrain::available, "Whether this build has the finegrain engine.");
  module.def("finegrain_move",
             [](const BlockPlan& plan, const XArray& source, const XArray& destination, ElementType type,
                const std::string& combine, const std::string& order, bool checked, std::uint64_t seed) {
               BlockOptions options;
               if (!combine.empty()) options.reduction = Reduction(type, reduce_op(combine));
               options.visit = to_order(order), options.checked = checked;
               const Index ranks = std::max<Index>(1, plan.world_size());
               finegrain::Statistics statistics;
               Index bytes = 0;
               double bind_s = 0, move_s = 0;
               {
                 nb::gil_scoped_release unlocked;
                 auto start = std::chrono::steady_clock::now();
                 statistics = finegrain::run(ranks, [&](finegrain::Rank& me) {
                   const auto mover = finegrain::bind(plan, me, source, destination, options);
                   me.barrier();
                   if (me.rank() == 0) bind_s = seconds_since(start), start = std::chrono::steady_clock::now();
                   bytes += mover->moved_bytes();
                   mover->start();
                   mover->wait();
                   me.barrier();
                   if (me.rank() == 0) move_s = seconds_since(start);
                 }, {seed});
               }
               nb::dict told;
               told["ranks"] = ranks, told["bytes"] = bytes;
               told["switches"] = statistics.switches, told["stacks"] = statistics.stacks;
               told["bind_s"] = bind_s, told["move_s"] = move_s;
               return told;
             },
             nb::arg("plan"), nb::arg("source"), nb::arg("destination"), nb::arg("type"), nb::arg("combine"), nb::arg("order"),
             nb::arg("checked"), nb::arg("seed"), "What longshore.finegrain.move does.");
}

}  // namespace longshore::python

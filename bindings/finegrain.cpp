#include "longshore/engines/finegrain.hpp"

#include <chrono>
#include <optional>

#include "points.hpp"

namespace longshore::python {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

void bind_finegrain(nb::module_& module) {
  module.def("finegrain_available", &finegrain::available, "Whether this build has the finegrain engine.");
  module.def(
      "finegrain_move",
      [](const BlockPlan& plan, const XArray& source, const XArray& destination, ElementType type,
         const std::string& reduce, const std::optional<std::string>& visit, bool checked, std::uint64_t seed,
         Index rounds, Index stack_bytes, Index max_mem) {
        MoveOptions options;
        if (!reduce.empty()) options.update = Reduction(type, reduce_op(reduce));
        if (visit) options.visit = to_order(*visit);
        options.checked = checked, options.max_mem = max_mem;
        const Index ranks = std::max<Index>(1, plan.world_size());
        finegrain::Statistics statistics;
        Index bytes = 0;
        std::optional<double> bind_s, move_s;
        {
          nb::gil_scoped_release unlocked;
          auto start = std::chrono::steady_clock::now();
          statistics = finegrain::run(ranks,
                                      [&](finegrain::Rank& me) {
                                        const auto mover = finegrain::bind(plan, me, source, destination, options);
                                        bytes = checked_add(bytes, checked_mul(rounds, mover->moved_bytes()));
                                        me.barrier();
                                        // Whoever is the first to go on takes the time.
                                        if (!bind_s)
                                          bind_s = seconds_since(start), start = std::chrono::steady_clock::now();
                                        for (Index round = 0; round < rounds; ++round) mover->start(), mover->wait();
                                        me.barrier();
                                        if (!move_s) move_s = seconds_since(start);
                                      },
                                      {seed, stack_bytes});
        }
        nb::dict told;
        told["ranks"] = ranks, told["bytes"] = bytes;
        told["switches"] = statistics.switches, told["stacks"] = statistics.stacks;
        told["bind_s"] = *bind_s, told["move_s"] = *move_s;
        return told;
      },
      nb::arg("plan"), nb::arg("source"), nb::arg("destination"), nb::arg("type"), nb::arg("reduce"),
      nb::arg("visit").none(), nb::arg("checked"), nb::arg("seed"), nb::arg("rounds"), nb::arg("stack_bytes"),
      nb::arg("max_mem"), "What longshore.finegrain.move does.");
}

}  // namespace longshore::python

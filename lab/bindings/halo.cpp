/// The contenders of `longshore bench halo` for Python: one source,
/// built once for each MPI ABI family, as the mpi engine is.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include "exchange.hpp"

namespace longshore::bench {

namespace nb = nanobind;

namespace {

HaloProblem problem_of(Index ranks, Index split, Index cells, Index boxes, Index width, bool corners) {
  HaloProblem problem{ranks, split, cells, boxes, width, corners};
  problem.check();
  return problem;
}

}  // namespace

NB_MODULE(LAB_MODULE, module) {
  module.doc() =
      "What `longshore bench halo` times, for one MPI family. Communicators are given as the bits of their handles.";
  nb::module_::import_("longshore");  // its errors are bound there
  using nb::arg;
  const auto unlocked = nb::call_guard<nb::gil_scoped_release>();

  nb::class_<HaloProblem>(module, "Problem",
                          "Ranks side by side along dimension `split`, each with boxes³ boxes of cells³ cells.")
      .def_static("of", &problem_of, arg("ranks"), arg("split"), arg("cells"), arg("boxes"), arg("width"),
                  arg("corners"));

  nb::class_<Boxes>(module, "Boxes", "One rank's boxes in memory.")
      .def(nb::init<const HaloProblem&, Index>(), arg("problem"), arg("rank"), unlocked, "In ordinary memory.")
      .def_static(
          "shared",
          [](const HaloProblem& problem, std::uint64_t comm) {
            return shared_boxes(problem, mpi::CommHandle::from_bits(comm));
          },
          arg("problem"), arg("comm"), unlocked, "Collective: in memory that Longshore moves fastest.")
      .def("fill", &Boxes::fill, unlocked, "Writes all own cells anew.")
      .def("spoil", &Boxes::spoil, unlocked, "Writes NaN into all ghost cells.")
      .def("check", &Boxes::check, unlocked, "What is wrong, in words; empty where nothing is.")
      .def_prop_ro("ghost_bytes", &Boxes::ghost_bytes);

  nb::class_<HaloWay>(module, "Way", "How a hand-written exchange is cut up.")
      .def(
          "__init__",
          [](HaloWay* way, bool sweeps, bool by_direction) {
            new (way) HaloWay{sweeps, by_direction};
          },
          arg("sweeps"), arg("by_direction"));

  nb::class_<HaloExchange>(module, "Exchange", "Fills the ghost cells of boxes.")
      .def("run", &HaloExchange::run, unlocked)
      .def("describe", &HaloExchange::describe);

  // Boxes outlive what is bound to them.
  const auto keep = nb::keep_alive<0, 1>();
  module.def("plain_copy", &plain_copy, arg("boxes"), keep, "memcpy of as many bytes as there are in the ghost cells.");
  module.def(
      "hand_packed",
      [](const Boxes& boxes, std::uint64_t comm, const HaloWay& way) {
        return hand_packed(boxes, mpi::CommHandle::from_bits(comm), way);
      },
      arg("boxes"), arg("comm"), arg("way"), keep, unlocked, "Collective.");
  module.def(
      "neighbor_alltoallw",
      [](const Boxes& boxes, std::uint64_t comm, const HaloWay& way, bool persistent) {
        return neighbor_alltoallw(boxes, mpi::CommHandle::from_bits(comm), way, persistent);
      },
      arg("boxes"), arg("comm"), arg("way"), arg("persistent"), keep, unlocked, "Collective.");
  module.def("has_persistent_collectives", &has_persistent_collectives);
  module.def(
      "longshore_mover",
      [](const Boxes& boxes, std::uint64_t comm, bool proxy, std::optional<bool> phases) {
        return longshore_mover(boxes, mpi::CommHandle::from_bits(comm), proxy, phases);
      },
      arg("boxes"), arg("comm"), arg("proxy"), arg("phases") = nb::none(), keep, unlocked, "Collective.");
}

}  // namespace longshore::bench

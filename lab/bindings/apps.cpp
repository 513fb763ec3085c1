/// The applications for Python, which `longshore bench apps`
/// times: one module for each MPI family, like the mpi engine.
#include <nanobind/stl/string.h>

#include <longshore/mpi/handle.hpp>
#include "app_lines.hpp"
#include "apps/apps.hpp"

namespace nb = nanobind;

NB_MODULE(LAB_MODULE, module) {
  using namespace longshore;
  module.doc() = "Applications on Longshore, their overlapped versions and their hand-written twins.";
  nb::module_::import_("longshore");  // its errors are bound there

  module.def(
      "run",
      [](std::uint64_t comm, std::string name, char problem_class, Index size, Index panel, int iterations,
         const std::string& variant, Index parts) {
        const apps::Problem problem{std::move(name), problem_class, size, panel, iterations, parts};
        const auto result = [&] {
          nb::gil_scoped_release unlocked;
          return apps::run(mpi::Handle<struct AppsTag>::from_bits(comm).get<MPI_Comm>(), problem,
                           apps::variant_named(variant));
        }();
        nb::dict words;
        words["verified"] = result.verified;
        words["verification"] = result.verification;
        words["total_s"] = result.total_s;
        words["communication_s"] = result.communication_s;
        words["error"] = result.error;
        words["tolerance"] = result.tolerance;
        words["payload_bytes"] = result.payload_bytes;
        words["flops"] = result.flops;
        return words;
      },
      nb::arg("comm"), nb::arg("name"), nb::arg("problem_class"), nb::arg("size"), nb::arg("panel"),
      nb::arg("iterations"), nb::arg("variant"), nb::arg("parts") = 1,
      "Collective: one timed and verified run of an application.");

  module.def(
      "missing", [](const std::string& name) { return std::string(apps::missing(name)); }, nb::arg("name"),
      "Why an application was left out of this build; empty where it is there.");

  module.def(
      "lines",
      [] {
        nb::dict counts;
        for (const auto& [name, longshore, twin] : apps::lines) counts[name] = nb::make_tuple(longshore, twin);
        return counts;
      },
      "Lines of communication code by application: on Longshore, hand-written.");
}

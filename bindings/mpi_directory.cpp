/// Plans of which each rank knows only what it needs itself, and the directory that finds owners.
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include "longshore/engines/mpi_plans.hpp"
#include "mpi_rooms.hpp"
#include "points.hpp"
#include "relation_buffers.hpp"

namespace longshore::python {

namespace {

/// 64-bit integers, contiguous: `longshore._directory` has seen to that.
using Numbers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::span<const Index> span_of(const Numbers& numbers) { return {numbers.data(), numbers.size()}; }

}  // namespace

void bind_mpi_directory(nb::module_& module) {
  using mpi::Directory;

  module.def(
      "gather_points",
      [](const FloorPlan& blocks, const std::vector<Numbers>& needed, std::uint64_t comm) {
        std::vector<std::vector<Index>> lists;
        for (const auto& numbers : needed) lists.emplace_back(numbers.data(), numbers.data() + numbers.size());
        nb::gil_scoped_release unlocked;
        return mpi::gather_points(blocks, lists, mpi::CommHandle::from_bits(comm));
      },
      nb::arg("blocks"), nb::arg("needed"), nb::arg("comm"), "Collective: this rank's share of the plan.");

  module.def(
      "gather_indices",
      [](const Layout& layout, const Numbers& indices, std::uint64_t comm) {
        nb::gil_scoped_release unlocked;
        return mpi::gather_indices(layout, span_of(indices), mpi::CommHandle::from_bits(comm));
      },
      nb::arg("layout"), nb::arg("indices"), nb::arg("comm"), "Collective: one index after the other.");

  module.def(
      "copy_between",
      [](const FloorPlan& source, const std::vector<Region>& wanted, std::uint64_t comm, nb::object domain,
         nb::object periodic) {
        const Region all = domain_of(source, domain, periodic);
        const auto flags = to_flags(periodic, source.dims());
        nb::gil_scoped_release unlocked;
        return mpi::copy_between(source, wanted, mpi::CommHandle::from_bits(comm), all, flags);
      },
      nb::arg("source"), nb::arg("wanted"), nb::arg("comm"), nb::arg("domain").none(), nb::arg("periodic").none(),
      "Collective: this rank's share of the plan.");

  nb::class_<Directory>(module, "Directory", "Who owns which number. Use it through `longshore.Directory`.")
      .def(
          "__init__",
          [](Directory* self, std::uint64_t comm, const Numbers& owned) {
            nb::gil_scoped_release unlocked;
            new (self) Directory(mpi::CommHandle::from_bits(comm), span_of(owned));
          },
          nb::arg("comm"), nb::arg("owned"))
      .def(
          "find",
          [](const Directory& self, const Numbers& numbers) {
            mpi::Owners found;
            {
              nb::gil_scoped_release unlocked;
              found = self.find(span_of(numbers));
            }
            return nb::make_tuple(to_array<1>(std::move(found.ranks)), to_array<1>(std::move(found.places)));
          },
          nb::arg("numbers"))
      .def(
          "gather_points",
          [](const Directory& self, const Numbers& needed) {
            nb::gil_scoped_release unlocked;
            return mpi::gather_points(self, span_of(needed));
          },
          nb::arg("needed"))
      .def_prop_ro("owned", &Directory::owned)
      .def_prop_ro("workspace_bytes", &Directory::workspace_bytes);
}

}  // namespace longshore::python

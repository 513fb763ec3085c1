/// Rank maps with MPI's groups and communicators, and virtual communicators. Handles come and go as bits;
/// `longshore._mpi` makes mpi4py's objects of them.
#include <nanobind/stl/optional.h>

#include "longshore/mpi/virtual_comm.hpp"
#include "mpi/datatypes.hpp"
#include "mpi_rooms.hpp"

namespace longshore::python {

namespace nb = nanobind;

namespace {

using Bits = std::uint64_t;

mpi::CommHandle comm_of(Bits bits) { return mpi::CommHandle::from_bits(bits); }

using MaybeNumber = std::optional<Index>;

/// For a split, which is collective: a wrong argument must get there.
Index number(MaybeNumber given) { return given.value_or(mpi::no_number); }

MaybeNumber place(Index position) { return position == nobody ? std::nullopt : std::optional(position); }

}  // namespace

void bind_mpi_ranks(nb::module_& module) {
  using mpi::VirtualComm;
  using Unlocked = nb::call_guard<nb::gil_scoped_release>;
  const auto map = nb::arg("map"), parent = nb::arg("parent"), comm = nb::arg("comm");
  const auto colour = nb::arg("colour").none(), key = nb::arg("key").none();
  const auto context = nb::arg("context") = nb::none();

  module.def(
      "to_group", [](const RankMap& members, Bits in) { return mpi::to_group(members, comm_of(in)).bits(); }, map,
      parent, Unlocked(), "The handle of a new group of the members.");
  module.def(
      "create_communicator",
      [](const RankMap& members, Bits in, int tag) {
        return mpi::create_communicator(members, comm_of(in), tag).bits();
      },
      map, parent, nb::arg("tag"), Unlocked(),
      "Collective over the members: the handle of a new communicator of them; of none for others.");
  module.def(
      "rank_map_of_comm", [](Bits of, Bits in) { return mpi::rank_map_of(comm_of(of), comm_of(in)); }, comm, parent,
      Unlocked(), "Collective over `comm`: which ranks of `parent` its processes are.");
  module.def(
      "rank_map_of_group",
      [](Bits of, Bits in, std::optional<Index> most) {
        const auto group = mpi::GroupHandle::from_bits(of);
        return most ? mpi::rank_map_of_group(group, comm_of(in), *most) : mpi::rank_map_of_group(group, comm_of(in));
      },
      nb::arg("group"), parent, nb::arg("most") = nb::none(), Unlocked(),
      "Which ranks of `parent` the members of a group are. `most`: as many comparisons as MPI may make, for tests.");
  module.def(
      "split_ranks",
      [](Bits in, MaybeNumber colour, MaybeNumber key) {
        return mpi::split_ranks(comm_of(in), number(colour), number(key));
      },
      parent, colour, key, Unlocked(),
      "Collective over `parent`: the ranks of this colour, by key. None is an error of all.");
  module.def(
      "node_aware_order", [](Bits of) { return mpi::node_aware_order(comm_of(of)); }, comm, Unlocked(),
      "Collective: the ranks grouped by node.");

  module.def(
      "byte_type", [](Index bytes, Index block_bytes) { return mpi::byte_type(bytes, block_bytes).bits(); },
      nb::arg("bytes"), nb::arg("block_bytes"),
      "The handle of a datatype of so many bytes, as large messages have it. For tests.");

  nb::class_<VirtualComm>(module, "VirtualComm",
                          "Who is where, and under which tags. `longshore.VirtualComm` sends and receives.")
      .def_static(
          "over", [](Bits of) { return VirtualComm::over(comm_of(of)); }, comm, Unlocked())
      .def("sub", &VirtualComm::sub, nb::arg("positions"), context, Unlocked())
      .def("create", &VirtualComm::create, nb::arg("ranks"), context, Unlocked())
      .def(
          "split",
          [](const VirtualComm& self, MaybeNumber colour, MaybeNumber key, std::optional<int> context) {
            return self.split(number(colour), number(key), context);
          },
          colour, key, context, Unlocked(), "A colour or a key of None is an error of all.")
      .def_prop_ro(
          "map", [](const VirtualComm& comm) -> const RankMap& { return comm.map(); }, nb::rv_policy::copy)
      .def_prop_ro("size", &VirtualComm::size)
      .def_prop_ro("rank", [](const VirtualComm& self) { return place(self.rank()); })
      .def("peer", &VirtualComm::peer, nb::arg("rank"))
      .def(
          "position", [](const VirtualComm& self, Index rank) { return place(self.position(rank)); }, nb::arg("rank"))
      .def_prop_ro("tag_ub", &VirtualComm::tag_ub)
      .def_prop_ro("context", &VirtualComm::context)
      .def_prop_ro("contexts", &VirtualComm::contexts)
      .def(
          "stray", [](const VirtualComm& self, Index sender) { throw self.stray(sender); }, nb::arg("sender"),
          "Raises the error for a message of no member.")
      .def("wire_tag", &VirtualComm::wire_tag, nb::arg("tag"))
      .def_prop_ro("traffic", [](const VirtualComm& self) { return self.traffic().bits(); })
      .def(
          "comm", [](const VirtualComm& self) { return self.comm().bits(); }, Unlocked());
}

}  // namespace longshore::python

/// The `mpi` engine for Python: one source, built once for each MPI ABI family. `longshore._mpi` chooses among the
/// modules.
#include "longshore/engines/mpi.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "errors.hpp"
#include "mpi/datatypes.hpp"
#include "mpi_rooms.hpp"
#include "points.hpp"

namespace longshore::python {

namespace nb = nanobind;

namespace {

mpi::NodePath to_path(const std::string& name) {
  if (name == "auto") return mpi::NodePath::automatic;
  if (name == "direct") return mpi::NodePath::direct;
  if (name == "ring") return mpi::NodePath::ring;
  if (name == "messages") return mpi::NodePath::messages;
  throw Error(ErrorKind::argument, "node is '" + name + "'; it can be 'auto', 'direct', 'ring' or 'messages'");
}

mpi::Placement to_placement(const std::string& name) {
  if (name == "direct") return mpi::Placement::direct;
  if (name == "wrap") return mpi::Placement::wrap;
  throw Error(ErrorKind::argument, "placement is '" + name + "'; it can be 'direct' or 'wrap'");
}

mpi::Side to_side(const std::string& name) {
  if (name == "source") return mpi::Side::source;
  if (name == "destination") return mpi::Side::destination;
  throw Error(ErrorKind::argument, "side is '" + name + "'; it can be 'source' or 'destination'");
}

mpi::Exchange to_exchange(const std::string& name) {
  if (name == "automatic") return mpi::Exchange::automatic;
  if (name == "point_to_point") return mpi::Exchange::point_to_point;
  if (name == "neighborhood") return mpi::Exchange::neighborhood;
  if (name == "all_to_all") return mpi::Exchange::all_to_all;
  throw Error(ErrorKind::argument, "there is no exchange '" + name + "'");
}

ErrorKind to_kind(const std::string& class_name) {
  for (int kind = 0; kind <= int(ErrorKind::deadlock); ++kind)
    if (class_name == class_of(ErrorKind(kind))) return ErrorKind(kind);
  return ErrorKind::argument;
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  auto* memory = nb::inst_ptr<Memory>(nb::handle(self));
  return PyBuffer_FillInfo(view, self, memory->data(), Py_ssize_t(memory->bytes()), 0, flags);
}

PyType_Slot memory_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

}  // namespace

NB_MODULE(LONGSHORE_MPI_MODULE, module) {
  module.doc() = "Longshore's mpi engine for one MPI family. Use it through `longshore`.";
  nb::module_::import_("longshore._core");  // MotionPlan, Combine, LocalArray and Mover are bound there
  register_errors();

  nb::class_<Memory>(module, "Memory", nb::type_slots(memory_slots),
                     "Memory of an array, which the other processes of this node can map where the machine allows it. "
                     "Supports the buffer protocol.");
  module.def(
      "array_memory",
      [](std::uint64_t comm, Index bytes) { return mpi::array_memory(mpi::CommHandle::from_bits(comm), bytes); },
      nb::arg("comm"), nb::arg("bytes"), nb::call_guard<nb::gil_scoped_release>(),
      "So many bytes, all zero. Not collective.");

  nb::class_<mpi::Part>(module, "Part", "A layout rank's array, and the Memory that it lies in, or None.")
      .def(
          "__init__",
          [](mpi::Part* self, Index rank, const LocalArray& array, std::shared_ptr<Memory> memory) {
            new (self) mpi::Part{rank, array, std::move(memory)};
          },
          nb::arg("rank"), nb::arg("array"), nb::arg("memory").none());

  nb::class_<mpi::Options>(module, "Options", "How a plan between layouts is bound.")
      .def(
          "__init__",
          [](mpi::Options* self, const Combine& combine, Index max_mem, const std::string& placement,
             const std::string& node, std::string element) {
            new (self) mpi::Options{combine, max_mem, to_placement(placement), to_path(node), std::move(element)};
          },
          nb::arg("combine"), nb::arg("max_mem"), nb::arg("placement"), nb::arg("node"), nb::arg("element"));

  nb::class_<mpi::ExchangeOptions>(module, "ExchangeOptions", "How a plan between blocks is bound.")
      .def(
          "__init__",
          [](mpi::ExchangeOptions* self, ElementType type, const std::string& combine, Index max_mem, bool proxy,
             bool checked, const std::string& order, const std::string& node, bool aggregate, Index packet_bytes,
             bool preallocate, const std::string& exchange, std::string element) {
            mpi::ExchangeOptions options;
            if (!combine.empty()) options.reduction = Reduction(type, reduce_op(combine));
            options.max_mem = max_mem, options.proxy = proxy, options.checked = checked;
            options.visit = to_order(order), options.node = to_path(node), options.aggregate = aggregate;
            options.packet_bytes = packet_bytes, options.preallocate = preallocate;
            options.exchange = to_exchange(exchange), options.element = std::move(element);
            new (self) mpi::ExchangeOptions(std::move(options));
          },
          nb::arg("type"), nb::arg("combine"), nb::arg("max_mem"), nb::arg("proxy"), nb::arg("checked"),
          nb::arg("order"), nb::arg("node"), nb::arg("aggregate"), nb::arg("packet_bytes"), nb::arg("preallocate"),
          nb::arg("exchange"), nb::arg("element"));

  module.def(
      "comm_facts",
      [](std::uint64_t comm) {
        const auto facts = mpi::comm_facts(mpi::CommHandle::from_bits(comm));
        return std::pair(facts.rank, facts.size);
      },
      nb::arg("comm"), "(rank, size) of a communicator as this module's MPI library sees it.");

  module.def(
      "agree",
      [](std::uint64_t comm, const std::optional<std::string>& error_class, const std::string& message) {
        const Error error(to_kind(error_class.value_or("")), message);
        nb::gil_scoped_release unlocked;
        mpi::agree(mpi::CommHandle::from_bits(comm), error_class ? &error : nullptr);
      },
      nb::arg("comm"), nb::arg("error_class").none(), nb::arg("message"),
      "Collective: raises on every process if one of them brings an error.");

  module.def(
      "gather_texts",
      [](std::uint64_t comm, const std::string& text) {
        nb::gil_scoped_release unlocked;
        return mpi::gather_texts(mpi::CommHandle::from_bits(comm), text);
      },
      nb::arg("comm"), nb::arg("text"), "Collective: every process's text, in order of rank.");

  // What may be wrong on one rank alone is found before these are called: their arguments are of their types already.
  module.def(
      "bind",
      [](const MotionPlan& plan, std::uint64_t comm, std::vector<mpi::Part> sources,
         std::vector<mpi::Part> destinations, const mpi::Options& options) {
        nb::gil_scoped_release unlocked;
        return mpi::bind(plan, mpi::CommHandle::from_bits(comm), std::move(sources), std::move(destinations), options);
      },
      nb::arg("plan"), nb::arg("comm"), nb::arg("sources"), nb::arg("destinations"), nb::arg("options"),
      "Collective: binds a plan to the parts of all processes.");

  module.def(
      "make_grids",
      [](const FloorPlan& blocks, std::uint64_t comm, Index itemsize, nb::object ghost, const std::string& order) {
        return mpi::make_xarray(blocks, mpi::CommHandle::from_bits(comm),
                                {itemsize, to_point(ghost, blocks.dims()), to_order(order)});
      },
      nb::arg("blocks"), nb::arg("comm"), nb::arg("itemsize"), nb::arg("ghost"), nb::arg("order"),
      "This process's blocks, where other processes of its node can reach them. Not collective.");

  module.def(
      "bind_blocks",
      [](const BlockPlan& plan, std::uint64_t comm, const XArray& source, const XArray& destination,
         const mpi::ExchangeOptions& options) {
        return mpi::bind(plan, mpi::CommHandle::from_bits(comm), source, destination, options);
      },
      nb::arg("plan"), nb::arg("comm"), nb::arg("source"), nb::arg("destination"), nb::arg("options"),
      nb::call_guard<nb::gil_scoped_release>(), "Collective: binds a plan between blocks.");

  module.def(
      "from_datatype",
      [](std::uint64_t type, Index count) { return mpi::from_datatype(mpi::DatatypeHandle::from_bits(type), count); },
      nb::arg("type"), nb::arg("count"), nb::call_guard<nb::gil_scoped_release>(),
      "The buffer of a datatype -> a dense message, in the order of the typemap.");

  module.def(
      "from_datatypes",
      [](std::uint64_t source, Index source_count, std::uint64_t destination, Index destination_count) {
        return mpi::from_datatypes(mpi::DatatypeHandle::from_bits(source), source_count,
                                   mpi::DatatypeHandle::from_bits(destination), destination_count);
      },
      nb::arg("source"), nb::arg("source_count"), nb::arg("destination"), nb::arg("destination_count"),
      nb::call_guard<nb::gil_scoped_release>(), "The buffer of one datatype -> the buffer of another.");

  module.def(
      "to_datatype",
      [](const AddressRelation& relation, const std::string& side, std::optional<Index> most) {
        const auto which = to_side(side);
        nb::gil_scoped_release unlocked;
        return (most ? mpi::to_datatype(relation, which, *most) : mpi::to_datatype(relation, which)).bits();
      },
      nb::arg("relation"), nb::arg("side"), nb::arg("most") = nb::none(),
      "The handle of a new committed datatype. `most`: the largest count in one constructor, for tests.");

  bind_mpi_ranks(module);
}

}  // namespace longshore::python

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

#include "build_identity.hpp"
#include "errors.hpp"
#include "longshore/engines/mpi_window.hpp"
#include "mpi/datatypes.hpp"
#include "mpi_rooms.hpp"
#include "parts.hpp"
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

Side to_side(const std::string& name) {
  if (name == "source") return Side::source;
  if (name == "destination") return Side::destination;
  throw Error(ErrorKind::argument, "side is '" + name + "'; it can be 'source' or 'destination'");
}

mpi::Exchange to_exchange(const std::string& name) {
  if (name == "automatic") return mpi::Exchange::automatic;
  if (name == "point_to_point") return mpi::Exchange::point_to_point;
  if (name == "neighborhood") return mpi::Exchange::neighborhood;
  if (name == "all_to_all") return mpi::Exchange::all_to_all;
  throw Error(ErrorKind::argument, "there is no exchange '" + name + "'");
}

mpi::Progress to_progress(const std::string& name) {
  if (name == "auto") return mpi::Progress::automatic;
  if (name == "calls") return mpi::Progress::calls;
  if (name == "thread") return mpi::Progress::thread;
  throw Error(ErrorKind::argument, "progress is '" + name + "'; it can be 'auto', 'calls' or 'thread'");
}

ErrorKind to_kind(const std::string& class_name) {
  for (int kind = 0; kind <= int(ErrorKind::deadlock); ++kind)
    if (class_name == class_of(ErrorKind(kind))) return ErrorKind(kind);
  return ErrorKind::argument;
}

/// Objects of classes that another build has compiled may look different.
void check_build(const nb::module_& module, const nb::module_& core) {
  const std::string here = LONGSHORE_BUILD_IDENTITY;
  const nb::object there = nb::getattr(core, "build_identity", nb::str("unknown"));
  if (here == nb::str(there).c_str()) return;
  const std::string text = nb::cast<std::string>(module.attr("__name__")) + " is of build " + here +
                           ", longshore._core of build " + nb::str(there).c_str() +
                           ": install Longshore anew, whose modules all come from one build";
  throw nb::import_error(text.c_str());
}

}  // namespace

NB_MODULE(LONGSHORE_MPI_MODULE, module) {
  nb::set_leak_warnings(false);  // as in bindings/core.cpp
  module.doc() = "Longshore's mpi engine for one MPI family. Use it through `longshore`.";
  const auto core = nb::module_::import_("longshore._core");  // Field, Mover and Memory are bound there
  check_build(module, core);
  take_kernel_choice(core);
  register_errors();

  module.def(
      "array_memory",
      [](std::uint64_t comm, Index bytes) { return mpi::array_memory(mpi::CommHandle::from_bits(comm), bytes); },
      nb::arg("comm"), nb::arg("bytes"), nb::call_guard<nb::gil_scoped_release>(),
      "So many bytes, all zero. Not collective.");

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
      "gather_words",
      [](std::uint64_t comm, const std::string& words, const std::optional<std::string>& error_class,
         const std::string& message) {
        const Error error(to_kind(error_class.value_or("")), message);
        nb::gil_scoped_release unlocked;
        return mpi::gather_words(mpi::CommHandle::from_bits(comm), words, error_class ? &error : nullptr);
      },
      nb::arg("comm"), nb::arg("words"), nb::arg("error_class").none(), nb::arg("message"),
      "Collective: what processes say, once where all say the same, else in order of rank.");

  module.def(
      "bind",
      [](std::uint64_t comm, const std::vector<Field>& fields, const std::optional<std::string>& error_class,
         const std::string& message, Index max_mem, bool proxy, bool checked, const std::string& placement,
         const std::string& node, bool aggregate, Index packet_bytes, bool preallocate, const std::string& exchange,
         std::tuple<double, double, double> expected, bool report, int threads) {
        std::optional<Error> failure;
        if (error_class) failure.emplace(to_kind(*error_class), message);
        mpi::Options options;
        options.max_mem = max_mem, options.proxy = proxy, options.checked = checked;
        options.placement = to_placement(placement), options.node = to_path(node), options.aggregate = aggregate;
        options.packet_bytes = packet_bytes, options.preallocate = preallocate,
        options.exchange = to_exchange(exchange), options.report = report, options.threads = threads;
        std::tie(options.expected.direct, options.expected.ring, options.expected.messages) = expected;
        nb::gil_scoped_release unlocked;
        return mpi::bind(fields, mpi::CommHandle::from_bits(comm), options, failure ? &*failure : nullptr);
      },
      nb::arg("comm"), nb::arg("fields"), nb::arg("error_class").none(), nb::arg("message"), nb::arg("max_mem") = 0,
      nb::arg("proxy") = false, nb::arg("checked") = false, nb::arg("placement") = "direct", nb::arg("node") = "auto",
      nb::arg("aggregate") = true, nb::arg("packet_bytes") = 0, nb::arg("preallocate") = true,
      nb::arg("exchange") = "automatic", nb::arg("expected") = std::tuple(0.0, 0.0, 0.0), nb::arg("report") = false,
      nb::arg("threads") = 0,
      "Collective: binds fields to the arrays of all processes. `error_class`, `message`: what is wrong here, already "
      "known; raised on every process.");

  module.def(
      "postpone_bind", [](std::uint64_t comm) { mpi::postpone_bind(mpi::CommHandle::from_bits(comm)); },
      nb::arg("comm"), nb::call_guard<nb::gil_scoped_release>(),
      "Collective, in place of `bind`: this process has to ask the others something before. All get no mover.");

  module.def(
      "all_bring",
      [](std::uint64_t comm, const Mover* mover) { return mpi::all_bring(mpi::CommHandle::from_bits(comm), mover); },
      nb::arg("comm"), nb::arg("mover").none(), nb::call_guard<nb::gil_scoped_release>(),
      "Collective: whether all processes bring the mover that was bound with all of them, and which has left its "
      "memory; None: this one has none.");

  module.def(
      "open_window",
      [](std::uint64_t comm, Index pieces, Parts& mine, Index itemsize, const std::string& node,
         const std::string& progress, const std::string& element, const std::optional<std::string>& error_class,
         const std::string& message) {
        std::optional<Error> failure;
        if (error_class) failure.emplace(to_kind(*error_class), message);
        const mpi::WindowOptions options{to_path(node), to_progress(progress), element};
        nb::gil_scoped_release unlocked;
        return mpi::open_window(mpi::CommHandle::from_bits(comm), pieces, std::move(mine.parts), itemsize, options,
                                failure ? &*failure : nullptr);
      },
      nb::arg("comm"), nb::arg("pieces"), nb::arg("mine"), nb::arg("itemsize"), nb::arg("node"), nb::arg("progress"),
      nb::arg("element"), nb::arg("error_class").none(), nb::arg("message"),
      "Collective: lays open this process's arrays, which are among so many.");
  module.def("stop_progress_threads", &mpi::stop_progress_threads, "For good: before MPI is finalised.");

  module.def(
      "make_grids",
      [](const FloorPlan& blocks, std::uint64_t comm, Index itemsize, nb::object ghost, const std::string& order) {
        return mpi::make_xarray(blocks, mpi::CommHandle::from_bits(comm),
                                {itemsize, to_widths(ghost, blocks.dims()), to_order(order)});
      },
      nb::arg("blocks"), nb::arg("comm"), nb::arg("itemsize"), nb::arg("ghost"), nb::arg("order"),
      "This process's blocks, where other processes of its node can reach them. Not collective.");

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
  bind_mpi_directory(module);
  bind_numpy_memory(module);
}

}  // namespace longshore::python

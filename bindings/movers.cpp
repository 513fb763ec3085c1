#include "longshore/movers/mover.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>

#include <cstring>

#include "index_sets.hpp"
#include "parts.hpp"
#include "points.hpp"
#include "rooms.hpp"

namespace longshore::python {

namespace {

/// Where an array of NumPy's lies.
struct Described {
  std::uintptr_t address = 0;
  Point shape, strides;
  bool read_only = false;

  explicit Described(PyObject* array) {
    if (Py_buffer now; PyObject_GetBuffer(array, &now, PyBUF_STRIDES) == 0) {
      address = reinterpret_cast<std::uintptr_t>(now.buf), read_only = now.readonly != 0;
      shape = std::span<const Index>(now.shape, std::size_t(now.ndim));
      strides = std::span<const Index>(now.strides, std::size_t(now.ndim));
      PyBuffer_Release(&now);
      return;
    }
    PyErr_Clear();  // dates and other types that buffers do not know
    const nb::handle given(array);
    const auto data = nb::cast<std::pair<std::uintptr_t, bool>>(given.attr("__array_interface__")["data"]);
    address = data.first, read_only = data.second;
    shape = nb::cast<std::vector<Index>>(given.attr("shape"));
    strides = nb::cast<std::vector<Index>>(given.attr("strides"));
  }
};

/// An array of Python's. C++ may look at it, and let go of it, on any thread.
class PythonArray final : public MemoryOwner {
 public:
  PythonArray(nb::object array, const std::byte* data, Point shape)
      : array_(array.release().ptr()), data_(data), shape_(std::move(shape)) {}
  ~PythonArray() override {
    nb::gil_scoped_acquire gil;
    Py_DECREF(array_);
  }

  /// NumPy resizes an array that others refer to, if told not to look for them.
  std::string change() const override {
    nb::gil_scoped_acquire gil;
    const Described now(array_);
    const bool moved = now.address != reinterpret_cast<std::uintptr_t>(data_);
    if (!(now.shape == shape_)) return "was resized from " + shape_.to_string() + " to " + now.shape.to_string();
    return moved ? "was given other memory" : "";
  }

 private:
  PyObject* array_;
  const std::byte* data_;
  Point shape_;
};

LocalArray local_array(nb::object array) {
  Described described(array.ptr());
  const auto begin = reinterpret_cast<std::byte*>(described.address);
  auto owner = std::make_shared<PythonArray>(std::move(array), begin, described.shape);
  return {begin, std::move(described.shape), std::move(described.strides), described.read_only, std::move(owner)};
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  auto* memory = nb::inst_ptr<longshore::Memory>(nb::handle(self));
  return PyBuffer_FillInfo(view, self, memory->data(), Py_ssize_t(memory->bytes()), 0, flags);
}

/// The arrivals of a move that is under way. Python keeps the mover as long as this.
struct ArrivalIterator {
  Mover* mover;
};

constexpr const char* arrivals_doc =
    R"(The pieces of the destinations here, one after the other, each as soon as the move has completed it: what one
rank has brought, or this one to itself. A loop over them does with each what can be done, while the rest moves::

    mover.start()
    for arrival in mover.arrivals():
        total += local[arrival.index].sum()

Each piece comes once a move, in whatever order they are complete, and may then be read; the destinations are not to be
written before the move is complete, and the sources neither. After the loop it is: wait() returns at once, and start()
may begin the next. Whoever leaves the loop leaves the move under way, for wait(), test() or another loop, which begins
with the next piece. Not collective: every rank sees its own pieces, and as for wait() others may have to make progress,
too. The loop raises ArgumentError where no move has been started or another thread is in a call of this mover, and
whatever wait() raises, which ends the move.

How early pieces come depends on how they travel: what this process copies itself, within the process or from memory
shared with another one, task by task, and on the threads engine with one thread motion by motion; what comes through a
ring or in messages when all that its sender has for this process is there; what comes in a collective all at once. Of
halos that go dimension by dimension one comes after the other. What meets in a point, as with `reduce`, comes together.
With `proxy` and `checked` everything comes at the end.

The first loop makes a list of the pieces that the mover keeps, some hundred bytes each; who never asks pays nothing.)";

PyType_Slot memory_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

}  // namespace

void bind_movers(nb::module_& module) {
  nb::enum_<ElementType>(module, "ElementType", "Element types that can be computed with; `bytes` can only be copied.")
      .value("bytes", ElementType::bytes)
      .value("int8", ElementType::int8)
      .value("int16", ElementType::int16)
      .value("int32", ElementType::int32)
      .value("int64", ElementType::int64)
      .value("uint8", ElementType::uint8)
      .value("uint16", ElementType::uint16)
      .value("uint32", ElementType::uint32)
      .value("uint64", ElementType::uint64)
      .value("float32", ElementType::float32)
      .value("float64", ElementType::float64)
      .value("complex64", ElementType::complex64)
      .value("complex128", ElementType::complex128);

  nb::class_<Update>(module, "Update",
                     "What a move does where it writes: it copies, scales (destination = beta * destination + alpha * "
                     "op(source)) or reduces (destination = destination op source).")
      .def(nb::init<>())
      .def(
          "__init__",
          [](Update* self, ElementType type, nb::bytes alpha, nb::bytes beta, bool conjugate) {
            ScalarBytes a{}, b{};
            std::memcpy(a.data(), alpha.c_str(), std::min(alpha.size(), a.size()));
            std::memcpy(b.data(), beta.c_str(), std::min(beta.size(), b.size()));
            new (self) Update(Combine(type, a, b, conjugate));
          },
          nb::arg("type"), nb::arg("alpha"), nb::arg("beta"), nb::arg("conjugate"))
      .def(
          "__init__",
          [](Update* self, ElementType type, const std::string& reduce) {
            new (self) Update(Reduction(type, reduce_op(reduce)));
          },
          nb::arg("type"), nb::arg("reduce"))
      .def_prop_ro("is_copy", &Update::is_copy);

  nb::class_<longshore::Memory>(
      module, "Memory", nb::type_slots(memory_slots),
      "Memory of an array, which the other processes of this node can map where the machine allows it. "
      "Supports the buffer protocol.");

  nb::class_<LocalArray>(module, "LocalArray",
                         "A rank's local array: address, shape, strides in bytes, and who owns the memory.")
      .def(
          "__init__", [](LocalArray* self, nb::object array) { new (self) LocalArray(local_array(std::move(array))); },
          nb::arg("array"), "Of a NumPy array.");

  nb::class_<Parts>(module, "Parts", "Arrays of one layout, for a Field.")
      .def(
          "__init__",
          [](Parts* self, const nb::dict& arrays) {
            new (self) Parts();
            for (const auto& [rank, array] : arrays)
              self->parts.push_back({nb::cast<Index>(rank), local_array(nb::borrow(array))});
          },
          nb::arg("arrays"), "NumPy arrays by layout rank.");

  nb::class_<Field>(module, "Field", "A plan with the arrays of this process, to be bound, alone or with others.")
      .def(
          "__init__",
          [](Field* self, const MotionPlan& plan, Parts& sources, Parts& destinations, const Update& update,
             std::string element) {
            new (self) Field(plan, std::move(sources.parts), std::move(destinations.parts), update, std::move(element));
          },
          nb::arg("plan"), nb::arg("sources"), nb::arg("destinations"), nb::arg("update"), nb::arg("element"),
          nb::keep_alive<1, 2>())
      .def(
          "__init__",
          [](Field* self, const BlockPlan& plan, std::vector<XArray> sources, std::vector<XArray> destinations,
             const Update& update, std::string element, const std::optional<std::string>& visit,
             std::optional<bool> phases) {
            const Phases how = !phases ? Phases::automatic : *phases ? Phases::always : Phases::never;
            new (self) Field(plan, std::move(sources), std::move(destinations), update,
                             visit ? std::optional(to_order(*visit)) : std::nullopt, std::move(element), how);
          },
          nb::arg("plan"), nb::arg("sources"), nb::arg("destinations"), nb::arg("update"), nb::arg("element"),
          nb::arg("visit").none(), nb::arg("phases").none(), nb::keep_alive<1, 2>());

  // Whoever asks knows which kind of plan it is: what may be None has `Any` in its type, so that it need not be
  // checked.
  nb::class_<Arrival>(module, "Arrival",
                      "A piece of a destination that a move has completed: see `Mover.arrivals`. Between layouts it is "
                      "all that one rank "
                      "has for another; between blocks one motion's destination.")
      .def_ro("field", &Arrival::field, "Which of the fields that were bound together; 0 where there is one.")
      .def_ro("rank", &Arrival::source_rank, "Who it came from: a rank of the plan's source.")
      .def_ro("destination_rank", &Arrival::destination_rank, "Whose it is: a rank of the plan's destination.")
      .def_prop_ro(
          "index",
          [](const Arrival& arrival) {
            return arrival.block >= 0 ? nb::object(nb::none()) : nb::object(to_index(arrival.local_indices));
          },
          "Between layouts what to index the destination rank's local array with, ``local[arrival.index]``: a slice or "
          "an "
          "array for each dimension, as `Layout.indices` has them; slices alone give a view. Between blocks None.",
          nb::sig("def index(self) -> tuple[slice | numpy.typing.NDArray, ...] | typing.Any"))
      .def_prop_ro(
          "global_index",
          [](const Arrival& arrival) {
            return arrival.block >= 0 ? nb::object(nb::none()) : nb::object(to_index(arrival.global_indices));
          },
          "The same for the whole destination array.",
          nb::sig("def global_index(self) -> tuple[slice | numpy.typing.NDArray, ...] | typing.Any"))
      .def_prop_ro(
          "block",
          [](const Arrival& arrival) { return arrival.block >= 0 ? std::optional(arrival.block) : std::nullopt; },
          "Between blocks which block of the destination; between layouts None.",
          nb::sig("def block(self) -> int | typing.Any"))
      .def_prop_ro(
          "region",
          [](const Arrival& arrival) { return arrival.block >= 0 ? std::optional(arrival.region) : std::nullopt; },
          "Between blocks the points that were written, ghost cells or not: ``u[arrival.block].on(arrival.region)``. "
          "Between "
          "layouts None.",
          nb::sig("def region(self) -> Region | typing.Any"))
      .def_prop_ro(
          "points", [](const Arrival& arrival) { return to_array(arrival.points); },
          "Which points of the region were written, in an array of shape (n,) or (n, dims), where the motion lists "
          "them; "
          "else "
          "None: all.",
          nb::sig("def points(self) -> numpy.typing.NDArray | None"))
      .def("__repr__", [](const Arrival& arrival) {
        std::string text = "<longshore.Arrival from rank " + std::to_string(arrival.source_rank);
        if (arrival.block >= 0) {
          text += ": block " + std::to_string(arrival.block) + " " + arrival.region.to_string();
          if (!arrival.points.empty()) text += ", " + std::to_string(arrival.points.size()) + " points";
        } else {
          Index elements = 1;
          for (const auto& runs : arrival.global_indices) elements *= runs.size();
          text +=
              " to rank " + std::to_string(arrival.destination_rank) + ": " + std::to_string(elements) + " elements";
        }
        return text + (arrival.field > 0 ? ", field " + std::to_string(arrival.field) : "") + ">";
      });

  nb::class_<ArrivalIterator>(module, "ArrivalIterator", "The arrivals of a move, one after the other.")
      .def(
          "__iter__", [](nb::object self) { return self; }, nb::sig("def __iter__(self) -> ArrivalIterator"))
      .def("__next__", [](ArrivalIterator& self) {
        std::optional<Arrival> arrival;
        {
          nb::gil_scoped_release unlocked;
          arrival = self.mover->next_arrival();
        }
        if (!arrival) throw nb::stop_iteration();
        return std::move(*arrival);
      });

  nb::class_<Mover>(
      module, "Mover",
      "A plan bound to memory and to an engine: start(), wait(), again and again. Collective where the engine is. "
      "Several may be in flight, and ranks may wait for them in different orders.\n\n"
      "Between start() and wait() the sources must not be written and the destinations not be touched. The GIL is "
      "released while data moves. One thread uses a mover at a time: a call while another thread is in one raises "
      "ArgumentError, and the other goes on.")
      .def("start", &Mover::start, nb::call_guard<nb::gil_scoped_release>(),
           "Begins the move. ArgumentError where one is under way, LocalArrayError where an array was resized since it "
           "was bound.")
      .def("test", &Mover::test, nb::call_guard<nb::gil_scoped_release>(),
           "Makes some progress; True when the move is complete: then start() may begin the next. ArgumentError before "
           "start().")
      .def("wait", &Mover::wait, nb::call_guard<nb::gil_scoped_release>(),
           "Completes the move that start() began; ArgumentError where none did. A rank that waits may need the others "
           "to test() or wait() too, for whatever mover.")
      .def(
          "arrivals", [](Mover& self) { return ArrivalIterator{&self}; }, nb::keep_alive<0, 1>(), arrivals_doc)
      .def("__call__", &Mover::move, nb::call_guard<nb::gil_scoped_release>(),
           "start() and wait() at once, which may be faster than one after the other.")
      .def_prop_ro(
          "workspace_bytes", &Mover::workspace_bytes,
          "Bytes this mover holds beyond the two arrays: programs, buffers, rings, what it shares with others.")
      .def_prop_ro("staging_bytes", &Mover::staging_bytes,
                   "Of these, the rings and buffers that data goes through: what `max_mem` bounds under MPI.")
      .def_prop_ro("moved_bytes", &Mover::moved_bytes, "Bytes one move writes into the destinations held here.")
      .def_prop_ro(
          "obstacle", &Mover::obstacle,
          "What makes data take a slower way than there might be, in words: that memory cannot be shared, or that "
          "arrays lie in memory of one process alone, and what to do about it. Empty where nothing does.")
      .def_prop_ro("path", &Mover::describe, "Which way the data takes, in words.")
      .def("leave_memory", &Mover::leave_memory,
           "The arrays are no longer held; whoever moves knows that they are there. Bytes that the mover goes on "
           "holding; None where it cannot do without them.")
      .def("__repr__", [](const Mover& mover) { return "<longshore.Mover: " + mover.describe() + ">"; });

  module.def(
      "place_of",
      [](nb::object array) {
        const Described described(array.ptr());
        std::vector<Index> words{Index(described.address), described.read_only};
        words.insert(words.end(), described.shape.begin(), described.shape.end());
        words.insert(words.end(), described.strides.begin(), described.strides.end());
        return nb::bytes(reinterpret_cast<const char*>(words.data()), words.size() * sizeof(Index));
      },
      nb::arg("array"), "Where a NumPy array lies, how, and whether it may be written, as bytes to compare.");

  module.def(
      "bind_threads",
      [](const std::vector<Field>& fields, int threads, Index max_mem, bool proxy, bool checked) {
        MoveOptions options;
        options.threads = threads, options.max_mem = max_mem, options.proxy = proxy, options.checked = checked;
        nb::gil_scoped_release unlocked;
        return bind_threads(fields, options);
      },
      nb::arg("fields"), nb::arg("threads") = 0, nb::arg("max_mem") = 0, nb::arg("proxy") = false,
      nb::arg("checked") = false, "The threads engine: all ranks' arrays are in this process.");
}

}  // namespace longshore::python

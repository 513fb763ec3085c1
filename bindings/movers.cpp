#include "longshore/movers/mover.hpp"

#include <cstring>

#include "longshore/movers/local_moves.hpp"
#include "rooms.hpp"

namespace longshore::python {

namespace {

/// An array of Python's. C++ may look at it, and let go of it, on any thread.
class PythonArray final : public Keeper {
 public:
  PythonArray(nb::object array, const std::byte* data, std::vector<Index> shape)
      : array_(array.release().ptr()), data_(data), shape_(std::move(shape)) {}
  ~PythonArray() override {
    nb::gil_scoped_acquire gil;
    Py_DECREF(array_);
  }

  /// NumPy resizes an array that others refer to, if told not to look for them.
  std::string change() const override {
    nb::gil_scoped_acquire gil;
    std::vector<Index> shape;
    bool moved = false;
    if (Py_buffer now; PyObject_GetBuffer(array_, &now, PyBUF_STRIDES) == 0) {
      shape.assign(now.shape, now.shape + now.ndim), moved = now.buf != data_;
      PyBuffer_Release(&now);
    } else {  // dates and other types that buffers do not know
      PyErr_Clear();
      const nb::object interface = nb::handle(array_).attr("__array_interface__");
      shape = nb::cast<std::vector<Index>>(interface["shape"]);
      moved = nb::cast<std::uintptr_t>(interface["data"][0]) != reinterpret_cast<std::uintptr_t>(data_);
    }
    if (shape != shape_) return "was resized from " + Point(shape_).to_string() + " to " + Point(shape).to_string();
    return moved ? "was given other memory" : "";
  }

 private:
  PyObject* array_;
  const std::byte* data_;
  std::vector<Index> shape_;
};

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

  nb::class_<Combine>(module, "Combine",
                      "What a move does where it writes: destination = beta * destination + alpha * op(source).")
      .def(nb::init<>())
      .def(
          "__init__",
          [](Combine* self, ElementType type, nb::bytes alpha, nb::bytes beta, bool conjugate) {
            ScalarBytes a{}, b{};
            std::memcpy(a.data(), alpha.c_str(), std::min(alpha.size(), a.size()));
            std::memcpy(b.data(), beta.c_str(), std::min(beta.size(), b.size()));
            new (self) Combine(type, a, b, conjugate);
          },
          nb::arg("type"), nb::arg("alpha"), nb::arg("beta"), nb::arg("conjugate"))
      .def_prop_ro("is_copy", &Combine::is_copy);

  nb::class_<LocalArray>(module, "LocalArray",
                         "A rank's local array: address, shape, strides in bytes, and who owns the memory.")
      .def(
          "__init__",
          [](LocalArray* self, std::uintptr_t data, std::vector<Index> shape, std::vector<Index> strides,
             bool read_only, nb::object owner) {
            const auto begin = reinterpret_cast<std::byte*>(data);
            std::shared_ptr<const Keeper> keeper;
            if (!owner.is_none()) keeper = std::make_shared<PythonArray>(std::move(owner), begin, shape);
            new (self) LocalArray{begin, std::move(shape), std::move(strides), read_only, std::move(keeper)};
          },
          nb::arg("data"), nb::arg("shape"), nb::arg("strides"), nb::arg("read_only"), nb::arg("owner").none());

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
      .def("__call__", &Mover::move, nb::call_guard<nb::gil_scoped_release>(),
           "start() and wait() at once, which may be faster than one after the other.")
      .def_prop_ro(
          "workspace_bytes", &Mover::workspace_bytes,
          "Bytes this mover holds beyond the two arrays: programs, buffers, rings, what it shares with others.")
      .def_prop_ro("staging_bytes", &Mover::staging_bytes,
                   "Of these, the rings and buffers that data goes through: what `max_mem` bounds under MPI.")
      .def_prop_ro("moved_bytes", &Mover::moved_bytes, "Bytes one move writes into the destinations held here.")
      .def_prop_ro("obstacle", &Mover::obstacle,
                   "What makes data take a slower way than there might be, in words: that memory cannot be shared. "
                   "Empty where nothing does.")
      .def_prop_ro("path", &Mover::describe, "Which way the data takes, in words.")
      .def("__repr__", [](const Mover& mover) { return "<longshore.Mover: " + mover.describe() + ">"; });

  module.def(
      "bind_threads",
      [](const MotionPlan& plan, std::vector<LocalArray> sources, std::vector<LocalArray> destinations,
         const Combine& combine, int threads, Index max_mem) {
        return bind_threads(plan, std::move(sources), std::move(destinations), {combine, threads, max_mem});
      },
      nb::arg("plan"), nb::arg("sources"), nb::arg("destinations"), nb::arg("combine"), nb::arg("threads"),
      nb::arg("max_mem"), "The threads engine: one array a process of each layout, all in this process.");
}

}  // namespace longshore::python

#include "longshore/movers/mover.hpp"

#include <cstring>

#include "longshore/movers/local_moves.hpp"
#include "rooms.hpp"

namespace longshore::python {

namespace {

/// Keeps a Python object alive from C++, which may let go of it on any thread.
std::shared_ptr<void> hold(nb::object object) {
  return std::shared_ptr<void>(object.release().ptr(), [](void* p) {
    nb::gil_scoped_acquire gil;
    Py_DECREF(static_cast<PyObject*>(p));
  });
}

}  // namespace

void bind_movers(nb::module_& module) {
  nb::enum_<ElementType>(module, "ElementType", "Element types that can be computed with; `bytes` can only be copied.")
      .value("bytes", ElementType::bytes)
      .value("int8", ElementType::int8).value("int16", ElementType::int16)
      .value("int32", ElementType::int32).value("int64", ElementType::int64)
      .value("uint8", ElementType::uint8).value("uint16", ElementType::uint16)
      .value("uint32", ElementType::uint32).value("uint64", ElementType::uint64)
      .value("float32", ElementType::float32).value("float64", ElementType::float64)
      .value("complex64", ElementType::complex64).value("complex128", ElementType::complex128);

  nb::class_<Combine>(module, "Combine", "What a move does where it writes: destination = beta * destination + alpha * op(source).")
      .def(nb::init<>())
      .def("__init__",
           [](Combine* self, ElementType type, nb::bytes alpha, nb::bytes beta, bool conjugate) {
             ScalarBytes a{}, b{};
             std::memcpy(a.data(), alpha.c_str(), std::min(alpha.size(), a.size()));
             std::memcpy(b.data(), beta.c_str(), std::min(beta.size(), b.size()));
             new (self) Combine(type, a, b, conjugate);
           },
           nb::arg("type"), nb::arg("alpha"), nb::arg("beta"), nb::arg("conjugate"))
      .def_prop_ro("is_copy", &Combine::is_copy);

  nb::class_<LocalArray>(module, "LocalArray", "A rank's local array: address, shape, strides in bytes, and who owns the memory.")
      .def("__init__",
           [](LocalArray* self, std::uintptr_t data, std::vector<Index> shape, std::vector<Index> strides, bool read_only,
              nb::object owner) {
             new (self) LocalArray{reinterpret_cast<std::byte*>(data), std::move(shape), std::move(strides), read_only,
                                   owner.is_none() ? nullptr : hold(std::move(owner))};
           },
           nb::arg("data"), nb::arg("shape"), nb::arg("strides"), nb::arg("read_only"), nb::arg("owner").none());

  nb::class_<Mover>(module, "Mover",
                    "A plan bound to memory and to an engine: start(), wait(), again and again. Collective where the engine is.\n\n"
                    "Between start() and wait() the sources must not be written and the destinations not be touched. The GIL is "
                    "released while data moves.")
      .def("start", &Mover::start, nb::call_guard<nb::gil_scoped_release>(), "Begins the move.")
      .def("test", &Mover::test, nb::call_guard<nb::gil_scoped_release>(),
           "Makes some progress; True when the move is complete.")
      .def("wait", &Mover::wait, nb::call_guard<nb::gil_scoped_release>(), "Completes the move that start() began.")
      .def("__call__", [](Mover& mover) {
             mover.start();
             mover.wait();
           }, nb::call_guard<nb::gil_scoped_release>(), "start() and wait().")
      .def_prop_ro("workspace_bytes", &Mover::workspace_bytes, "Bytes this mover holds beyond the two arrays.")
      .def_prop_ro("moved_bytes", &Mover::moved_bytes, "Bytes one move writes into the destinations held here.")
      .def_prop_ro("path", &Mover::describe, "Which way the data takes, in words.")
      .def("__repr__", [](const Mover& mover) { return "<longshore.Mover: " + mover.describe() + ">"; });

  module.def("bind_threads",
             [](const MotionPlan& plan, std::vector<LocalArray> sources, std::vector<LocalArray> destinations,
                const Combine& combine, int threads, Index max_mem) {
               return bind_threads(plan, std::move(sources), std::move(destinations), {combine, threads, max_mem});
             },
             nb::arg("plan"), nb::arg("sources"), nb::arg("destinations"), nb::arg("combine"), nb::arg("threads"),
             nb::arg("max_mem"), "The threads engine: one array a process of each layout, all in this process.");
}

}  // namespace longshore::python

#include "longshore/plans/motion_plan.hpp"
#include "longshore/relations/address_relation.hpp"

#include "points.hpp"

namespace longshore::python {

namespace {

/// All that tells a motion.
nb::tuple state_of(const Motion& m) {
  return nb::make_tuple(m.source, m.destination, m.elements, to_tuple(m.source_coordinates),
                        to_tuple(m.destination_coordinates));
}

Motion motion_of(const nb::tuple& state) {
  return {nb::cast<Index>(state[0]), nb::cast<Index>(state[1]), nb::cast<Index>(state[2]),
          nb::cast<std::vector<Index>>(state[3]), nb::cast<std::vector<Index>>(state[4])};
}

}  // namespace

void bind_plans(nb::module_& module) {
  nb::class_<Motion>(module, "Motion", "Everything one rank sends to another, or keeps (source == destination).")
      .def_ro("source", &Motion::source, "World rank it comes from.")
      .def_ro("destination", &Motion::destination, "World rank it goes to.")
      .def_ro("elements", &Motion::elements, "Elements that move.")
      .def(
          "__eq__",
          [](const Motion& a, nb::object b) {
            return nb::isinstance<Motion>(b) && state_of(a).equal(state_of(nb::cast<const Motion&>(b)));
          },
          nb::arg("other"), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const Motion& m) { return nb::hash(state_of(m)); })
      .def("__getstate__", [](const Motion& m) { return state_of(m); })
      .def("__setstate__", [](Motion& self, const nb::tuple& state) { new (&self) Motion(motion_of(state)); })
      .def("__repr__", [](const Motion& m) {
        return "Motion(source=" + std::to_string(m.source) + ", destination=" + std::to_string(m.destination) +
               ", elements=" + std::to_string(m.elements) + ")";
      });

  nb::class_<MotionPlan>(module, "MotionPlan", "The C++ plan under longshore.MotionPlan.")
      .def(
          "__init__",
          [](MotionPlan* self, const Layout& source, const Layout& destination, Index itemsize, nb::object axes) {
            new (self) MotionPlan(source, destination, itemsize, to_axes(axes, source.rank_of_array()));
          },
          nb::arg("source"), nb::arg("destination"), nb::arg("itemsize"), nb::arg("axes") = nb::none())
      .def_prop_ro(
          "source", [](const MotionPlan& p) -> const Layout& { return p.source(); }, "The layout the array is in.")
      .def_prop_ro(
          "destination", [](const MotionPlan& p) -> const Layout& { return p.destination(); },
          "The layout it is wanted in.")
      .def_prop_ro(
          "axes", [](const MotionPlan& p) { return nb::tuple(nb::cast(p.axes())); },
          "Destination dimension d is source dimension axes[d].", nb::sig("def axes(self) -> tuple[int, ...]"))
      .def_prop_ro("itemsize", &MotionPlan::element_bytes, "Bytes of one element.")
      .def_prop_ro("world_size", &MotionPlan::world_size, "Ranks [0, world_size) may take part.")
      .def("sends", &MotionPlan::sends, nb::arg("rank"), "The motions that leave a rank, the one to itself included.")
      .def("receives", &MotionPlan::receives, nb::arg("rank"),
           "The motions that arrive at a rank, the one from itself included.")
      .def(
          "relation_of", [](const MotionPlan& p, const Motion& m) { return AddressRelation(p.relation(m)); },
          nb::arg("motion"), "A motion as offsets between the two local arrays.")
      .def_prop_ro("digest", &MotionPlan::digest, "64 bits that agree on all machines for equal plans.")
      .def(
          "__eq__",
          [](const MotionPlan& a, nb::object b) {
            return nb::isinstance<MotionPlan>(b) && a == nb::cast<const MotionPlan&>(b);
          },
          nb::arg("other"), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const MotionPlan& p) { return Py_hash_t(p.digest() & 0x7fffffffffffffff); })
      .def("__str__", &MotionPlan::to_string);
}

}  // namespace longshore::python

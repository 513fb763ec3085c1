#include "longshore/plans/motion_plan.hpp"

#include <algorithm>

#include "longshore/relations/address_relation.hpp"

#include "points.hpp"
#include "states.hpp"

namespace longshore::python {

namespace {

void check_motion(const Motion& m) {
  auto negative = [](Index number) { return number < 0; };
  if (m.source < 0 || m.destination < 0 || m.elements < 1 ||
      std::any_of(m.source_coordinates.begin(), m.source_coordinates.end(), negative) ||
      std::any_of(m.destination_coordinates.begin(), m.destination_coordinates.end(), negative))
    throw Error(ErrorKind::argument, "there is no motion of " + std::to_string(m.elements) + " elements from rank " +
                                         std::to_string(m.source) + " to rank " + std::to_string(m.destination) +
                                         " and its coordinates: they are not negative, and there are some elements");
}

/// A motion may be another plan's.
void check_motion_of(const MotionPlan& plan, const Motion& m) {
  auto is_of = [](const Layout& layout, Index rank, const Point& coordinates) {
    const auto process = layout.process_of(rank);
    return process && layout.owner_coordinates(*process) == coordinates;
  };
  if (!is_of(plan.source(), m.source, m.source_coordinates) ||
      !is_of(plan.destination(), m.destination, m.destination_coordinates))
    throw Error(ErrorKind::argument, "the motion from rank " + std::to_string(m.source) + " to rank " +
                                         std::to_string(m.destination) + " is none of " + plan.to_string());
}

}  // namespace

void bind_plans(nb::module_& module) {
  nb::class_<Motion> motions(module, "Motion",
                             "Everything one rank sends to another, or keeps (source == destination).");
  motions.def_ro("source", &Motion::source, "World rank it comes from.")
      .def_ro("destination", &Motion::destination, "World rank it goes to.")
      .def_ro("elements", &Motion::elements, "Elements that move.")
      .def(
          "__eq__",
          [](const Motion& a, nb::object b) { return nb::isinstance<Motion>(b) && a == nb::cast<const Motion&>(b); },
          nb::arg("other"), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__",
           [](const Motion& m) {
             return nb::hash(nb::make_tuple(m.source, m.destination, m.elements, to_tuple(m.source_coordinates),
                                            to_tuple(m.destination_coordinates)));
           })
      .def("__repr__", [](const Motion& m) {
        return "Motion(source=" + std::to_string(m.source) + ", destination=" + std::to_string(m.destination) +
               ", elements=" + std::to_string(m.elements) + ")";
      });
  def_state(
      motions, 5,
      [](const Motion& m) {
        return nb::make_tuple(m.source, m.destination, m.elements, to_tuple(m.source_coordinates),
                              to_tuple(m.destination_coordinates));
      },
      [](const State& state) {
        Motion m{state.at<Index>(0), state.at<Index>(1), state.at<Index>(2), state.at<std::vector<Index>>(3),
                 state.at<std::vector<Index>>(4)};
        check_motion(m);
        return m;
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
      .def(
          "local_bytes",
          [](const MotionPlan& p, Index rank) {
            return checked_mul(checked_add(p.source().local_size(rank), p.destination().local_size(rank)),
                               p.element_bytes());
          },
          nb::arg("rank"), "Bytes of a rank's arrays, of both sides together.")
      .def("sends", &MotionPlan::sends, nb::arg("rank"), "The motions that leave a rank, the one to itself included.")
      .def("receives", &MotionPlan::receives, nb::arg("rank"),
           "The motions that arrive at a rank, the one from itself included.")
      .def(
          "relation_of",
          [](const MotionPlan& p, const Motion& m) {
            check_motion_of(p, m);
            return AddressRelation(p.relation(m));
          },
          nb::arg("motion"), "A motion as offsets between the two local arrays.")
      .def(
          "typical_relation_of",
          [](const MotionPlan& p, const Motion& m) {
            check_motion_of(p, m);
            return AddressRelation(p.typical_relation(m));
          },
          nb::arg("motion"), "What that is like, from offsets 0 on: of a motion with very many runs, their beginning.")
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

#include "longshore/regions/region.hpp"

#include "longshore/regions/region_index.hpp"
#include "points.hpp"

namespace longshore::python {

namespace {

constexpr const char* region_doc = R"(A box of Z^d: the points p with lower <= p < upper in every dimension.

``Region(lower, upper)`` takes sequences of integers, or one integer each for one dimension;
``Region.of_shape(shape)`` is [0, shape). Empty regions are ordinary values: as sets they are all equal, nothing
grows out of them, and everything contains them. A value: immutable, hashable, picklable. Where two regions meet
they must have as many dimensions, or ShapeError is raised; coordinates that leave 64 bits raise
SizeOverflowError. Not collective. (The Data Mover, section 2.)

>>> Region((0, 0), (4, 6)).grow(1) & Region((3, 5), (9, 9))
Region((3, 5), (5, 7)))";

std::string repr(const Region& region) {
  return "Region(" + region.lower().to_string() + ", " + region.upper().to_string() + ")";
}

nb::list to_tuples(const std::vector<Point>& points) {
  nb::list list;
  for (const auto& point : points) list.append(to_tuple(point));
  return list;
}

Py_hash_t hash_of(const Region& region) {
  if (region.empty()) return Py_hash_t(region.dims());
  return nb::hash(nb::make_tuple(to_tuple(region.lower()), to_tuple(region.upper())));
}

void bind_lists(nb::module_& module) {
  module.def(
      "directions",
      [](std::size_t dims, std::size_t least, std::optional<std::size_t> most) {
        return to_tuples(directions(dims, least, most.value_or(dims)));
      },
      nb::arg("dims"), nb::arg("least") = 1, nb::arg("most") = nb::none(),
      "Directions with `least` to `most` (none: all) coordinates other than 0: 1 to 1 are faces, 2 to 2 in three "
      "dimensions edges, dims to dims corners.",
      nb::sig("def directions(dims: int, least: int = 1, most: int | None = None) -> list[tuple[int, ...]]"));
  module.def(
      "bounding_region",
      [](const std::vector<Region>& regions) {
        return bounding_region(regions, regions.empty() ? 0 : regions.front().dims());
      },
      nb::arg("regions"), "The smallest region that contains all of them; empty ones do not count.");
  module.def(
      "periodic_shifts",
      [](const Region& moving, const Region& target, nb::object given, nb::object periodic) {
        const Region domain = to_region(given);
        return to_tuples(periodic_shifts(moving, target, domain, to_flags(periodic, domain.dims())));
      },
      nb::arg("moving"), nb::arg("target"), nb::arg("domain"), nb::arg("periodic") = nb::none(),
      "The multiples of the domain's periodic extents by which `moving` must be shifted to meet `target`.",
      nb::sig(
          "def periodic_shifts(moving: Region, target: Region, domain: Region | int | Sequence[int], periodic: bool | "
          "Sequence[bool] | None = None) -> list[tuple[int, ...]]"));
  module.def(
      "subtract", [](const std::vector<Region>& from, const std::vector<Region>& what) { return subtract(from, what); },
      nb::arg("from_"), nb::arg("what"),
      "The points of `from_` that are in none of `what`, as regions; disjoint if `from_` is.");
  module.def(
      "unite", [](const std::vector<Region>& regions) { return unite(regions); }, nb::arg("regions"),
      "All points of the regions once, in regions that do not overlap.");
  module.def(
      "split_evenly",
      [](nb::object given, nb::object blocks) {
        const Region domain = to_region(given);
        return split_evenly(domain, to_point(blocks, domain.dims()));
      },
      nb::arg("domain"), nb::arg("blocks"),
      "So many blocks in every dimension, whose extents differ by one at most; the last dimension's fastest.",
      nb::sig("def split_evenly(domain: Region | int | Sequence[int], blocks: int | Sequence[int]) -> list[Region]"));
  module.def(
      "split_at",
      [](nb::object domain, const std::vector<std::vector<Index>>& cuts) { return split_at(to_region(domain), cuts); },
      nb::arg("domain"), nb::arg("cuts"), "Blocks between the cuts of every dimension, which ascend within the domain.",
      nb::sig("def split_at(domain: Region | int | Sequence[int], cuts: Sequence[Sequence[int]]) -> list[Region]"));
  module.def(
      "split_to_size",
      [](nb::object given, nb::object largest) {
        const Region domain = to_region(given);
        return split_to_size(domain, to_point(largest, domain.dims()));
      },
      nb::arg("domain"), nb::arg("largest"), "As few even blocks as there must be for none to have larger extents.",
      nb::sig("def split_to_size(domain: Region | int | Sequence[int], largest: int | Sequence[int]) -> list[Region]"));
  module.def(
      "process_grid",
      [](Index processes, nb::object shape, nb::object periodic) {
        const Point extents = to_point(shape);
        return to_tuple(process_grid(processes, extents, to_flags(periodic, extents.dims())));
      },
      nb::arg("processes"), nb::arg("shape"), nb::arg("periodic") = nb::none(),
      "The process grid whose blocks of a domain of this shape have the least surface in common; of equals, the one "
      "with the longest contiguous runs.",
      nb::sig("def process_grid(processes: int, shape: int | Sequence[int], periodic: bool | Sequence[bool] | None = "
              "None) -> tuple[int, ...]"));
  module.def(
      "order_along",
      [](const std::vector<Region>& regions, const std::string& curve) {
        return order_along(regions, to_curve(curve));
      },
      nb::arg("regions"), nb::arg("curve") = "hilbert",
      "Places of the regions in the list, sorted along a \"hilbert\" or \"morton\" curve through their middles.");
}

}  // namespace

void bind_regions(nb::module_& module) {
  nb::class_<Region>(module, "Region", region_doc)
      .def(
          "__init__",
          [](Region* self, nb::object lower, nb::object upper) { new (self) Region(to_point(lower), to_point(upper)); },
          nb::arg("lower"), nb::arg("upper"),
          nb::sig("def __init__(self, lower: int | Sequence[int], upper: int | Sequence[int]) -> None"))
      .def_static(
          "of_shape", [](nb::object shape) { return Region::of_shape(to_point(shape)); }, nb::arg("shape"),
          "[0, shape). Raises ShapeError for negative extents.",
          nb::sig("def of_shape(shape: int | Sequence[int]) -> Region"))
      .def_prop_ro(
          "lower", [](const Region& r) { return to_tuple(r.lower()); }, "The first point in every dimension.",
          nb::sig("def lower(self) -> tuple[int, ...]"))
      .def_prop_ro(
          "upper", [](const Region& r) { return to_tuple(r.upper()); }, "One beyond the last in every dimension.",
          nb::sig("def upper(self) -> tuple[int, ...]"))
      .def_prop_ro(
          "shape", [](const Region& r) { return to_tuple(r.shape()); }, "The extents.",
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro("ndim", &Region::dims, "Number of dimensions.")
      .def_prop_ro("size", &Region::size, "Number of points.")
      .def_prop_ro("empty", &Region::empty, "Whether there is no point.")
      .def(
          "__contains__", [](const Region& r, nb::object point) { return r.contains(to_point(point)); },
          nb::arg("point"), nb::sig("def __contains__(self, point: int | Sequence[int], /) -> bool"))
      .def(
          "contains", [](const Region& a, const Region& b) { return a.contains(b); }, nb::arg("other"),
          "Whether every point of the other region is in this one.")
      .def("overlaps", &Region::overlaps, nb::arg("other"), "Whether the two share a point.")
      .def(
          "__and__", [](const Region& a, const Region& b) { return a & b; }, nb::arg("other"), "The points of both.")
      .def(
          "shift", [](const Region& r, nb::object by) { return r.shift(to_point(by)); }, nb::arg("by"),
          "The region elsewhere.", nb::sig("def shift(self, by: int | Sequence[int]) -> Region"))
      .def(
          "grow",
          [](const Region& r, nb::object below, nb::object above) {
            const Point low = to_point(below, r.dims());
            return r.grow(low, above.is_none() ? low : to_point(above, r.dims()));
          },
          nb::arg("below"), nb::arg("above") = nb::none(),
          "Further out by so much below and above (none: the same) in every dimension; negative widths trim, to "
          "nothing where less than that is there.",
          nb::sig("def grow(self, below: int | Sequence[int], above: int | Sequence[int] | None = None) -> Region"))
      .def(
          "coarsen", [](const Region& r, nb::object ratio) { return r.coarsen(to_point(ratio, r.dims())); },
          nb::arg("ratio"), "The cells of a mesh `ratio` times as coarse that cover the region.",
          nb::sig("def coarsen(self, ratio: int | Sequence[int]) -> Region"))
      .def(
          "refine", [](const Region& r, nb::object ratio) { return r.refine(to_point(ratio, r.dims())); },
          nb::arg("ratio"), "The cells of a mesh `ratio` times as fine that the region is made of.",
          nb::sig("def refine(self, ratio: int | Sequence[int]) -> Region"))
      .def(
          "side",
          [](const Region& r, nb::object direction, nb::object widths) {
            return r.side(to_point(direction), to_point(widths, r.dims()));
          },
          nb::arg("direction"), nb::arg("widths"),
          "The points outside within `widths` in one direction (-1, 0 or 1 in every dimension); inside along the "
          "border where the widths are negative.",
          nb::sig("def side(self, direction: Sequence[int], widths: int | Sequence[int]) -> Region"))
      .def(
          "subtract", [](const Region& a, const Region& b) { return subtract(a, b); }, nb::arg("other"),
          "The points that are not in the other region, as regions that do not overlap.")
      .def(
          "transpose",
          [](const Region& r, nb::object axes) {
            const Axes checked = to_transpose_axes(axes, r.dims());
            check_axes(checked, r.dims());
            return permuted(r, checked);
          },
          nb::arg("axes") = nb::none(),
          "The region with permuted dimensions, as NumPy's transpose has them; None reverses them. Raises "
          "ArgumentError for axes that are no permutation.",
          nb::sig("def transpose(self, axes: Sequence[int] | None = None) -> Region"))
      .def(
          "slices",
          [](const Region& r, const Region& within) {
            if (!within.contains(r))
              throw Error(ErrorKind::argument, "the region " + r.to_string() + " is not within " + within.to_string());
            nb::list slices;
            for (std::size_t d = 0; d < r.dims(); ++d) {
              const Index first = r.empty() ? 0 : r.lower()[d] - within.lower()[d];
              slices.append(nb::slice(nb::int_(first), nb::int_(first + r.extent(d)), nb::int_(1)));
            }
            return nb::tuple(slices);
          },
          nb::arg("within"),
          "Slices that pick this region from a NumPy array over the region `within`. Raises ArgumentError where it is "
          "not in there.",
          nb::sig("def slices(self, within: Region) -> tuple[slice, ...]"))
      .def(
          "offset_of",
          [](const Region& r, nb::object point, const std::string& order) {
            return r.offset_of(to_point(point), to_order(order));
          },
          nb::arg("point"), nb::arg("order") = "C",
          "Where a point is among the region's points, visited in this order.",
          nb::sig("def offset_of(self, point: int | Sequence[int], order: str = 'C') -> int"))
      .def(
          "point_at",
          [](const Region& r, Index offset, const std::string& order) {
            return to_tuple(r.point_at(offset, to_order(order)));
          },
          nb::arg("offset"), nb::arg("order") = "C", "The point at a place of that order.",
          nb::sig("def point_at(self, offset: int, order: str = 'C') -> tuple[int, ...]"))
      .def(
          "__eq__",
          [](const Region& a, nb::object b) { return nb::isinstance<Region>(b) && a == nb::cast<const Region&>(b); },
          nb::arg("other"), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", &hash_of)
      .def("__bool__", [](const Region& r) { return !r.empty(); })
      .def("__str__", &Region::to_string)
      .def("__repr__", &repr)
      .def("__reduce__", [](const Region& r) {
        return nb::make_tuple(nb::type<Region>(), nb::make_tuple(to_tuple(r.lower()), to_tuple(r.upper())));
      });

  nb::class_<RegionIndex>(
      module, "RegionIndex",
      "Which of many regions meet a given one: a tree of bounding boxes, O(n log n) to build and O(log n + "
      "answers) to ask. Immutable.")
      .def(
          "__init__", [](RegionIndex* self, const std::vector<Region>& regions) { new (self) RegionIndex(regions); },
          nb::arg("regions"))
      .def(
          "find", [](const RegionIndex& index, const Region& region) { return index.find(region); }, nb::arg("region"),
          "Places in the list of the regions that share a point with this one, ascending.")
      .def_prop_ro("workspace_bytes", &RegionIndex::workspace_bytes, "Bytes of memory this object holds.");
  bind_lists(module);
}

}  // namespace longshore::python

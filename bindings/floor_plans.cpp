#include "longshore/layouts/balance.hpp"

#include "points.hpp"

namespace longshore::python {

namespace {

constexpr const char* floor_plan_doc = R"(An irregular collection of blocks: regions, each with the rank that owns it.

``FloorPlan(regions, owners)`` takes Regions or pairs ``(lower, upper)`` of what a Region is made of, or an integer
array of shape (regions, 2, dimensions), lower before upper coordinates, as ``bounds`` gives it; and as many owners.
Many regions may have one owner; regions may overlap and may be empty. ``FloorPlan.even`` cuts a domain into one block
a rank, ``FloorPlan.balanced`` gives many blocks to few ranks by weight, ``FloorPlan.of_layout`` says what a Layout's
ranks own. A value: immutable, hashable, picklable, cheap to copy. Raises ShapeError, DTypeError and ArgumentError that
name the region. Not collective. (The Data Mover, section 2.)

>>> FloorPlan.even(Region((0, 0), (8, 6)), 4)
<longshore.FloorPlan: 4 regions of 2 dimensions: [0:4, 0:3] on 0, [0:4, 3:6] on 1, [4:8, 0:3] on 2, [4:8, 3:6] on 3>
>>> FloorPlan([((0, 0), (4, 6)), ((4, 0), (8, 6))], owners=[0, 1])
<longshore.FloorPlan: 2 regions of 2 dimensions: [0:4, 0:6] on 0, [4:8, 0:6] on 1>
>>> FloorPlan(np.array([[[0], [5]], [[5], [9]]]), owners=[1, 0])
<longshore.FloorPlan: 2 regions of 1 dimension: [0:5] on 1, [5:9] on 0>)";

using Bounds = nb::ndarray<const Index, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

/// Lower and upper coordinates, an array of shape (regions, 2, dimensions).
FloorPlan from_bounds(const Bounds& bounds, const Map& owners) {
  const std::size_t dims = bounds.shape(2);
  std::vector<Region> regions;
  regions.reserve(bounds.shape(0));
  for (std::size_t k = 0; k < bounds.shape(0); ++k) {
    const Index* const at = bounds.data() + k * 2 * dims;
    regions.emplace_back(Point(std::span(at, dims)), Point(std::span(at + dims, dims)));
  }
  return {regions, owners};
}

FloorPlan from_any(const nb::object& given, const Map& owners) {
  std::vector<Region> regions;
  if (nb::try_cast(given, regions)) return {regions, owners};
  const auto known = nb::module_::import_("longshore._arrays").attr("regions_or_bounds")(given);
  if (nb::try_cast(known, regions)) return {regions, owners};
  return from_bounds(nb::cast<Bounds>(known), owners);
}

}  // namespace

void bind_floor_plans(nb::module_& module) {
  nb::class_<FloorPlan>(module, "FloorPlan", floor_plan_doc)
      .def(
          "__init__",
          [](FloorPlan* self, nb::object regions, const Map& owners) {
            new (self) FloorPlan(from_any(regions, owners));
          },
          nb::arg("regions"), nb::arg("owners"),
          nb::sig("def __init__(self, regions: Sequence[Region] | Sequence[tuple[int | Sequence[int], int | "
                  "Sequence[int]]] | numpy.typing.NDArray, owners: Sequence[int]) -> None"))
      .def_static(
          "even",
          [](nb::object given, Index ranks, nb::object periodic) {
            const Region domain = to_region(given);
            return even_floor_plan(domain, ranks, to_flags(periodic, domain.dims()));
          },
          nb::arg("domain"), nb::arg("ranks"), nb::arg("periodic") = nb::none(),
          "Even blocks on the process grid that has the least surface in common; block k belongs to rank k. `domain`: "
          "a Region, or the shape of one that begins at 0. `periodic`: a flag a dimension, or one for all.",
          nb::sig("def even(domain: Region | int | Sequence[int], ranks: int, periodic: bool | Sequence[bool] | None = "
                  "None) -> FloorPlan"))
      .def_static(
          "balanced",
          [](const std::vector<Region>& regions, Index ranks, std::optional<std::vector<Index>> weights,
             const std::string& balance) {
            if (balance != "knapsack" && balance != "hilbert" && balance != "morton")
              throw Error(ErrorKind::argument,
                          "balance is \"" + balance + "\"; it must be \"hilbert\", \"morton\" or \"knapsack\"");
            if (weights && weights->size() != regions.size())
              throw Error(ErrorKind::shape, std::to_string(weights->size()) + " weights for " +
                                                std::to_string(regions.size()) + " regions");
            if (balance != "knapsack")
              return balanced_along(regions, ranks, to_curve(balance), weights.value_or(std::vector<Index>{}));
            if (!weights) {
              weights.emplace();
              for (const auto& region : regions) weights->push_back(region.size());
            }
            return FloorPlan(regions, balance_by_knapsack(*weights, ranks));
          },
          nb::arg("regions"), nb::arg("ranks"), nb::arg("weights") = nb::none(), nb::arg("balance") = "hilbert",
          "Regions on so many ranks, by weight (none: by points). `balance`: along a \"hilbert\" or \"morton\" curve, "
          "with the heaviest rank as light as can be, or by \"knapsack\", evener and without regard to neighbours.",
          nb::sig(
              "def balanced(regions: Sequence[Region], ranks: int, weights: Sequence[int] | None = None, balance: str "
              "= 'hilbert') -> FloorPlan"))
      .def_static("of_layout", &floor_plan_of, nb::arg("layout"), nb::arg("most") = Index{1} << 24,
                  "What each rank of a layout owns, as boxes in global indices, by ascending rank. Raises "
                  "MemoryLimitError where that takes more than `most` boxes.")
      .def("__len__", &FloorPlan::size)
      .def(
          "__getitem__",
          [](const FloorPlan& plan, Index k) {
            if (k < 0) k += plan.size();
            if (k < 0 || k >= plan.size()) throw nb::index_error();  // ends an iteration
            return plan.region(k);
          },
          nb::arg("k"), "Region k.")
      .def(
          "__iter__", [](nb::handle plan) { return nb::steal(PySeqIter_New(plan.ptr())); },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[Region]"))
      .def("owner", &FloorPlan::owner, nb::arg("k"),
           "The rank that owns region k. Raises ArgumentError where there is none.")
      .def_prop_ro("regions", &FloorPlan::regions, "All regions.")
      .def_prop_ro(
          "owners", [](const FloorPlan& plan) { return to_numpy(plan.owners(), {std::size_t(plan.size())}); },
          nb::rv_policy::automatic, "The owner of every region, as an int64 array.",
          nb::sig("def owners(self) -> "
                  "numpy.typing.NDArray"))
      .def_prop_ro("owning_ranks", &FloorPlan::owning_ranks,
                   "A RankMap of those who own something: in the regions' order where each owns one, else ascending.")
      .def_prop_ro(
          "bounds",
          [](const FloorPlan& plan) {
            return to_numpy(plan.bounds(), {std::size_t(plan.size()), 2, plan.dims()});
          },
          nb::rv_policy::automatic, "Lower and upper coordinates, as an int64 array of shape (regions, 2, dimensions).",
          nb::sig("def bounds(self) -> numpy.typing.NDArray"))
      .def("owned_by", &FloorPlan::owned_by, nb::arg("rank"), "The regions that a rank owns, ascending.")
      .def_prop_ro("ndim", &FloorPlan::dims, "Dimensions of the regions; 0 where there are none.")
      .def_prop_ro("size", &FloorPlan::points, "Points of all regions, overlaps counted as often as they occur.")
      .def_prop_ro("world_size", &FloorPlan::world_size, "One more than the largest owner.")
      .def_prop_ro("bounding", &FloorPlan::bounding, "The smallest region that contains all.")
      .def(
          "grow", [](const FloorPlan& p, nb::object widths) { return p.grow(to_widths(widths, p.dims())); },
          nb::arg("widths"),
          "The same regions with ghost cells: one width for all dimensions, or one each, or a pair (below, above) "
          "each. "
          "Negative widths trim.",
          nb::sig("def grow(self, widths: int | Sequence[int | tuple[int, int]]) -> FloorPlan"))
      .def(
          "coarsen", [](const FloorPlan& p, nb::object ratio) { return p.coarsen(to_point(ratio, p.dims())); },
          nb::arg("ratio"), "The same owners for a coarser mesh.",
          nb::sig("def coarsen(self, ratio: int | Sequence[int]) -> FloorPlan"))
      .def(
          "refine", [](const FloorPlan& p, nb::object ratio) { return p.refine(to_point(ratio, p.dims())); },
          nb::arg("ratio"), "The same owners for a finer mesh.",
          nb::sig("def refine(self, ratio: int | Sequence[int]) -> FloorPlan"))
      .def(
          "transpose",
          [](const FloorPlan& p, nb::object axes) { return p.transpose(to_transpose_axes(axes, p.dims())); },
          nb::arg("axes") = nb::none(),
          "The same blocks with permuted dimensions, as NumPy's transpose has them; None reverses them. Raises "
          "ArgumentError for axes that are no permutation.",
          nb::sig("def transpose(self, axes: Sequence[int] | None = None) -> FloorPlan"))
      .def("with_owners", &FloorPlan::with_owners, nb::arg("owners"), "The same regions with other owners.",
           nb::sig("def with_owners(self, owners: Sequence[int]) -> FloorPlan"))
      .def("with_range", &FloorPlan::with_range, nb::arg("dim"), nb::arg("first"), nb::arg("last"),
           "The same regions with [first, last) in one dimension; empty ones stay empty. Raises ArgumentError where "
           "there is no such dimension.")
      .def(
          "empty",
          [](nb::object self, nb::object dtype, nb::object ghost, nb::object order) {
            return nb::module_::import_("longshore._bind").attr("empty")(self, dtype, ghost, order);
          },
          nb::arg("dtype"), nb::arg("ghost") = 0, nb::arg("order") = "C",
          "An uninitialised NumPy array for each block, over its region grown by `ghost`: `region.slices(within)` "
          "picks parts of it.",
          nb::sig(
              "def empty(self, dtype: object, ghost: int | Sequence[int | tuple[int, int]] = 0, order: str = 'C') -> "
              "list[numpy.typing.NDArray]"))
      .def_prop_ro("digest", &FloorPlan::digest, "64 bits that agree on all machines for equal floor plans.")
      .def_prop_ro("workspace_bytes", &FloorPlan::workspace_bytes, "Bytes of memory this object holds.")
      .def(
          "__eq__",
          [](const FloorPlan& a, nb::object b) {
            return nb::isinstance<FloorPlan>(b) && a == nb::cast<const FloorPlan&>(b);
          },
          nb::arg("other"), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const FloorPlan& p) { return Py_hash_t(p.digest() & 0x7fffffffffffffff); })
      .def("__str__", [](const FloorPlan& p) { return p.to_string(); })
      .def("__repr__", [](const FloorPlan& p) { return "<longshore.FloorPlan: " + p.to_string(4) + ">"; })
      .def(
          "to_bytes", [](const FloorPlan& p) { return to_bytes(p.to_bytes()); },
          "A file's content: header with a version, bit-packed lists, a checksum.")
      .def_static(
          "from_bytes",
          [](const nb::bytes& bytes, std::optional<Index> most_regions) {
            return FloorPlan::from_bytes(to_span(bytes), most_regions.value_or(std::numeric_limits<Index>::max()));
          },
          nb::arg("bytes"), nb::arg("most_regions") = nb::none(),
          "What to_bytes() wrote, of 64 dimensions at most. Raises ArgumentError saying what is wrong; never trusts a "
          "number. Few bytes may stand for very many regions: `most_regions` bounds what bytes from strangers may ask "
          "for.")
      .def("__getstate__", [](const FloorPlan& p) { return to_bytes(p.to_bytes()); })
      .def("__setstate__", [](FloorPlan& self, const nb::bytes& bytes) {
        new (&self) FloorPlan(FloorPlan::from_bytes(to_span(bytes)));
      });
}

}  // namespace longshore::python

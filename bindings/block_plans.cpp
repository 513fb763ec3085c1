#include "longshore/plans/block_algebra.hpp"
#include "longshore/plans/block_builders.hpp"

#include "index_sets.hpp"
#include "points.hpp"
#include "states.hpp"

namespace longshore::python {

namespace {

constexpr const char* block_plan_doc = R"(What moves between the blocks of two floor plans: the Data Mover's MotionPlan.

``BlockPlan.halo`` fills ghost cells, ``BlockPlan.copy_between`` brings every point of one floor plan's blocks from
another's, and ``transpose`` with permuted dimensions. ``coarsen_fine`` and ``refine_coarse`` go between meshes,
``broadcast`` spreads a panel, and ``gather_points`` fetches the ghosts of finite elements. Into ``BlockPlan(source,
destination, axes=None)`` and into the others motions are copied by hand: regions with ``copy``, lists of points with
``copy_points``. What neighbours share is not kept but worked out from the floor plans: a halo costs six bytes for each
pair of neighbours. With ``rank=`` a plan holds only the motions that rank takes part in; its digest is still the whole
plan's. Regions may lie outside their block, as ghost cells do. Ranks are not negative, or ArgumentError is raised.
Picklable. Not collective. (The Data Mover, section 2.)

>>> blocks = FloorPlan.even(Region.of_shape((8, 6)), 4)
>>> plan = BlockPlan.halo(blocks, 1)
>>> plan.receives(0)[0]
<longshore.BlockMotion: block 1 [0:4, 3:4] -> block 0 [0:4, 3:4]>
>>> plan.volumes()[:2]  # (from, to, motions, points)
[(0, 1, 1, 4), (0, 2, 1, 3)]
>>> told = plan.explain(rank=0, dtype="float64")
>>> print(told.partition("\n\n")[0])  # then what it will take, in each way
a halo, width 1, corners
blocks           4 of 2 dimensions, 48 points, on 4 ranks, 1 each
the view of rank 0 alone, which owns 1 block:
motions          6, 128 B
phases           1: too few cells lie beyond edges and corners
sends            64 B, to 3 ranks
  to             1: 32 B, 2: 24 B, 3: 8 B
receives         64 B, from 3 ranks
  from           1: 32 B, 2: 24 B, 3: 8 B
stays local      0 B (0 %)
largest message  32 B, rank 0 to rank 1
>>> u = XArray(blocks, "float64", ghost=1)
>>> mover = plan.bind(u)  # fills the ghost cells at every mover.start(), mover.wait())";

constexpr const char* gather_points_doc = R"(The halo of a mesh of finite elements.

The blocks, of one dimension, own ranges of vertices, and block k wants the vertices needed[k] (integer arrays) of
others, too. They land behind its own, in the order in which they are listed: ``plan.source`` and
``plan.destination`` are the blocks, each so much longer. Reversed, with reduce="add", the plan adds what was worked
out for ghosts to their owners'. Raises ShapeError for blocks of other dimensions and another number of lists,
ArgumentError where blocks overlap, or nobody owns a vertex.

>>> mesh = FloorPlan.even(Region.of_shape(12), 3)  # vertices 0 to 3, 4 to 7, 8 to 11
>>> plan = BlockPlan.gather_points(mesh, [[4, 8, 5], [3, 11], []])
>>> u = XArray(plan.source, float)
>>> for k, values in u.items():
...     values.on(mesh[k])[...] = range(*mesh[k].lower, *mesh[k].upper)
>>> plan.bind(u)()
>>> [values.tolist() for values in u]
[[0.0, 1.0, 2.0, 3.0, 4.0, 8.0, 5.0], [4.0, 5.0, 6.0, 7.0, 3.0, 11.0], [8.0, 9.0, 10.0, 11.0]])";

constexpr const char* gather_points_mpi_doc = R"(The same where each rank knows what it needs itself, and no more.

`needed` has an integer array for each block that this rank owns, ascending; where it owns one block, it may be that
array. The plan is this rank's share of the one above: the same motions, the same digest, found by messages, in memory
that grows with what the rank needs and others need of it. Collective over `comm`, a communicator of mpi4py; all ranks
give the same blocks, whose owners are ranks of it. What one rank gets wrong is an error on all: as above,
and DisagreementError where their blocks differ. For vertices that are not owned in ranges, see ``Directory``.)";

constexpr const char* gather_indices_doc = R"(Any elements of an array with a layout, as a list, for each rank its own.

`indices` are this rank's: an integer array of shape (n, d) for an array of d dimensions, or (n,), as numpy.take has
them: in row-major order of the whole array. Any order; repeated ones come as often. Owners follow from the layout; of
replicas, this rank's own is read where it has one. Source block r is rank r's local array, destination block r its
list, of shape (n, 1, ...): ``plan.bind([local], [out.reshape(-1, 1)], comm=comm)`` for two dimensions. Reversed, the
plan scatters. Collective over `comm`, a communicator of mpi4py, whose ranks are the layout's. Raises, on all ranks,
ArgumentError where an index is outside the array, and DisagreementError where ranks give different layouts.
``longshore.take`` does all of it once.)";

constexpr const char* bind_doc =
    R"(Ties the plan to memory: a Mover with start(), test() and wait(), to be used again and again.

`source` and `destination` are XArrays, or sequences of one array a block over its region grown by `ghost`
(`destination_ghost`, where those have other ghost cells), in any memory order; the mover keeps them alive. An XArray
has the plan's blocks, or such as hold them with their ghost cells: ``copy_between(a, b.grow(2))`` moves into the ghost
cells of ``XArray(b, dtype, ghost=2)``, too. Without a
destination the source is the destination too, as in a halo update (an endogenous copy). Tuples of such sides are
several fields, moved together. Without `comm` all blocks are in this process and the threads engine moves them on
`threads` threads (None: as many as the process may use). With an mpi4py communicator the call is collective, block
owners are its ranks, and every rank gives the arrays of its own blocks; `threads` threads of a rank (None: one) share
its copies within the node. Those that lie in memory made with `comm`, by
XArray or `longshore.empty`, and views of them, move fastest.
With placement="wrap", process p has the blocks of all ranks r with r % size == p, and gives mappings from rank.

Points of regions of different shape are paired in the order in which both sides are visited: `visit`, "C" for the last
index fastest or "F" for the first; None: the memory order of XArrays where both have the same one, else "C". For arrays
of your own it is also the memory order that is the fastest.

A halo with corners may go dimension by dimension, in phases: faces together with the ghost cells that earlier phases
have filled, so that 26 motions a block become 6. The same cells are written, with the same values. It is chosen where
it is known to be faster: for a copy within one array, of blocks that are a lattice, with enough cells beyond edges and
corners, without `max_mem` and `checked`. phases=True has it so in any case, or raises ArgumentError that says why not;
phases=False never. Ranks that wait wait for each other once a phase, whoever is slow to test() or wait().

All other options are those of `MotionPlan.bind`: what is done where it writes (`alpha`, `beta`, `conjugate`;
`reduce`), `max_mem`, `proxy`, `checked`, and how messages travel.

Raises ShapeError, DTypeError, LocalArrayError and ArgumentError that name the block or the motion: also for motions
outside the arrays, for arrays that share memory (or interleave), and for races: two motions that write the same point
(unless they reduce), or, without destinations, one that reads what another writes. With `comm` on every rank alike,
and DisagreementError where ranks bring different plans.)";

Halo to_halo(const FloorPlan& blocks, nb::object below, nb::object above, nb::object domain, nb::object periodic,
             bool corners) {
  Halo halo;
  halo.below = to_point(below, blocks.dims());
  halo.above = above.is_none() ? halo.below : to_point(above, blocks.dims());
  halo.periodic = to_flags(periodic, blocks.dims());
  halo.domain = domain_of(blocks, domain, periodic);
  halo.corners = corners;
  return halo;
}

std::size_t dims_of(const FloorPlan& source, const FloorPlan& destination) {
  return std::max(source.dims(), destination.dims());
}

/// Integers of shape (n,) or (n, dims).
std::vector<Index> to_integers(const nb::object& values, const char* name, std::size_t dims) {
  const IndexArray array(values, name, int(dims));
  return array.narrow ? std::vector<Index>(array.narrow_values().begin(), array.narrow_values().end())
                      : std::vector<Index>(array.wide_values().begin(), array.wide_values().end());
}

PointList to_points(const nb::object& values, const char* name, const FloorPlan& blocks) {
  const std::size_t dims = std::max<std::size_t>(1, blocks.dims());
  return PointList(dims, to_integers(values, name, dims));
}

nb::object to_tuple_or_none(const Axes& axes) {
  return axes.empty() ? nb::none() : nb::object(to_tuple(std::vector<Index>(axes.begin(), axes.end())));
}

/// All that tells a motion.
nb::tuple state_of(const BlockMotion& m) {
  return nb::make_tuple(m.source, m.destination, m.source_region, m.destination_region, to_tuple_or_none(m.axes),
                        m.source_points.columns(), m.destination_points.columns());
}

BlockMotion block_motion_of(const State& state) {
  const auto points = [&](std::size_t k) {
    const auto columns = state.at<std::vector<std::vector<Index>>>(k);
    return columns.empty() ? PointList() : PointList(columns);
  };
  BlockMotion made{state.at<Index>(0), state.at<Index>(1), state.at<Region>(2), state.at<Region>(3), {},
                   points(5),          points(6)};
  const auto& [source, destination, from, to, axes, source_points, destination_points] = made;
  made.axes = to_axes(state.at<nb::object>(4), to.dims());
  check_axes(axes, to.dims());
  auto inside = [](const PointList& list, const Region& region) {
    return list.empty() || (list.dims() == region.dims() && region.contains(list.bounding()));
  };
  if (source < 0 || destination < 0 || !inside(source_points, from) || !inside(destination_points, to) ||
      source_points.size() != destination_points.size() || (source_points.empty() && from.size() != to.size()))
    state.refuse("is no motion of as many points on both sides, which lie in their regions, between blocks");
  return made;
}

}  // namespace

void bind_block_plans(nb::module_& module) {
  nb::class_<BlockMotion> motions(
      module, "BlockMotion",
      "One copy: the points of a region of a source block to those of a region of a destination block. The "
      "two may have different shapes, and are visited in the same order (bind()'s `visit`). With `axes` point p goes "
      "where p[axes[d]] is coordinate d, as in NumPy's transpose. Or "
      "lists: each point of `source_points` goes to the one of `destination_points` in the same place.");
  def_state(
      motions, 7, [](const BlockMotion& m) { return state_of(m); }, block_motion_of)
      .def_ro("source", &BlockMotion::source, "Which block of the source floor plan.")
      .def_ro("destination", &BlockMotion::destination, "Which block of the destination floor plan.")
      .def_ro("source_region", &BlockMotion::source_region, "The points that are read.")
      .def_ro("destination_region", &BlockMotion::destination_region, "The points that are written, as many.")
      .def_prop_ro(
          "source_points", [](const BlockMotion& m) { return to_array(m.source_points); },
          "The points that are read where they are listed, (n,) or (n, dimensions); the region contains them. Else "
          "None.",
          nb::sig("def source_points(self) -> numpy.typing.NDArray | None"))
      .def_prop_ro(
          "destination_points", [](const BlockMotion& m) { return to_array(m.destination_points); },
          "The points that are written where they are listed, or None.",
          nb::sig("def destination_points(self) -> numpy.typing.NDArray | None"))
      .def_prop_ro(
          "axes", [](const BlockMotion& m) { return to_tuple_or_none(m.axes); },
          "Dimension d of the destination is dimension axes[d] of the source; None: they stay as they are.",
          nb::sig("def axes(self) -> tuple[int, ...] | None"))
      .def_prop_ro("points", &BlockMotion::points, "How many points are moved.")
      .def(
          "__eq__",
          [](const BlockMotion& a, nb::object b) {
            return nb::isinstance<BlockMotion>(b) && a == nb::cast<const BlockMotion&>(b);
          },
          nb::arg("other"), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__",
           [](const BlockMotion& m) {
             return nb::hash(nb::make_tuple(m.source, m.destination, nb::cast(m.source_region),
                                            nb::cast(m.destination_region), m.points()));
           })
      .def("__str__", &BlockMotion::to_string)
      .def("__repr__", [](const BlockMotion& m) { return "<longshore.BlockMotion: " + m.to_string() + ">"; });

  nb::class_<BlockPlan> plans(module, "BlockPlan", block_plan_doc);
  plans
      .def(
          "__init__",
          [](BlockPlan* self, const FloorPlan& source, const FloorPlan& destination, nb::object axes) {
            new (self) BlockPlan(source, destination, to_axes(axes, dims_of(source, destination)));
          },
          nb::arg("source"), nb::arg("destination"), nb::arg("axes") = nb::none(),
          nb::sig("def __init__(self, source: FloorPlan, destination: FloorPlan, axes: Sequence[int] | None = None) -> "
                  "None"))
      .def_static(
          "halo",
          [](const FloorPlan& blocks, nb::object below, nb::object above, nb::object domain, nb::object periodic,
             bool corners, std::optional<Index> rank) {
            return halo_exchange(blocks, to_halo(blocks, below, above, std::move(domain), periodic, corners), rank);
          },
          nb::arg("blocks"), nb::arg("below"), nb::arg("above") = nb::none(), nb::kw_only(),
          nb::arg("domain") = nb::none(), nb::arg("periodic") = nb::none(), nb::arg("corners") = true,
          nb::arg("rank") = nb::none(),
          "Ghost cells, so many below and above (none: the same) every dimension's sides, from the blocks that own "
          "them. `periodic`: a flag a dimension, or one for all, over `domain` (a Region or a shape; none: all blocks' "
          "bounding region). corners=False: only what lies beyond one face. Raises ArgumentError for negative widths "
          "and for blocks outside a periodic domain.",
          nb::sig("def halo(blocks: FloorPlan, below: int | Sequence[int], above: int | Sequence[int] | None = None, "
                  "*, domain: Region | int | Sequence[int] | None = None, periodic: bool | Sequence[bool] | None = "
                  "None, corners: bool = True, rank: int | None = None) -> BlockPlan"))
      .def_static(
          "copy_between",
          [](const FloorPlan& source, const FloorPlan& destination, nb::object domain, nb::object periodic,
             std::optional<Index> rank) {
            return copy_between(source, destination, rank, domain_of(source, domain, periodic),
                                to_flags(periodic, source.dims()));
          },
          nb::arg("source"), nb::arg("destination"), nb::kw_only(), nb::arg("domain") = nb::none(),
          nb::arg("periodic") = nb::none(), nb::arg("rank") = nb::none(),
          "Every point of a destination block from the source blocks that have it. Where source blocks overlap, that "
          "is a race. `periodic`: a flag a dimension, over `domain` (none: the sources' bounding region); what lies "
          "outside comes from its images. Raises ArgumentError for sources outside a periodic domain.",
          nb::sig(
              "def copy_between(source: FloorPlan, destination: FloorPlan, *, domain: Region | int | Sequence[int] | "
              "None = None, periodic: bool | Sequence[bool] | None = None, rank: int | None = None) -> BlockPlan"))
      .def_static(
          "copy_between",
          [](nb::object source, nb::object destination, nb::object comm, nb::object domain, nb::object periodic,
             nb::object rank) {
            return nb::module_::import_("longshore._directory")
                .attr("copy_between")(source, destination, comm, domain, periodic, rank);
          },
          nb::arg("source").none(), nb::arg("destination").none(), nb::kw_only(), nb::arg("comm").none(),
          nb::arg("domain") = nb::none(), nb::arg("periodic") = nb::none(), nb::arg("rank") = nb::none(),
          "The same where each rank knows which regions it wants itself: `destination` is a Region or a sequence of "
          "them, and the plan's destination blocks are those of rank 0, then those of rank 1, ... Their bounds are "
          "told "
          "to all ranks, as a floor plan is everybody's. Collective over `comm`, a communicator of mpi4py; all ranks "
          "give the same source.",
          nb::sig(
              "def copy_between(source: FloorPlan, destination: Region | Sequence[Region], *, comm: object, domain: "
              "Region | int | Sequence[int] | None = None, periodic: bool | Sequence[bool] | None = None, rank: "
              "int | None = None) -> BlockPlan"))
      .def_static(
          "transpose",
          [](const FloorPlan& source, const FloorPlan& destination, nb::object axes, std::optional<Index> rank) {
            return transpose(source, destination, to_transpose_axes(axes, dims_of(source, destination)), rank);
          },
          nb::arg("source"), nb::arg("destination"), nb::arg("axes") = nb::none(), nb::kw_only(),
          nb::arg("rank") = nb::none(),
          "The same with permuted dimensions, as in NumPy's transpose: dimension d of a destination is dimension "
          "axes[d] of a source, and None reverses them. Raises ArgumentError for axes that are no permutation.",
          nb::sig(
              "def transpose(source: FloorPlan, destination: FloorPlan, axes: Sequence[int] | None = None, *, rank: "
              "int | None = None) -> BlockPlan"))
      .def_static(
          "coarsen_fine",
          [](const FloorPlan& fine, const FloorPlan& coarse, nb::object ratio, nb::object domain, nb::object periodic,
             std::optional<Index> rank) {
            return coarsen_fine(fine, coarse, to_point(ratio, fine.dims()), rank, domain_of(coarse, domain, periodic),
                                to_flags(periodic, coarse.dims()));
          },
          nb::arg("fine"), nb::arg("coarse"), nb::arg("ratio"), nb::kw_only(), nb::arg("domain") = nb::none(),
          nb::arg("periodic") = nb::none(), nb::arg("rank") = nb::none(),
          "Restriction: what fine blocks have worked out on the coarse mesh, plan.source == fine.coarsen(ratio), to "
          "the coarse blocks; from outside a periodic domain, as in refine_coarse, to where it is an image of. Fine "
          "blocks that share a coarse cell race for it.",
          nb::sig("def coarsen_fine(fine: FloorPlan, coarse: FloorPlan, ratio: int | Sequence[int], *, domain: Region "
                  "| int | Sequence[int] | None = None, periodic: bool | Sequence[bool] | None = None, rank: int | "
                  "None = None) -> BlockPlan"))
      .def_static(
          "refine_coarse",
          [](const FloorPlan& coarse, const FloorPlan& fine, nb::object ratio, nb::object width, nb::object domain,
             nb::object periodic, std::optional<Index> rank) {
            return refine_coarse(coarse, fine, to_point(ratio, fine.dims()), to_point(width, fine.dims()), rank,
                                 domain_of(coarse, domain, periodic), to_flags(periodic, coarse.dims()));
          },
          nb::arg("coarse"), nb::arg("fine"), nb::arg("ratio"), nb::arg("width") = 0, nb::kw_only(),
          nb::arg("domain") = nb::none(), nb::arg("periodic") = nb::none(), nb::arg("rank") = nb::none(),
          "Prolongation: the coarse cells under every fine block and `width` around it, plan.destination == "
          "fine.coarsen(ratio).grow(width), from the coarse blocks. `periodic`: a flag a dimension, over `domain` "
          "(none: the coarse blocks' bounding region). Raises ArgumentError for negative widths.",
          nb::sig("def refine_coarse(coarse: FloorPlan, fine: FloorPlan, ratio: int | Sequence[int], width: int | "
                  "Sequence[int] = 0, *, domain: Region | int | Sequence[int] | None = None, periodic: bool | "
                  "Sequence[bool] | None = None, rank: int | None = None) -> BlockPlan"))
      .def_static("broadcast", &broadcast, nb::arg("blocks"), nb::arg("dim"), nb::arg("first"), nb::arg("last"),
                  nb::kw_only(), nb::arg("rank") = nb::none(),
                  "Of SUMMA: to every block the panel [first, last) of one dimension over its own extent in the "
                  "others, plan.destination == blocks.with_range(dim, first, last). Raises ArgumentError where there "
                  "is no such dimension, and where nobody has a part of a panel, naming both.")
      .def_static(
          "broadcast_rows",
          [](const FloorPlan& blocks, Index first, Index last, std::optional<Index> rank) {
            return broadcast(blocks, 0, first, last, rank);
          },
          nb::arg("blocks"), nb::arg("first"), nb::arg("last"), nb::kw_only(), nb::arg("rank") = nb::none(),
          "A panel of dimension 0.")
      .def_static(
          "broadcast_columns",
          [](const FloorPlan& blocks, Index first, Index last, std::optional<Index> rank) {
            return broadcast(blocks, 1, first, last, rank);
          },
          nb::arg("blocks"), nb::arg("first"), nb::arg("last"), nb::kw_only(), nb::arg("rank") = nb::none(),
          "A panel of dimension 1.")
      .def_static(
          "gather_points",
          [](const FloorPlan& blocks, nb::object needed, std::optional<Index> rank) {
            std::vector<std::vector<Index>> lists;
            for (const auto list : nb::iter(needed))
              lists.push_back(
                  to_integers(nb::borrow(list), ("needed[" + std::to_string(lists.size()) + "]").c_str(), 1));
            return gather_points(blocks, lists, rank);
          },
          nb::arg("blocks"), nb::arg("needed"), nb::kw_only(), nb::arg("rank") = nb::none(), gather_points_doc,
          nb::sig(
              "def gather_points(blocks: FloorPlan, needed: Sequence[numpy.typing.ArrayLike], *, rank: int | None = "
              "None) -> BlockPlan"))
      .def_static(
          "gather_points",
          [](nb::object blocks, nb::object needed, nb::object comm, nb::object rank) {
            return nb::module_::import_("longshore._directory").attr("gather_points")(blocks, needed, comm, rank);
          },
          nb::arg("blocks").none(), nb::arg("needed").none(), nb::kw_only(), nb::arg("comm").none(),
          nb::arg("rank") = nb::none(), gather_points_mpi_doc,
          nb::sig("def gather_points(blocks: FloorPlan, needed: numpy.typing.ArrayLike | "
                  "Sequence[numpy.typing.ArrayLike], *, comm: object, rank: int | None = None) -> BlockPlan"))
      .def_static(
          "gather_indices",
          [](nb::object layout, nb::object indices, nb::object comm) {
            return nb::module_::import_("longshore._directory").attr("gather_indices")(layout, indices, comm);
          },
          nb::arg("layout").none(), nb::arg("indices").none(), nb::kw_only(), nb::arg("comm").none(),
          gather_indices_doc,
          nb::sig("def gather_indices(layout: Layout, indices: numpy.typing.ArrayLike, *, comm: object) -> BlockPlan"))
      .def("copy", &BlockPlan::copy, nb::arg("destination_region"), nb::arg("destination"), nb::arg("source_region"),
           nb::arg("source"),
           "One motion more. Raises ArgumentError where there is no such block, ShapeError where the regions do not "
           "have the same number of points (with axes: the same shape). Ranks that share a plan add the same motions, "
           "whoever takes part in them.")
      .def(
          "copy_points",
          [](BlockPlan& plan, nb::object destination_points, Index destination, nb::object source_points,
             Index source) {
            plan.copy_points(to_points(destination_points, "destination_points", plan.destination()), destination,
                             to_points(source_points, "source_points", plan.source()), source);
          },
          nb::arg("destination_points"), nb::arg("destination"), nb::arg("source_points"), nb::arg("source"),
          "One motion more, of listed points: source point k goes to destination point k. Integer arrays of shape (n,) "
          "for one dimension, else (n, dimensions). Raises ArgumentError where there is no such block, ShapeError "
          "where there are not as many points on both sides.",
          nb::sig("def copy_points(self, destination_points: numpy.typing.ArrayLike, destination: int, source_points: "
                  "numpy.typing.ArrayLike, source: int) -> None"))
      .def_prop_ro(
          "source", [](const BlockPlan& plan) { return plan.source(); }, "The floor plan of the sources.")
      .def_prop_ro(
          "destination", [](const BlockPlan& plan) { return plan.destination(); },
          "The floor plan of the destinations.")
      .def_prop_ro(
          "axes", [](const BlockPlan& plan) { return to_tuple_or_none(plan.axes()); },
          "Dimension d of a destination is dimension axes[d] of a source; None: none is permuted.",
          nb::sig("def axes(self) -> tuple[int, ...] | None"))
      .def_prop_ro("rank", &BlockPlan::rank, "Whose motions these are; None: everybody's.")
      .def_prop_ro("world_size", &BlockPlan::world_size, "Ranks [0, world_size) may take part.")
      .def("motions", &BlockPlan::motions,
           "All motions that the plan holds, in an order that senders and receivers have in common.")
      .def("receives", &BlockPlan::receives, nb::arg("rank"),
           "The motions to blocks that a rank owns. Raises ArgumentError where the plan is another rank's.")
      .def("sends", &BlockPlan::sends, nb::arg("rank"), "The motions from blocks that a rank owns.")
      .def(
          "volumes",
          [](const BlockPlan& plan) {
            nb::list list;
            for (const auto& v : volumes(plan))
              list.append(nb::make_tuple(v.source_rank, v.destination_rank, v.motions, v.points));
            return list;
          },
          "What one rank sends to another or keeps: (source rank, destination rank, motions, points), ascending.",
          nb::sig("def volumes(self) -> list[tuple[int, int, int, int]]"))
      .def(
          "explain",
          [](nb::object self, nb::object rank, nb::object dtype) {
            return nb::module_::import_("longshore._explain_blocks").attr("render")(self, rank, dtype);
          },
          nb::arg("rank") = nb::none(), nb::kw_only(), nb::arg("dtype") = nb::none(),
          "The plan in plain words: what it is, the blocks and their ranks, who sends how much to whom, who has how "
          "many "
          "neighbours. `rank`: that rank's view alone (none: everybody's, or that of the rank whose plan it is). "
          "`dtype`: of the elements, so that amounts are told in bytes; else in points. Raises ArgumentError for a "
          "rank "
          "that takes no part and for one whose motions the plan does not hold.",
          nb::sig("def explain(self, rank: int | None = None, *, dtype: object | None = None) -> str"))
      .def_prop_ro(
          "facts",
          [](const BlockPlan& plan) {
            nb::list facts;
            for (const auto& fact : plan.facts(false)) facts.append(nb::make_tuple(fact.name, fact.value));
            return facts;
          },
          "How the plan was made, as (name, value) in words: (\"plan\", \"a halo\"), (\"halo\", \"width 1\"), ...",
          nb::sig("def facts(self) -> list[tuple[str, str]]"))
      .def("check_races", &check_races, nb::arg("endogenous") = false, nb::arg("combining") = false,
           "Raises ArgumentError naming two motions that write the same point, if there are any; with `endogenous`, "
           "where sources and destinations are the same arrays, also two of which one reads what the other writes. "
           "`combining` motions may write one point several times.")
      .def("reverse", &BlockPlan::reverse, "The plan that brings everything back.")
      .def("compose", &compose, nb::arg("next"),
           "First this plan, then `next`: motions from this one's sources straight to the other's destinations that "
           "carry what goes all the way. Raises ArgumentError where `next` begins with other blocks than those this "
           "plan ends with, where a plan is one rank's, and for motions between regions of different shape.")
      .def(
          "bind",
          [](nb::object self, nb::object source, nb::object destination, nb::kwargs options) {
            return nb::module_::import_("longshore._bind").attr("bind_blocks")(self, source, destination, **options);
          },
          nb::arg("source").none(), nb::arg("destination") = nb::none(), nb::arg("options"), bind_doc,
          nb::sig("def bind(self, source: object, destination: object | None = None, *, comm: object | None = None, "
                  "ghost: int | Sequence[int | tuple[int, int]] | None = None, destination_ghost: int | Sequence[int | "
                  "tuple[int, int]] | None = None, "
                  "visit: str | None = None, phases: bool | None = None, threads: int | None = None, max_mem: int | "
                  "str | None = None, alpha: object | None "
                  "= None, beta: object | None = None, conjugate: bool = False, reduce: str | None = None, proxy: bool "
                  "= False, checked: bool = False, placement: str | None = None, node: str | None = None, aggregate: "
                  "bool | None = None, packet_bytes: int | str | None = None, preallocate: bool | None = None, "
                  "exchange: str | None = None) -> Mover"))
      .def(
          "phases", [](const BlockPlan& plan, const std::string& order) { return phases(plan, to_order(order)); },
          nb::arg("order") = "C",
          "A halo with corners dimension by dimension: plans that, carried out one after the other within one array, "
          "write the same ghost cells with the same values; the plan itself, alone, where `phases_obstacle` says why. "
          "The grids' fastest dimension comes first: the last one in C order. They cannot be stored.")
      .def_prop_ro("phases_obstacle", &phases_obstacle,
                   "Why the plan has one phase only, in words; empty where it has several.")
      .def_prop_ro("phases_pay", &phases_pay,
                   "Whether `bind` chooses phases, given that nothing else speaks against it.")
      .def_prop_ro("digest", &BlockPlan::digest,
                   "64 bits that agree on all machines for equal plans, whosever motions they hold.")
      .def_prop_ro("workspace_bytes", &BlockPlan::workspace_bytes,
                   "Bytes of memory the plan holds beyond its two floor plans.")
      .def(
          "__eq__",
          [](const BlockPlan& a, nb::object b) {
            return nb::isinstance<BlockPlan>(b) && a == nb::cast<const BlockPlan&>(b);
          },
          nb::arg("other"), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def(
          "to_bytes", [](const BlockPlan& plan) { return to_bytes(plan.to_bytes()); },
          "A file's content: header with a version, the plan, a checksum. What neighbours share is worked out again by "
          "whoever reads it.")
      .def_static(
          "from_bytes",
          [](const nb::bytes& bytes, std::optional<Index> most_pairs) {
            return BlockPlan::from_bytes(to_span(bytes), most_pairs.value_or(BlockPlan::all_pairs));
          },
          nb::arg("bytes"), nb::arg("most_pairs") = nb::none(),
          "What to_bytes() wrote, of 64 dimensions at most. Raises ArgumentError saying what is wrong; never trusts a "
          "number. Few bytes may stand for very many blocks, pairs of neighbours and motions by hand: `most_pairs` "
          "bounds each of them, for bytes from strangers.")
      .def("__getstate__", [](const BlockPlan& plan) { return to_bytes(plan.to_bytes()); })
      .def("__setstate__", [](BlockPlan& self,
                              const nb::bytes& bytes) { new (&self) BlockPlan(BlockPlan::from_bytes(to_span(bytes))); })
      .def("__str__", [](const BlockPlan& p) { return p.to_string(); })
      .def("__repr__", [](const BlockPlan& p) { return "<longshore.BlockPlan: " + p.to_string(2) + ">"; });

  plans.attr("__hash__") = nb::none();  // `copy` changes a plan
}

}  // namespace longshore::python

#include "longshore/plans/block_plan.hpp"

#include "points.hpp"

namespace longshore::python {

namespace {

constexpr const char* block_plan_doc = R"(What moves between the blocks of two floor plans: the Data Mover's MotionPlan.

``BlockPlan.halo`` fills ghost cells, ``BlockPlan.copy_between`` brings every point of one floor plan's blocks from another's; into
``BlockPlan(source, destination)`` and into the others motions are copied by hand. What neighbours share is not kept but worked out
from the floor plans: a halo costs five bytes for each pair of neighbours. With ``rank=`` a plan holds only the motions that
rank takes part in; its digest is still the whole plan's. Regions may lie outside their block, as ghost cells do. Not collective.
(The Data Mover, section 2.)

>>> blocks = FloorPlan.even(Region.of_shape((8, 6)), 4)
>>> plan = BlockPlan.halo(blocks, 1)
>>> plan.receives(0)[0]
<longshore.BlockMotion: block 1 [0:4, 3:4] -> block 0 [0:4, 3:4]>
>>> plan.volumes()[:2]  # (from, to, motions, points)
[(0, 1, 1, 4), (0, 2, 1, 3)]
>>> u = XArray(blocks, "float64", ghost=1)
>>> mover = plan.bind(u)  # fills the ghost cells at every mover.start(), mover.wait())";

constexpr const char* bind_doc = R"(Ties the plan to memory: a Mover with start(), test() and wait(), to be used again and again.

`sources` and `destinations` are XArrays, or sequences of one array a block over its region grown by `ghost` (`destination_ghost`, where
those have other ghost cells), in any memory order; the mover keeps them alive. Without destinations the sources are the
destinations too, as in a halo update (an endogenous copy). Without `comm` all blocks are in this process and the threads engine moves
them on `threads` threads (None: as many as the process may use). With an mpi4py communicator the call is collective, block owners are
its ranks, and every rank gives the arrays of its own blocks: XArrays made with the same `comm` move fastest.

What a motion does where it writes: `combine` names an operation ("add", "min", "max", ...), None copies. Points of regions of
different shape are visited in column-major order on both sides, or with order="C" in row-major order, which is also the faster way
for arrays of your own that lie so. `proxy`: a thread of the mover's own
carries the move out while the caller computes. `checked`: sums tell in wait() where a source was written too early (LocalArrayError) or
something else has arrived than was sent (TransportError); twice the work and more. `max_mem`: bytes (or "64MiB") the move may take for buffers.

How messages between processes travel (with `comm`): `node`, the way within a node: "auto", "direct", "ring" or "messages";
`aggregate`: one message for each pair of ranks (False: one a motion, contiguous ones without a buffer); `packet_bytes`: in packets
no larger than that, few of them in flight; `preallocate`: buffers live as long as the mover (False: from start to wait);
`exchange`: "auto", "p2p", "neighborhood" or "alltoall".

Raises ShapeError, DTypeError, LocalArrayError and ArgumentError that name the block or the motion: also for motions outside the
arrays, for arrays that share memory (or interleave), and for races: two motions that write the same point (unless they combine), or,
without destinations, one that reads what another writes. With `comm` on every rank alike, and DisagreementError where ranks bring
different plans.)";

Halo to_halo(const FloorPlan& blocks, nb::object below, nb::object above, std::optional<Region> domain, nb::object periodic,
             bool corners) {
  Halo halo;
  halo.below = to_point(below, blocks.dims());
  halo.above = above.is_none() ? halo.below : to_point(above, blocks.dims());
  halo.periodic = to_flags(periodic);
  halo.domain = domain ? *domain : blocks.bounding();
  halo.corners = corners;
  return halo;
}

}  // namespace

void bind_block_plans(nb::module_& module) {
  nb::class_<BlockMotion>(module, "BlockMotion",
                          "One copy: the points of a region of a source block, in column-major order, to those of a region of a "
                          "destination block, which may have another shape.")
      .def_ro("source", &BlockMotion::source, "Which block of the source floor plan.")
      .def_ro("destination", &BlockMotion::destination, "Which block of the destination floor plan.")
      .def_ro("source_region", &BlockMotion::source_region, "The points that are read.")
      .def_ro("destination_region", &BlockMotion::destination_region, "The points that are written, as many.")
      .def("__eq__", [](const BlockMotion& a, nb::object b) {
             return nb::isinstance<BlockMotion>(b) && a == nb::cast<const BlockMotion&>(b);
           }, nb::arg("other"), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const BlockMotion& m) {
             return nb::hash(nb::make_tuple(m.source, m.destination, nb::cast(m.source_region), nb::cast(m.destination_region)));
           })
      .def("__str__", &BlockMotion::to_string)
      .def("__repr__", [](const BlockMotion& m) { return "<longshore.BlockMotion: " + m.to_string() + ">"; });

  nb::class_<BlockPlan> plans(module, "BlockPlan", block_plan_doc);
  plans
      .def(nb::init<FloorPlan, FloorPlan>(), nb::arg("source"), nb::arg("destination"))
      .def_static("halo", [](const FloorPlan& blocks, nb::object below, nb::object above, std::optional<Region> domain,
                             nb::object periodic, bool corners, std::optional<Index> rank) {
                    return BlockPlan::halo(blocks, to_halo(blocks, below, above, std::move(domain), periodic, corners), rank);
                  }, nb::arg("blocks"), nb::arg("below"), nb::arg("above") = nb::none(), nb::kw_only(),
                  nb::arg("domain") = nb::none(),
                  nb::arg("periodic") = nb::none(), nb::arg("corners") = true, nb::arg("rank") = nb::none(),
                  "Ghost cells, so many below and above (none: the same) every dimension's sides, from the blocks that own them. "
                  "`periodic`: a flag a dimension, over `domain` (none: all blocks' bounding region). corners=False: only what "
                  "lies beyond one face. Raises ArgumentError for negative widths and for blocks outside a periodic domain.",
                  nb::sig("def halo(blocks: FloorPlan, below: int | Sequence[int], above: int | Sequence[int] | None = None, *, "
                          "domain: Region | None = None, periodic: Sequence[bool] | None = None, corners: bool = True, rank: int "
                          "| None = None) -> BlockPlan"))
      .def_static("copy_between", &BlockPlan::copy_between, nb::arg("source"), nb::arg("destination"), nb::kw_only(),
                  nb::arg("rank") = nb::none(), "Every point of a destination block from the source blocks that have it.")
      .def("copy", &BlockPlan::copy, nb::arg("destination_region"), nb::arg("destination"), nb::arg("source_region"),
           nb::arg("source"),
           "One motion more. Raises ArgumentError where there is no such block, ShapeError where the regions do not have the same "
           "number of points. Ranks that share a plan add the same motions, whoever takes part in them.")
      .def_prop_ro("source", [](const BlockPlan& plan) { return plan.source(); }, "The floor plan of the sources.")
      .def_prop_ro("destination", [](const BlockPlan& plan) { return plan.destination(); }, "The floor plan of the destinations.")
      .def_prop_ro("rank", &BlockPlan::rank, "Whose motions these are; None: everybody's.")
      .def("motions", &BlockPlan::motions, "All motions that the plan holds, in an order that senders and receivers have in "
                                           "common.")
      .def("receives", &BlockPlan::receives, nb::arg("rank"),
           "The motions to blocks that a rank owns. Raises ArgumentError where the plan is another rank's.")
      .def("sends", &BlockPlan::sends, nb::arg("rank"), "The motions from blocks that a rank owns.")
      .def("volumes", [](const BlockPlan& plan) {
             nb::list list;
             for (const auto& v : plan.volumes())
               list.append(nb::make_tuple(v.source_rank, v.destination_rank, v.motions, v.points));
             return list;
           }, "What one rank sends to another or keeps: (source rank, destination rank, motions, points), ascending.",
           nb::sig("def volumes(self) -> list[tuple[int, int, int, int]]"))
      .def("check_races", &BlockPlan::check_races,
           nb::arg("endogenous") = false, nb::arg("combining") = false,
           "Raises ArgumentError naming two motions that write the same point, if there are any; with `endogenous`, where sources "
           "and destinations are the same arrays, also two of which one reads what the other writes. `combining` motions may write "
           "one point several times.")
      .def("reverse", &BlockPlan::reverse, "The plan that brings everything back.")
      .def("bind", [](nb::object self, nb::object sources, nb::object destinations, nb::kwargs options) {
             return nb::module_::import_("longshore._blocks").attr("bind")(self, sources, destinations, **options);
           }, nb::arg("sources"), nb::arg("destinations") = nb::none(), nb::arg("options"), bind_doc,
           nb::sig("def bind(self, sources: object, destinations: object | None = None, *, comm: object | None = None, ghost: int | "
                   "Sequence[int] | None = None, destination_ghost: int | Sequence[int] | None = None, combine: str | None = None, "
                   "threads: int | None = None, max_mem: int | str | None = None, proxy: bool = False, checked: bool = False, order: str = 'F', "
                   "node: str "
                   "| None = None, aggregate: bool | None = None, packet_bytes: int | None = None, preallocate: bool | None = None, "
                   "exchange: str | None = None) -> Mover"))
      .def_prop_ro("digest", &BlockPlan::digest, "64 bits that agree on all machines for equal plans, whosever motions they hold.")
      .def_prop_ro("workspace_bytes", &BlockPlan::workspace_bytes, "Bytes of memory the plan holds beyond its two floor plans.")
      .def("__eq__", [](const BlockPlan& a, nb::object b) {
             return nb::isinstance<BlockPlan>(b) && a == nb::cast<const BlockPlan&>(b);
           },
           nb::arg("other"), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__str__", [](const BlockPlan& p) { return p.to_string(); })
      .def("__repr__", [](const BlockPlan& p) { return "<longshore.BlockPlan: " + p.to_string(2) + ">"; });

  plans.attr("__hash__") = nb::none();  // `copy` changes a plan
}

}  // namespace longshore::python

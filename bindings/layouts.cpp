#include "longshore/layouts/layout.hpp"

#include <algorithm>
#include <array>

#include "index_sets.hpp"
#include "points.hpp"
#include "states.hpp"

namespace longshore::python {

namespace {

std::string order_text(Order order) { return std::string(1, char(order)); }

/// All that tells a distribution.
nb::tuple state_of(const Distribution& d) {
  return nb::make_tuple(int(d.kind()), d.extent(), d.coordinates(), d.block(), d.source(), d.origin(),
                        to_tuple(d.sizes()));
}

Distribution distribution_of(const State& state) {
  const auto at = [&](std::size_t k) { return state.at<Index>(k); };
  switch (Distribution::Kind(at(0))) {
    case Distribution::Kind::collapsed: return Distribution::collapsed(at(1));
    case Distribution::Kind::block: return Distribution::block(at(1), at(2), at(3), at(4), at(5));
    case Distribution::Kind::cyclic: return Distribution::cyclic(at(1), at(2), at(3), at(4), at(5));
    case Distribution::Kind::general_block: return Distribution::general_block(at(1), state.at<std::vector<Index>>(6));
  }
  throw Error(ErrorKind::argument, "there is no distribution of kind " + std::to_string(at(0)));
}

nb::tuple ranks_of(const Layout& layout) {
  std::vector<Index> ranks;
  for (Index p = 0; p < layout.processes(); ++p) ranks.push_back(layout.grid().world_rank(p));
  return to_tuple(ranks);
}

constexpr const char* indices_doc =
    R"(What to index the whole array with to reach what a rank owns: ``full[layout.indices(rank)]`` is its local array.

One entry for each dimension: a slice where the rank's indices there are evenly spaced, else an ascending int64 array;
where several dimensions need arrays, all are arrays of the shapes that np.ix_ gives them. With slices alone the
result is a view of a NumPy array; assigned to, ``full[layout.indices(rank)] = local`` puts a local array back. A rank
that owns nothing or takes no part has empty slices. Not collective.

>>> full = np.arange(24).reshape(6, 4)
>>> layout = Layout("(CYCLIC(2), CYCLIC) on 2x2", full.shape)
>>> layout.indices(3)
(slice(2, 4, None), slice(1, 4, 2))
>>> full[layout.indices(3)]
array([[ 9, 11],
       [13, 15]])
>>> layout.indices(0)
(array([0, 1, 4, 5]), slice(0, 3, 2)))";

constexpr const char* layout_doc =
    R"(Which rank owns which global indices of an array, and where they lie in that rank's memory.

``Layout(text, shape)`` reads HPF's notation: one word a dimension, ``*`` (whole), ``BLOCK``, ``BLOCK(b)``,
``CYCLIC``, ``CYCLIC(b)`` or ``GEN_BLOCK(n0, n1, ...)``, then ``on`` and the process grid, which names the distributed
dimensions in order; a grid extent ``REPLICATED(n)`` holds n copies. Options follow the grid, or are given by keyword,
which wins: ``order=C|F`` (memory order of local arrays), ``rank_order=C|F`` (how ranks number the grid),
``source=1x0`` (grid coordinates that own the first blocks, ScaLAPACK's RSRC and CSRC), ``ranks=4:8``, ``ranks=0:8:2``
or ``ranks=[3,1,0]`` (world ranks), ``origin=37x0`` (the array begins inside its template: a window), ``ld=128``
(allocated extent of the fastest dimension of a local array).

``BLOCK`` is HPF's: blocks of ceil(N/P). A local array keeps all dimensions in global order. A value: immutable,
hashable, picklable; ``str(layout)`` parses back. Raises LayoutError, with a caret under the place, for what cannot be
read, and ShapeError where text and shape disagree. Not collective.

>>> Layout("(CYCLIC(64), *) on 4", shape=(8192, 8192)).local_shape(0)
(2048, 8192))";

}  // namespace

void bind_layouts(nb::module_& module) {
  nb::class_<Distribution> dealings(module, "Distribution", "How the indices of one dimension of a layout are dealt.");
  def_state(
      dealings, 7, [](const Distribution& d) { return state_of(d); }, distribution_of)
      .def_prop_ro(
          "kind",
          [](const Distribution& d) {
            constexpr std::array words{"*", "BLOCK", "CYCLIC", "GEN_BLOCK"};
            return words[std::size_t(d.kind())];
          },
          "HPF's word: \"*\", \"BLOCK\", \"CYCLIC\" or \"GEN_BLOCK\".", nb::sig("def kind(self) -> str"))
      .def_prop_ro("extent", &Distribution::extent, "Indices.")
      .def_prop_ro("coordinates", &Distribution::coordinates, "Coordinates of the process grid that they are dealt to.")
      .def_prop_ro(
          "block", [](const Distribution& d) { return d.block(); },
          "Indices of a block: all of \"*\", and 0 where blocks differ in size.")
      .def_prop_ro("origin", &Distribution::origin, "The cell of the template that index 0 lies in.")
      .def_prop_ro(
          "sizes", [](const Distribution& d) { return d.sizes(); }, "The sizes of GEN_BLOCK's blocks.",
          nb::sig("def sizes(self) -> list[int]"))
      .def_prop_ro("largest_count", &Distribution::largest_count, "The most indices that a coordinate owns.")
      .def(
          "__eq__",
          [](const Distribution& a, nb::object b) {
            return nb::isinstance<Distribution>(b) && a == nb::cast<const Distribution&>(b);
          },
          nb::arg("other"), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const Distribution& d) { return nb::hash(state_of(d)); })
      .def("__str__", &Distribution::to_string)
      .def("__repr__", [](const Distribution& d) { return "<longshore.Distribution: " + d.to_string() + ">"; });

  nb::class_<Layout>(module, "Layout", layout_doc)
      .def(
          "__init__",
          [](Layout* self, const std::string& text, nb::object shape, std::optional<std::string> order,
             std::optional<std::string> rank_order, nb::object source, nb::object ranks, nb::object origin,
             std::optional<Index> ld) {
            Layout::Options options;
            if (order) options.order = to_order(*order);
            if (rank_order) options.rank_order = to_order(*rank_order);
            if (!source.is_none()) options.source = to_indices(source);
            if (!origin.is_none()) options.origin = to_indices(origin);
            if (nb::isinstance<RankMap>(ranks))
              options.ranks = nb::cast<RankMap>(ranks);
            else if (!ranks.is_none()) {
              std::vector<Index> list;
              if (!nb::hasattr(ranks, "__iter__") || !nb::try_cast<std::vector<Index>>(nb::list(ranks), list))
                throw nb::next_overload();
              options.ranks = process_ranks(list);
            }
            options.ld = ld;
            new (self) Layout(Layout::parse(text, to_indices(shape), options));
          },
          nb::arg("text"), nb::arg("shape"), nb::kw_only(), nb::arg("order") = nb::none(),
          nb::arg("rank_order") = nb::none(), nb::arg("source") = nb::none(), nb::arg("ranks") = nb::none(),
          nb::arg("origin") = nb::none(), nb::arg("ld") = nb::none(),
          nb::sig("def __init__(self, text: str, shape: int | Sequence[int], *, order: str | None = None, rank_order: "
                  "str | None = None, source: Sequence[int] | None = None, ranks: Sequence[int] | RankMap | None = "
                  "None, origin: Sequence[int] | None = None, ld: int | None = None) -> None"))
      .def_prop_ro(
          "shape", [](const Layout& l) { return to_tuple(l.shape()); }, "Global extents.",
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro("ndim", &Layout::rank_of_array, "Number of dimensions of the array.")
      .def_prop_ro("size", &Layout::size, "Elements of the whole array.")
      .def_prop_ro("text", &Layout::to_string, "The layout in words that parse back.")
      .def_prop_ro(
          "order", [](const Layout& l) { return order_text(l.order()); }, "Memory order of local arrays, 'C' or 'F'.",
          nb::sig("def order(self) -> typing.Literal['C', 'F']"))
      .def_prop_ro(
          "rank_order", [](const Layout& l) { return order_text(l.grid().rank_order); },
          "How ranks number the grid: 'C' row-major, 'F' column-major.")
      .def_prop_ro("ld", &Layout::ld, "Allocated extent of the fastest dimension of local arrays, 0 for dense ones.")
      .def_prop_ro(
          "dimensions",
          [](const Layout& l) {
            std::vector<std::string> words;
            for (const auto& d : l.dimensions()) words.push_back(d.to_string());
            return words;
          },
          "HPF's word for each dimension.")
      .def_prop_ro(
          "distributions", [](const Layout& layout) { return layout.dimensions(); }, "How each dimension is dealt.",
          nb::sig("def distributions(self) -> list[Distribution]"))
      .def_prop_ro(
          "grid_shape", [](const Layout& l) { return to_tuple(l.grid().extents); },
          "Extents of the process grid, replicated ones included.", nb::sig("def grid_shape(self) -> tuple[int, ...]"))
      .def_prop_ro("replicas", &Layout::replicas, "How many ranks hold each element.")
      .def_prop_ro("ranks", &ranks_of, "World rank of every process of the grid, in the grid's order.",
                   nb::sig("def ranks(self) -> tuple[int, ...]"))
      .def_prop_ro(
          "rank_map", [](const Layout& l) { return l.grid().ranks; }, "The same as a RankMap, which lists nobody.")
      .def_prop_ro("rank_count", &Layout::processes, "Processes in the grid.")
      .def_prop_ro("world_size", &Layout::world_size, "One more than the largest world rank.")
      .def(
          "local_shape", [](const Layout& l, Index rank) { return to_tuple(l.local_shape(rank)); }, nb::arg("rank"),
          "Extents of a rank's local array; all zero for a rank that takes no part.",
          nb::sig("def local_shape(self, rank: int) -> tuple[int, ...]"))
      .def(
          "local_strides",
          [](const Layout& l, Index rank, Index itemsize) { return to_tuple(l.local_strides(rank, itemsize)); },
          nb::arg("rank"), nb::arg("itemsize"), "Strides of a rank's local array in bytes.",
          nb::sig("def local_strides(self, rank: int, itemsize: int) -> tuple[int, ...]"))
      .def("local_size", &Layout::local_size, nb::arg("rank"), "Elements a rank owns.")
      .def("allocated_size", &Layout::allocated_size, nb::arg("rank"),
           "Elements of memory a rank's local array takes, padding counted.")
      .def(
          "owner", [](const Layout& l, nb::object index) { return l.owners(to_indices(index)).front(); },
          nb::arg("index"),
          "The world rank that owns a global index (the first one, if there are replicas). Raises ArgumentError "
          "outside the shape.",
          nb::sig("def owner(self, index: int | Sequence[int]) -> int"))
      .def(
          "owners", [](const Layout& l, nb::object index) { return l.owners(to_indices(index)); }, nb::arg("index"),
          "All world ranks that hold a global index.",
          nb::sig("def owners(self, index: int | Sequence[int]) -> list[int]"))
      .def(
          "global_to_local",
          [](const Layout& l, nb::object index) {
            const auto place = l.global_to_local(to_indices(index));
            return nb::make_tuple(place.rank, to_tuple(place.local));
          },
          nb::arg("index"), "(rank, local index) of a global index.",
          nb::sig("def global_to_local(self, index: int | Sequence[int]) -> tuple[int, tuple[int, ...]]"))
      .def(
          "local_to_global",
          [](const Layout& l, Index rank, nb::object index) {
            return to_tuple(l.local_to_global(rank, to_indices(index)));
          },
          nb::arg("rank"), nb::arg("index"), "Global index of a rank's local index.",
          nb::sig("def local_to_global(self, rank: int, index: int | Sequence[int]) -> tuple[int, ...]"))
      .def(
          "owned",
          [](const Layout& l, Index rank) {
            std::vector<std::vector<nb::tuple>> result;
            for (const auto& runs : l.owned(rank)) {
              auto& dimension = result.emplace_back();
              for (const auto& run : runs.runs())
                dimension.push_back(nb::make_tuple(run.first, run.length, run.count, run.step));
            }
            return result;
          },
          nb::arg("rank"),
          "Per dimension, the global indices a rank owns as runs (first, length, count, step): `count` runs of "
          "`length` consecutive indices, `step` apart. A rank owns the product of its dimensions.",
          nb::sig("def owned(self, rank: int) -> list[list[tuple[int, int, int, int]]]"))
      .def(
          "indices", [](const Layout& layout, Index rank) { return to_index(layout.owned(rank)); }, nb::arg("rank"),
          indices_doc, nb::sig("def indices(self, rank: int) -> tuple[slice | numpy.typing.NDArray, ...]"))
      .def(
          "local_start",
          [](const Layout& l, Index rank, nb::object first) {
            return to_tuple(l.local_start(rank, to_indices(first)));
          },
          nb::arg("rank"), nb::arg("first"),
          "Where the window beginning at a global index begins in a rank's local array.",
          nb::sig("def local_start(self, rank: int, first: int | Sequence[int]) -> tuple[int, ...]"))
      .def(
          "window",
          [](const Layout& l, nb::object first, nb::object last) {
            return l.window(to_indices(first), to_indices(last));
          },
          nb::arg("first"), nb::arg("last"),
          "The layout of the sub-array [first, last): the same owners, dense local arrays. What a rank owns of it is "
          "the box of its local array that begins at local_start(rank, first) and has the window's local shape.",
          nb::sig("def window(self, first: int | Sequence[int], last: int | Sequence[int]) -> Layout"))
      .def(
          "to_descriptor",
          [](const Layout& l, Index rank, Index context) {
            const auto d = descriptor_of(l, rank, context);
            return to_tuple(std::vector<Index>(d.begin(), d.end()));
          },
          nb::arg("rank") = 0, nb::arg("context") = 0,
          "ScaLAPACK's nine integers as `rank` gives them. Raises LayoutError for what a descriptor cannot say.",
          nb::sig("def to_descriptor(self, rank: int = 0, context: int = 0) -> tuple[int, ...]"))
      .def_static(
          "from_descriptor",
          [](nb::object descriptor, nb::object grid, const std::string& rank_order) {
            const auto values = to_indices(descriptor), extents = to_indices(grid);
            if (values.size() != 9)
              throw Error(ErrorKind::layout, "a descriptor has 9 integers, not " + std::to_string(values.size()));
            if (extents.size() != 2)
              throw Error(ErrorKind::layout,
                          "a descriptor needs a grid of 2 extents, not " + std::to_string(extents.size()));
            Descriptor d;
            std::copy(values.begin(), values.end(), d.begin());
            return layout_from_descriptor(d, extents[0], extents[1], to_order(rank_order));
          },
          nb::arg("descriptor"), nb::arg("grid"), nb::arg("rank_order") = "C",
          "The layout of a ScaLAPACK descriptor on a (rows, columns) grid. Raises LayoutError naming the entry that is "
          "wrong.",
          nb::sig(
              "def from_descriptor(descriptor: Sequence[int], grid: Sequence[int], rank_order: str = 'C') -> Layout"))
      .def_prop_ro("digest", &Layout::digest, "64 bits that agree on all machines for equal layouts of equal shape.")
      .def(
          "__eq__",
          [](const Layout& a, nb::object b) { return nb::isinstance<Layout>(b) && a == nb::cast<const Layout&>(b); },
          nb::arg("other"), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const Layout& l) { return Py_hash_t(l.digest() & 0x7fffffffffffffff); })
      .def("__str__", &Layout::to_string)
      .def("__repr__",
           [](const Layout& l) {
             return "Layout(\"" + l.to_string() + "\", shape=" + nb::cast<std::string>(nb::str(to_tuple(l.shape()))) +
                    ")";
           })
      .def("__reduce__", [](const Layout& l) {
        return nb::make_tuple(nb::type<Layout>(), nb::make_tuple(l.to_string(), to_tuple(l.shape())));
      });
}

}  // namespace longshore::python

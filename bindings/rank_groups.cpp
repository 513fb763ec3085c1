#include "longshore/ranks/rank_groups.hpp"

#include "longshore/layouts/locality.hpp"
#include "points.hpp"
#include "rank_arguments.hpp"

namespace longshore::python {

namespace {

/// The two kinds of algebra: MPI's, and that of sets.
template <RankMap (*Group)(const RankMap&, const RankMap&, const Strategy&),
          RankMap (*Set)(const RankMap&, const RankMap&, const Strategy&)>
RankMap combined(const RankMap& a, const RankMap& b, bool sort) {
  return unlocked([&] { return sort ? Set(a, b, {}) : Group(a, b, {}); });
}

std::vector<RankRange> ranges_of(const nb::handle& given) {
  std::vector<RankRange> ranges;
  for (const nb::handle item : nb::iter(given)) {
    const auto triplet = to_indices(item);
    if (triplet.size() != 3)
      throw Error(ErrorKind::argument,
                  "a range is (first, last, stride), not " + std::to_string(triplet.size()) + " numbers");
    ranges.push_back({triplet[0], triplet[1], triplet[2]});
  }
  return ranges;
}

}  // namespace

void bind_rank_algebra(nb::class_<RankMap>& type) {
  const auto other = nb::arg("other");
  const auto sort = nb::arg("sort") = false;
  type.def("union", &combined<group_union, set_union>, other, sort,
           "Members of this map, then those of the other alone; with `sort` all ascending. Raises "
           "ArgumentError for maps of two worlds.")
      .def("intersection", &combined<group_intersection, set_intersection>, other, sort,
           "Members of this map, in its order, that are in the other; with `sort` ascending.")
      .def("difference", &combined<group_difference, set_difference>, other, sort,
           "Members of this map, in its order, that are not in the other; with `sort` ascending.")
      .def(
          "as_set", [](const RankMap& map) { return unlocked([&] { return as_set(map); }); },
          "The same members, ascending.")
      .def(
          "incl",
          [](const RankMap& map, const nb::handle& positions) {
            const auto list = integers(positions, "positions");
            return unlocked([&] { return group_incl(map, list.values()); });
          },
          nb::arg("positions"),
          "The members at these positions, in this order, as MPI_Group_incl. Raises ArgumentError for positions "
          "outside the map or given twice.")
      .def(
          "excl",
          [](const RankMap& map, const nb::handle& positions) {
            const auto list = integers(positions, "positions");
            return unlocked([&] { return group_excl(map, list.values()); });
          },
          nb::arg("positions"),
          "The members but for those at these positions, as MPI_Group_excl. Raises ArgumentError as incl() does.")
      .def(
          "range_incl",
          [](const RankMap& map, const nb::handle& ranges) {
            const auto list = ranges_of(ranges);
            return unlocked([&] { return group_range_incl(map, list); });
          },
          nb::arg("ranges"),
          "The members at ranges of positions (first, last, stride), last included, as MPI_Group_range_incl.")
      .def(
          "range_excl",
          [](const RankMap& map, const nb::handle& ranges) {
            const auto list = ranges_of(ranges);
            return unlocked([&] { return group_range_excl(map, list); });
          },
          nb::arg("ranges"), "The members but for those at ranges of positions, as MPI_Group_range_excl.")
      .def(
          "translate",
          [](const RankMap& map, const RankMap& other, const nb::object& positions) {
            if (positions.is_none()) return to_array(unlocked([&] { return translate_ranks(map, other); }));
            const auto list = integers(positions, "positions");
            return to_array(unlocked([&] { return translate_ranks(map, list.values(), other); }), list.array);
          },
          other, nb::arg("positions") = nb::none(),
          "Where members of this map (at these positions, or all) are in another, as MPI_Group_translate_ranks; -1: "
          "nowhere.",
          nb::sig("def translate(self, other: RankMap, positions: object = None) -> numpy.ndarray"))
      .def(
          "compare",
          [](const RankMap& a, const RankMap& b) {
            switch (unlocked([&] { return compare(a, b); })) {
              case Comparison::identical: return "identical";
              case Comparison::similar: return "similar";
              default: return "unequal";
            }
          },
          other, "\"identical\", \"similar\" (another order) or \"unequal\", as MPI_Group_compare.")
      .def(
          "by_colour",
          [](const RankMap& map, const nb::handle& colours, const nb::object& keys) {
            const auto of_members = integers(colours, "colours");
            std::optional<Integers> order;
            if (!keys.is_none()) order = integers(keys, "keys");
            auto parts = unlocked([&] {
              return by_colour(map, of_members.values(), order ? order->values() : std::span<const Index>());
            });
            nb::dict out;
            for (auto& part : parts) out[nb::int_(part.colour)] = nb::cast(std::move(part.members));
            return out;
          },
          nb::arg("colours"), nb::arg("keys") = nb::none(),
          "Maps by colour, their members by key and then by position, as MPI_Comm_split. Members of negative colour "
          "are in none.",
          nb::sig("def by_colour(self, colours: object, keys: object = None) -> dict[int, RankMap]"))
      .def(
          "__or__", [](const RankMap& a, const RankMap& b) { return unlocked([&] { return set_union(a, b); }); },
          nb::is_operator())
      .def(
          "__and__",
          [](const RankMap& a, const RankMap& b) { return unlocked([&] { return set_intersection(a, b); }); },
          nb::is_operator())
      .def(
          "__sub__", [](const RankMap& a, const RankMap& b) { return unlocked([&] { return set_difference(a, b); }); },
          nb::is_operator());
}

void bind_rank_orders(nb::module_& module) {
  module.def(
      "tiled_order",
      [](const std::vector<Index>& shape, const std::vector<Index>& tile) { return tiled_order(shape, tile); },
      nb::arg("shape"), nb::arg("tile"), nb::call_guard<nb::gil_scoped_release>(),
      "The ranks of a process grid, whose last dimension is the fastest, tile by tile. A closed form where the tile "
      "divides the grid, else tiles at the upper ends are cut.");
  module.def(
      "hilbert_order", [](const std::vector<Index>& shape) { return hilbert_order(shape); }, nb::arg("shape"),
      nb::call_guard<nb::gil_scoped_release>(),
      "The ranks of a process grid along Hilbert's curve: each is a neighbour of the one before where extents are one "
      "power of two, near it elsewhere.");
  module.def(
      "node_order",
      [](const nb::handle& nodes) {
        const auto list = integers(nodes, "nodes");
        return unlocked([&] { return node_order(list.values()); });
      },
      nb::arg("nodes"),
      "Members grouped by node, nodes in the order of their first member. nodes[w]: a number for the node of member w.",
      nb::sig("def node_order(nodes: object) -> RankMap"));
  module.def("placed_order", &placed_order, nb::arg("cells"), nb::arg("processes"),
             nb::call_guard<nb::gil_scoped_release>(),
             "The order in which a grid goes to processes: the i-th rank of the grid that `cells` visits belongs to "
             "the i-th of `processes`; member c takes rank c of the grid. With `cells` in tiles and `processes` by "
             "node, nodes get tiles.");
  module.def(
      "split_keys", [](const RankMap& ranks) { return to_array(unlocked([&] { return keys_of(ranks); })); },
      nb::arg("ranks"),
      "For each rank, the key for a split that numbers ranks in the order of this map. One key alone is ranks.rank(w).",
      nb::sig("def split_keys(ranks: RankMap) -> numpy.ndarray"));
}

}  // namespace longshore::python

#include <nanobind/stl/pair.h>

#include "longshore/ranks/rank_module.hpp"
#include "rank_arguments.hpp"
#include "states.hpp"

namespace longshore::python {

nb::object to_array(std::vector<Index> values, const nb::object& like) {
  auto* kept = new std::vector<Index>(std::move(values));
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<Index>*>(p); });
  const std::size_t shape[1] = {kept->size()};
  auto array = nb::cast(nb::ndarray<nb::numpy, Index>(kept->data(), 1, shape, owner));
  return like.is_valid() ? array.attr("reshape")(like.attr("shape")) : array;
}

Integers integers(const nb::handle& given, const char* what) {
  const auto numpy = nb::module_::import_("numpy");
  auto array = numpy.attr("asarray")(given);
  const nb::object dtype = array.attr("dtype");
  const auto kind = nb::cast<std::string>(dtype.attr("kind"));
  if (nb::cast<std::size_t>(array.attr("size")) > 0 && kind != "i" && kind != "u")
    throw Error(ErrorKind::argument, std::string(what) + " are integers, not " + nb::str(dtype).c_str());
  if (kind == "u" && nb::cast<int>(dtype.attr("itemsize")) == 8 && nb::cast<std::size_t>(array.attr("size")) > 0 &&
      nb::cast<std::uint64_t>(array.attr("max")()) > std::uint64_t(INT64_MAX))
    throw Error(ErrorKind::overflow, std::string(what) + " are to fit in 64 signed bits");
  auto flat = numpy.attr("ascontiguousarray")(array, numpy.attr("int64")).attr("reshape")(-1);
  return {array, nb::cast<Array>(flat)};
}

namespace {

constexpr const char* map_doc =
    R"(Which world rank a group member is: distinct ranks of a world of up to 2^40, in an order.

``RankMap(members, world)`` takes a range or anything that NumPy makes integers of. The representation is the one that
suits the members: `explain` shows what each would cost. `strategy` is "time", "space" or "hybrid", which weighs both
with `alpha`; `module` names one representation instead, `modules` those to choose from: "standard", "thesis", "all", or
names with commas between them. `lookup` is an index for `rank` on lists: "none", "lazy", "hash" or "shortcuts". A
value: immutable, picklable, cheap to copy; maps made of other maps share what they have in common. Not collective.

>>> rows = RankMap(range(0, 1048576, 64), 1048576)
>>> rows[5], rows.rank(320), rows.rank(321), rows.bytes
(320, 5, None, 56))";

/// Integers, and NumPy's scalars and arrays of no dimension.
bool is_scalar(const nb::handle& given) {
  return PyIndex_Check(given.ptr()) && (!nb::hasattr(given, "ndim") || nb::cast<int>(given.attr("ndim")) == 0);
}

/// A scalar as a rank; what does not fit in 64 bits is nobody's.
Index rank_of(const nb::handle& given) {
  const nb::object number = nb::steal(PyNumber_Index(given.ptr()));
  if (!number.is_valid()) throw nb::python_error();
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  return overflow != 0 ? nobody : Index(value);
}

LookupKind lookup_kind(const std::string& name) {
  if (name == "none") return LookupKind::none;
  if (name == "lazy") return LookupKind::lazy;
  if (name == "hash") return LookupKind::hash;
  if (name == "shortcuts") return LookupKind::shortcuts;
  throw Error(ErrorKind::argument, "an index is \"none\", \"lazy\", \"hash\" or \"shortcuts\", not \"" + name + "\"");
}

const char* lookup_name(LookupKind kind) {
  switch (kind) {
    case LookupKind::none: return "none";
    case LookupKind::lazy: return "lazy";
    case LookupKind::hash: return "hash";
    default: return "shortcuts";
  }
}

/// A portfolio by its name, or modules with commas between them.
Modules portfolio(const std::string& names) {
  if (names == "standard") return standard_modules();
  if (names == "thesis") return thesis_modules();
  if (names == "all") return all_modules();
  Modules list;
  for (std::size_t first = 0, last; first <= names.size(); first = last + 1) {
    last = std::min(names.find(',', first), names.size());
    list.push_back(&rank_module(std::string_view(names).substr(first, last - first)));
  }
  return list;
}

Strategy strategy_of(const std::string& name, double alpha, const std::optional<std::string>& module,
                     const std::string& modules, const std::string& lookup) {
  Strategy strategy;
  if (name == "time")
    strategy = Strategy::time();
  else if (name == "space")
    strategy = Strategy::space();
  else if (name == "hybrid")
    strategy = Strategy::hybrid(alpha);
  else
    throw Error(ErrorKind::argument, "a strategy is \"time\", \"space\" or \"hybrid\", not \"" + name + "\"");
  strategy.modules = module ? Modules{&rank_module(*module)} : portfolio(modules);
  strategy.lookup = lookup_kind(lookup);
  return strategy;
}

/// Members as runs where they are a range, else as an array.
template <class OfRuns, class OfList>
auto with_members(const nb::handle& members, OfRuns of_runs, OfList of_list) {
  if (PyRange_Check(members.ptr())) {
    const auto n = nb::cast<Index>(members.attr("__len__")());
    const AffineRun run{n > 0 ? nb::cast<Index>(members.attr("start")) : 0, nb::cast<Index>(members.attr("step")), n};
    return unlocked([&] { return of_runs(std::span<const AffineRun>(&run, n > 0 ? 1 : 0)); });
  }
  const auto list = integers(members, "ranks");
  return unlocked([&] { return of_list(list.values()); });
}

nb::object row_of(const Explanation::Row& row) {
  nb::dict out;
  out["module"] = row.module;
  out["possible"] = row.estimate.possible;
  out["bytes"] = row.estimate.possible ? nb::cast(row.estimate.bytes) : nb::none();
  out["select_ns"] = row.estimate.possible ? nb::cast(row.estimate.select_ns) : nb::none();
  out["rank_ns"] = row.estimate.possible && row.estimate.rank_ns >= 0 ? nb::cast(row.estimate.rank_ns) : nb::none();
  out["score"] = row.estimate.possible ? nb::cast(row.score) : nb::none();
  out["note"] = row.estimate.note;
  out["chosen"] = row.chosen;
  return out;
}

/// All that tells an explanation.
nb::tuple state_of(const Explanation& e) {
  nb::list rows;
  for (const auto& [module, estimate, score, chosen] : e.rows)
    rows.append(nb::make_tuple(module, estimate.possible, estimate.bytes, estimate.select_ns, estimate.rank_ns,
                               estimate.note, score, chosen));
  return nb::make_tuple(e.size, e.world, e.structure, rows);
}

Explanation explanation_of(const State& state) {
  Explanation told{state.at<Index>(0), state.at<Index>(1), state.at<std::string>(2), {}};
  for (const auto& each : state.at<std::vector<nb::tuple>>(3)) {
    const State row(nb::type<Explanation>(), each, 8);
    told.rows.push_back(
        {row.at<std::string>(0),
         {row.at<bool>(1), row.at<double>(2), row.at<double>(3), row.at<double>(4), row.at<std::string>(5)},
         row.at<double>(6),
         row.at<bool>(7)});
  }
  return told;
}

void bind_explanation(nb::module_& module) {
  nb::class_<Explanation> explanations(module, "RankExplanation",
                                       "What each representation of a map would cost, and which one a strategy takes. "
                                       "str() is a table.");
  def_state(
      explanations, 4, [](const Explanation& e) { return state_of(e); }, explanation_of)
      .def_ro("size", &Explanation::size, "Members.")
      .def_ro("world", &Explanation::world, "Ranks of the world.")
      .def_ro("structure", &Explanation::structure, "What was found, in words.")
      .def_prop_ro(
          "rows",
          [](const Explanation& e) {
            nb::list rows;
            for (const auto& row : e.rows) rows.append(row_of(row));
            return rows;
          },
          "A dict for each module, the best first: module, possible, bytes, select_ns, rank_ns (None: an index is "
          "needed), score, note, chosen. Numbers are estimates.",
          nb::sig("def rows(self) -> list[dict[str, object]]"))
      .def("__str__", &Explanation::to_string)
      .def("__repr__", &Explanation::to_string);
}

Index position_of(const RankMap& map, Index i) { return i < 0 ? i + map.size() : i; }

nb::object world_rank_in(const RankMap& map, const nb::handle& positions) {
  if (is_scalar(positions)) {
    Index position = 0;
    if (!nb::try_cast(positions, position))
      throw Error(ErrorKind::argument, "position " + std::string(nb::str(positions).c_str()) + " is outside [0, " +
                                           std::to_string(map.size()) + ")");
    return nb::int_(map.world_rank(position));
  }
  const auto list = integers(positions, "positions");
  std::vector<Index> out(list.values().size());
  unlocked([&] { map.world_ranks(list.values(), out); });
  return to_array(std::move(out), list.array);
}

nb::object rank_in(const RankMap& map, const nb::handle& ranks) {
  if (is_scalar(ranks)) {
    const Index found = map.rank(rank_of(ranks));
    return found == nobody ? nb::none() : nb::object(nb::int_(found));
  }
  const auto list = integers(ranks, "ranks");
  std::vector<Index> out(list.values().size());
  unlocked([&] { map.ranks(list.values(), out); });
  return to_array(std::move(out), list.array);
}

void bind_questions(nb::class_<RankMap>& type) {
  type.def("__len__", &RankMap::size)
      .def_prop_ro("size", &RankMap::size, "Number of members; `len` for maps that are not too large for Python's len.")
      .def_prop_ro("world", &RankMap::world, "Ranks of the world.")
      .def_prop_ro("ascending", &RankMap::ascending, "Whether ranks ascend.")
      .def_prop_ro("bytes", &RankMap::bytes, "What is kept, with all indexes.")
      .def_prop_ro(
          "representation", [](const RankMap& map) { return std::string(map.representation()); },
          "\"nest\", \"elias-fano\", ...")
      .def_prop_ro(
          "lookup", [](const RankMap& map) { return lookup_name(map.lookup()); }, "The index for `rank`.")
      .def(
          "world_rank", [](const RankMap& map, const nb::int_& position) { return world_rank_in(map, position); },
          nb::arg("positions"), "SELECT: the world rank at a position.",
          nb::sig("def world_rank(self, positions: int | numpy.integer) -> int"))
      .def("world_rank", &world_rank_in, nb::arg("positions"),  // NumPy's scalars come here, too
           "SELECT of an array of positions.", nb::sig("def world_rank(self, positions: object) -> numpy.ndarray"))
      .def(
          "rank", [](const RankMap& map, const nb::int_& rank) { return rank_in(map, rank); }, nb::arg("ranks"),
          "RANK: the position of a world rank, or None.",
          nb::sig("def rank(self, ranks: int | numpy.integer) -> int | None"))
      .def("rank", &rank_in, nb::arg("ranks"),  // NumPy's scalars come here, too
           "RANK of an array: positions, -1 for those who are no members.",
           nb::sig("def rank(self, ranks: object) -> numpy.ndarray"))
      .def(
          "__getitem__",
          [](const RankMap& map, Index i) {
            const Index at = position_of(map, i);
            if (at < 0 || at >= map.size())
              throw nb::index_error(
                  ("position " + std::to_string(i) + " is outside a map of " + std::to_string(map.size())).c_str());
            return map.select(at);
          },
          nb::arg("position"), "The world rank at a position.",
          nb::sig("def __getitem__(self, position: int, /) -> int"))
      .def(
          "__getitem__",
          [](const RankMap& map, const nb::slice& slice) {
            Py_ssize_t first, last, step;
            if (PySlice_Unpack(slice.ptr(), &first, &last, &step) < 0) throw nb::python_error();
            PySlice_AdjustIndices(map.size(), &first, &last, step);
            return unlocked([&] { return map.slice(first, last, step); });
          },
          nb::arg("position"), "A map of part of the members.",
          nb::sig("def __getitem__(self, position: slice, /) -> RankMap"))
      .def(
          "__iter__", [](nb::handle map) { return nb::steal(PySeqIter_New(map.ptr())); },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[int]"))
      .def(
          "__contains__",
          [](const RankMap& map, const nb::handle& w) { return is_scalar(w) && map.contains(rank_of(w)); },
          nb::arg("rank"), nb::sig("def __contains__(self, rank: object, /) -> bool"))
      .def(
          "to_array", [](const RankMap& map) { return to_array(unlocked([&] { return map.to_vector(); })); },
          "All members as an array of int64.", nb::sig("def to_array(self) -> numpy.ndarray"));
}

}  // namespace

void bind_ranks(nb::module_& module) {
  bind_explanation(module);
  bind_rank_orders(module);
  const auto strategy = nb::arg("strategy") = "hybrid";
  const auto lookup = nb::arg("lookup") = "none";
  const auto modules = nb::arg("modules") = "standard";
  const auto alpha = nb::arg("alpha") = 0.25;
  const auto only = nb::arg("module") = nb::none();

  nb::class_<RankMap> type(module, "RankMap", map_doc);
  type.def(
          "__init__",
          [](RankMap* self, const nb::handle& members, Index world, const std::string& goal, double weight,
             const std::optional<std::string>& one, const std::string& list, const std::string& index) {
            const auto how = strategy_of(goal, weight, one, list, index);
            new (self) RankMap(with_members(
                members, [&](std::span<const AffineRun> runs) { return RankMap::of_runs(runs, world, how); },
                [&](std::span<const Index> ranks) { return RankMap::of(ranks, world, how); }));
          },
          nb::arg("members"), nb::arg("world"), nb::kw_only(), strategy, alpha, only, modules, lookup,
          nb::sig("def __init__(self, members: object, world: int, *, strategy: str = 'hybrid', alpha: float = 0.25, "
                  "module: str | None = None, modules: str = 'standard', lookup: str = 'none') -> None"))
      .def_static("whole", &RankMap::whole, nb::arg("world"), "Everybody.")
      .def_static(
          "nest",
          [](Index base, const std::vector<std::pair<Index, Index>>& axes, Index world) {
            std::vector<AffineNest::Axis> list;
            for (const auto& [count, stride] : axes) list.push_back({count, stride});
            return RankMap::of_nest(AffineNest(base, list), world);
          },
          nb::arg("base"), nb::arg("axes"), nb::arg("world"),
          "Nested loops: base + sum of index * stride, for axes (count, stride), the first the fastest.")
      .def_static("child", &RankMap::child, nb::arg("parent"), nb::arg("positions"),
                  "Member i is the parent's member at positions[i]; the parent's representation is shared.")
      .def(
          "with_lookup",
          [](const RankMap& map, const std::string& kind) {
            return unlocked([&] { return map.with_lookup(lookup_kind(kind)); });
          },
          nb::arg("kind"), "The same map with another index for `rank`, shared otherwise.")
      .def(
          "rebuilt",
          [](const RankMap& map, const std::string& goal, double weight, const std::optional<std::string>& one,
             const std::string& list, const std::string& index) {
            const auto how = strategy_of(goal, weight, one, list, index);
            return unlocked([&] { return rebuilt(map, how); });
          },
          nb::kw_only(), strategy, alpha, only, modules, lookup,
          "The same map in the representation that another strategy takes.")
      .def(
          "explain",
          [](const RankMap& map, const std::string& goal, double weight, const std::string& list) {
            const auto how = strategy_of(goal, weight, std::nullopt, list, "none");
            return unlocked([&] { return explain(map, how); });
          },
          nb::kw_only(), strategy, alpha, modules,
          "What each representation would cost, and which one a strategy takes.")
      .def(
          "to_bytes",
          [](const RankMap& map) {
            const auto bytes = map.to_bytes();
            return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
          },
          "The map as bytes, with version and checksum.")
      .def_static(
          "from_bytes",
          [](const nb::bytes& bytes, std::optional<Index> most) {
            return RankMap::from_bytes({reinterpret_cast<const std::byte*>(bytes.c_str()), bytes.size()},
                                       most.value_or(INT64_MAX));
          },
          nb::arg("bytes"), nb::arg("most_members") = nb::none(),
          "What to_bytes() wrote. Raises ArgumentError saying what is wrong; bytes from strangers are given a bound of "
          "members.")
      .def(
          "validate",
          [](const RankMap& map) -> std::optional<std::string> {
            std::string reason;
            if (map.validate(reason)) return std::nullopt;
            return reason;
          },
          "None, or why the map does not hold together.")
      .def(
          "__eq__",
          [](const RankMap& a, const nb::object& b) {
            return nb::isinstance<RankMap>(b) && a == nb::cast<const RankMap&>(b);
          },
          nb::arg("other"), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__",
           [](const RankMap& map) {
             const Index n = map.size();
             return nb::hash(n == 0 ? nb::make_tuple(0)
                                    : nb::make_tuple(n, map.select(0), map.select(n / 2), map.select(n - 1)));
           })
      .def("__repr__",
           [](const RankMap& map) {
             return "<longshore.RankMap " + std::string(map.representation()) + ": " + std::to_string(map.size()) +
                    " of " + std::to_string(map.world()) + " ranks in " + std::to_string(map.bytes()) + " bytes>";
           })
      .def("__getstate__", [](nb::handle self) { return self.attr("to_bytes")(); })
      .def("__setstate__", [](RankMap& self, const nb::bytes& bytes) {
        new (&self) RankMap(RankMap::from_bytes({reinterpret_cast<const std::byte*>(bytes.c_str()), bytes.size()}));
      });
  bind_questions(type);
  bind_rank_algebra(type);

  module.def(
      "explain_ranks",
      [](const nb::handle& members, Index world, const std::string& goal, double weight, const std::string& list) {
        const auto how = strategy_of(goal, weight, std::nullopt, list, "none");
        return with_members(
            members, [&](std::span<const AffineRun> runs) { return explain(Members(runs), world, how); },
            [&](std::span<const Index> ranks) { return explain(Members(ranks), world, how); });
      },
      nb::arg("members"), nb::arg("world"), nb::kw_only(), strategy, alpha, modules,
      "What each representation of these members would cost; the map is not made.",
      nb::sig("def explain_ranks(members: object, world: int, *, strategy: str = 'hybrid', alpha: float = 0.25, "
              "modules: str = 'standard') -> RankExplanation"));
  module.def(
      "rank_modules",
      [](const std::string& name) {
        std::vector<std::string> names;
        for (const auto* m : portfolio(name)) names.emplace_back(m->name());
        return names;
      },
      nb::arg("modules") = "all",
      "The names of the representations that there are: \"standard\", \"thesis\" or \"all\".");
}

}  // namespace longshore::python

#include "longshore/model/predict.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>

#include "longshore/model/placement.hpp"
#include "movers/helpers.hpp"
#include "points.hpp"
#include "rooms.hpp"
#include "states.hpp"

namespace longshore::python {

namespace {

CopyLoops loops_of(const std::string& name) {
  if (name == "rows") return CopyLoops::rows;
  if (name == "tiles") return CopyLoops::tiles;
  if (name == "joint") return CopyLoops::joint;
  if (name == "aliased") return CopyLoops::aliased;
  if (name == "sparse") return CopyLoops::sparse;
  throw Error(ErrorKind::argument,
              "loops are \"" + name + "\"; they are \"rows\", \"tiles\", \"joint\", \"aliased\" or \"sparse\"");
}

using Samples = std::vector<std::pair<Index, double>>;
using Copies = std::vector<std::tuple<Index, std::string, std::optional<Index>, int, bool, ThroughputTable>>;
using Exchanges = std::vector<std::tuple<std::string, std::string, Samples, double>>;

std::vector<Traffic> everybodys(const MotionPlan& plan, std::optional<Index> rank) {
  std::vector<Traffic> all;
  if (rank) {
    all.push_back(traffic(plan, *rank));
    return all;
  }
  for (Index r = 0; r < plan.world_size(); ++r) all.push_back(traffic(plan, r));
  return all;
}

std::vector<Traffic> everybodys(const BlockPlan& plan, std::optional<Index> rank, const GridFormat& format) {
  std::vector<Traffic> all;
  if (rank || plan.rank()) {
    all.push_back(traffic(plan, rank ? *rank : *plan.rank(), format));
    return all;
  }
  for (Index r = 0; r < plan.world_size(); ++r) all.push_back(traffic(plan, r, format));
  return all;
}

/// All that ranks in one process move is between arrays of that process, and little of it is one thread's.
Prediction predict_ranks(const std::vector<Traffic>& ranks, const MachineProfile& profile, Job job) {
  if (job.threads == 0) return predict(ranks, profile, job);
  const auto all = in_one_process(ranks);
  if (Traffic::bytes(all.local) < least_threaded_bytes) job.threads = 1;
  return predict(all, profile, job);
}

void check_ways(const Prediction& p) {
  if (p.ways.empty()) throw Error(ErrorKind::argument, "the state of a Prediction has no way: there is one at least");
}

}  // namespace

void bind_predict(nb::module_& module) {
  nb::class_<MachineProfile>(module, "MachineProfile")
      .def(
          "__init__",
          [](MachineProfile* self, std::string machine, bool coarse, Copies copies, Exchanges exchanges,
             const std::array<double, 6>& calls) {
            std::vector<CopyRates> rates;
            for (auto& [word, loops, working, at_once, another, table] : copies)
              rates.push_back({word,
                               loops_of(loops),
                               {working.value_or(CopyRates::beyond_caches), at_once, another},
                               std::move(table)});
            std::vector<ExchangeTimes> times;
            for (auto& [way, pair, samples, each] : exchanges) {
              times.push_back({way, pair, {}, each});
              for (const auto& [bytes, seconds] : samples) times.back().samples.push_back({bytes, seconds});
            }
            new (self) MachineProfile(std::move(machine), coarse, std::move(rates), std::move(times),
                                      {calls[0], calls[1], calls[2], calls[3], calls[4], calls[5]});
          },
          nb::arg("machine"), nb::arg("coarse"), nb::arg("copies"), nb::arg("exchanges"), nb::arg("calls"),
          nb::sig("def __init__(self, machine: str, coarse: bool, copies: Sequence[tuple[int, str, int | None, int, "
                  "bool, ThroughputTable]], exchanges: Sequence[tuple[str, str, Sequence[tuple[int, float]], float]], "
                  "calls: Sequence[float]) -> None"))
      .def_prop_ro(
          "machine", [](const MachineProfile& p) { return p.machine(); }, "Its name")
      .def_prop_ro("coarse", &MachineProfile::coarse, "Whether nothing was measured on this machine");

  def_state(nb::class_<WayCost>(module, "WayCost", "One way of carrying out a plan, and what it takes"), anything,
            &WayCost::way, &WayCost::expression, &WayCost::expression_megabytes_per_second, &WayCost::bottleneck,
            &WayCost::seconds, &WayCost::bytes, &WayCost::messages, &WayCost::extra_bytes)
      .def_ro("way", &WayCost::way,
              "\"threads\"; within a node \"direct\", \"ring\", \"messages\" or \"collective\"; for loops \"gets\", "
              "\"strips\"")
      .def_ro("expression", &WayCost::expression, "Of the transfers that most bytes go in, by the copy-transfer model")
      .def_ro("expression_megabytes_per_second", &WayCost::expression_megabytes_per_second, "Of its data")
      .def_ro("bottleneck", &WayCost::bottleneck, "The basic transfer of it that takes the most time")
      .def_ro("seconds", &WayCost::seconds, "From start to end, of the slowest rank")
      .def_ro("bytes", &WayCost::bytes, "That this rank sends to others")
      .def_ro("messages", &WayCost::messages, "Others that this rank sends to")
      .def_ro("extra_bytes", &WayCost::extra_bytes, "Of buffers beyond the arrays, without rings")
      .def("__repr__", [](const WayCost& w) {
        return nb::str("WayCost({}: {:.3g} s, {}, {:.0f} MB/s, most of it {})")
            .format(w.way, w.seconds, w.expression.to_string(), w.expression_megabytes_per_second, w.bottleneck);
      });
  def_state(
      nb::class_<Prediction>(module, "Prediction", "What a plan will take, in each way in which it can be carried out"),
      check_ways, &Prediction::rank, &Prediction::coarse, &Prediction::ways)
      .def_ro("rank", &Prediction::rank, "The rank that takes longest of those that were looked at")
      .def_ro("coarse", &Prediction::coarse, "From a profile that was not measured on this machine")
      .def_prop_ro(
          "ways", [](const Prediction& p) { return p.ways; }, "The fastest first")
      .def_prop_ro(
          "best", [](const Prediction& p) { return p.ways.front(); }, "The fastest way")
      .def("__repr__", [](const Prediction& p) {
        return nb::str("Prediction(rank {}{}: {})").format(p.rank, p.coarse ? ", coarse" : "", nb::cast(p.ways));
      });
  module.def(
      "predict_motions",
      [](const MotionPlan& plan, const MachineProfile& profile, std::optional<Index> rank, int threads,
         Index ranks_per_node, int busy, std::optional<double> work, std::optional<LogGP> loggp) {
        return predict_ranks(everybodys(plan, rank), profile, {threads, ranks_per_node, busy, work, loggp});
      },
      nb::arg("plan"), nb::arg("profile"), nb::arg("rank") = nb::none(), nb::arg("threads") = 0,
      nb::arg("ranks_per_node") = 0, nb::arg("busy") = 0, nb::arg("work") = nb::none(), nb::arg("loggp") = nb::none(),
      "What `model.predict` does for a plan between layouts.");
  module.def(
      "predict_blocks",
      [](const BlockPlan& plan, const MachineProfile& profile, Index itemsize, nb::handle ghost,
         const std::string& order, std::optional<Index> rank, int threads, Index ranks_per_node, int busy,
         std::optional<double> work, std::optional<LogGP> loggp) {
        const GridFormat format{itemsize, to_widths(ghost, plan.source().dims()), to_order(order)};
        return predict_ranks(everybodys(plan, rank, format), profile, {threads, ranks_per_node, busy, work, loggp});
      },
      nb::arg("plan"), nb::arg("profile"), nb::arg("itemsize"), nb::arg("ghost"), nb::arg("order"),
      nb::arg("rank") = nb::none(), nb::arg("threads") = 0, nb::arg("ranks_per_node") = 0, nb::arg("busy") = 0,
      nb::arg("work") = nb::none(), nb::arg("loggp") = nb::none(),
      "What `model.predict` does for a plan between blocks.");
  module.def(
      "node_volume",
      [](const MotionPlan& plan, Index node, Index ranks_per_node) {
        const auto v = node_volume(plan, node, ranks_per_node);
        nb::dict told;
        told["bytes_out"] = v.bytes_out, told["bytes_in"] = v.bytes_in;
        told["messages_out"] = v.messages_out, told["messages_in"] = v.messages_in;
        return told;
      },
      nb::arg("plan"), nb::arg("node"), nb::arg("ranks_per_node"),
      "What leaves and enters one node of so many consecutive ranks: bytes_out, bytes_in, messages_out, messages_in. "
      "Raises ArgumentError where there is no such node.",
      nb::sig("def node_volume(plan: MotionPlan, node: int, ranks_per_node: int) -> dict[str, int]"));
  module.def(
      "placement_costs",
      [](const MotionPlan& plan, const std::vector<Index>& ranks, const MachineProfile* profile, Index ranks_per_node) {
        const auto costs =
            profile ? placement_nanoseconds(plan, ranks, *profile, ranks_per_node) : placement_bytes(plan, ranks);
        return to_numpy(costs, {std::size_t(plan.destination().processes()), ranks.size()});
      },
      nb::arg("plan"), nb::arg("ranks"), nb::arg("profile") = nb::none(), nb::arg("ranks_per_node") = 0,
      "What is sent to each process of the destination were it on each of these ranks: bytes, or nanoseconds of "
      "messages "
      "with a profile.",
      nb::sig("def placement_costs(plan: MotionPlan, ranks: Sequence[int], profile: MachineProfile | None = None, "
              "ranks_per_node: int = 0) -> numpy.typing.NDArray"));
}

}  // namespace longshore::python

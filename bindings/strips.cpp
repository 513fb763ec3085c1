#include <nanobind/stl/pair.h>
#include <nanobind/stl/variant.h>

#include "longshore/model/simulate.hpp"
#include "rooms.hpp"
#include "states.hpp"

namespace longshore::python {

namespace {

/// A schedule, or its text.
using ScheduleOrText = std::variant<std::string, StripSchedule>;

StripSchedule to_schedule(const ScheduleOrText& given) {
  const auto* text = std::get_if<std::string>(&given);
  return text ? StripSchedule::parse(*text) : std::get<StripSchedule>(given);
}

Link to_link(const std::string& name) {
  if (name == "independent") return Link::independent;
  if (name == "shared") return Link::shared;
  throw Error(ErrorKind::argument, "link is \"" + name + "\"; it is \"independent\" or \"shared\"");
}

Pattern to_pattern(const std::string& name) {
  if (name == "one-to-one") return Pattern::one_to_one;
  if (name == "all-to-one") return Pattern::all_to_one;
  if (name == "all-to-all") return Pattern::all_to_all;
  throw Error(ErrorKind::argument,
              "pattern is \"" + name + "\"; it is \"one-to-one\", \"all-to-one\" or \"all-to-all\"");
}

struct StripIterator {
  Strips::Iterator next;
};

template <class T>
bool same_value(const T& a, nb::object b) {
  return nb::isinstance<T>(b) && a == nb::cast<const T&>(b);
}

const nb::sig value_sig{"def __eq__(self, other: object, /) -> bool"};

void bind_schedules(nb::module_& module) {
  nb::class_<StripIterator>(module, "StripIterator", "Strips one after the other, as (first, last) of [first, last)")
      .def(
          "__iter__", [](nb::object self) { return self; }, nb::sig("def __iter__(self) -> StripIterator"))
      .def("__next__", [](StripIterator& self) {
        if (self.next == std::default_sentinel) throw nb::stop_iteration();
        const auto strip = *self.next++;
        return std::pair(strip.first, strip.last);
      });

  nb::class_<StripSchedule>(
      module, "StripSchedule",
      "How a loop over remote elements gets them (Iancu, Husbands & Chen, \"Message strip mining heuristics for high "
      "speed networks\"), from text:\n\"small\", element by element; \"vectorized\", all in one transfer; \"fixed(S, "
      "U)\", in strips of S elements; \"variable(S0, f, U)\", in strips that grow,\nS_i = (1 + f) S_{i-1}, rounded "
      "down. "
      "U, 1 unless told, is the unroll depth: so many strips are under way while another one is worked on.\nA value. "
      "Raises ArgumentError that says at which character what is expected.\n\n"
      ">>> StripSchedule(\"fixed(4096, 2)\") == StripSchedule.fixed(4096, 2)\nTrue\n"
      ">>> [last - first for first, last in StripSchedule.variable(4, 0.5).strips(40)]\n[4, 6, 9, 13, 8]")
      .def(
          "__init__",
          [](StripSchedule* self, const std::string& text) { new (self) StripSchedule(StripSchedule::parse(text)); },
          nb::arg("text"))
      .def_static("small", &StripSchedule::small, "Element by element, each waited for: the loop without optimisation.")
      .def_static("vectorized", &StripSchedule::vectorized, "All in one transfer, which is waited for.")
      .def_static("fixed", &StripSchedule::fixed, nb::arg("size"), nb::arg("depth") = 1,
                  "Strips of `size` elements. Raises ArgumentError where it is less than 1, or `depth` is not in [1, "
                  "65536].")
      .def_static("variable", &StripSchedule::variable, nb::arg("first_size"), nb::arg("growth"), nb::arg("depth") = 1,
                  "Strips of which each has 1 + `growth` times the elements of the one before. Raises ArgumentError as "
                  "`fixed` does, and for a growth that is neither 0 nor in [1e-6, 1e6].")
      .def_prop_ro(
          "kind", [](const StripSchedule& s) { return s.to_string().substr(0, s.to_string().find('(')); },
          "\"small\", \"vectorized\", \"fixed\" or \"variable\"")
      .def_prop_ro("size", &StripSchedule::size, "Elements of the first strip, S or S0")
      .def_prop_ro("growth", &StripSchedule::growth, "f; 0 where strips do not grow")
      .def_prop_ro("depth", &StripSchedule::depth, "U; 0 of small and vectorized, which never have two strips")
      .def(
          "strips", [](const StripSchedule& s, Index elements) { return StripIterator{s.strips(elements).begin()}; },
          nb::arg("elements"), "The strips of so many elements, as pairs (first, last); the last one is what is left.")
      .def("count", &StripSchedule::count, nb::arg("elements"), "How many strips so many elements come in.")
      .def("buffer", &StripSchedule::buffer, nb::arg("elements"), nb::arg("strips"),
           "Elements that the largest `strips` strips which follow each other have together.")
      .def("__eq__", &same_value<StripSchedule>, nb::arg("other"), value_sig)
      .def("__hash__", [](const StripSchedule& s) { return nb::hash(nb::str(s.to_string().c_str())); })
      .def("__str__", &StripSchedule::to_string)
      .def("__repr__", [](const StripSchedule& s) { return "StripSchedule('" + s.to_string() + "')"; });
}

void bind_costs(nb::module_& module) {
  nb::class_<LogGP>(module, "LogGP",
                    "What messages take between two ranks: `L`, the latency, `o_s` and `o_r`, the overheads of the "
                    "sender's and the receiver's processor, and `g`, the gap between two messages of a processor, in "
                    "seconds; `G`, of each byte, in seconds a byte. A value.")
      .def(
          "__init__",
          [](LogGP* self, double L, double o_s, double o_r, double g, double G) {
            const LogGP given{L, o_s, o_r, g, G};
            check(given);
            new (self) LogGP(given);
          },
          nb::kw_only(), nb::arg("L") = 0, nb::arg("o_s") = 0, nb::arg("o_r") = 0, nb::arg("g") = 0, nb::arg("G") = 0)
      .def_ro("L", &LogGP::L, "From one network interface to the other, in seconds")
      .def_ro("o_s", &LogGP::o_s, "Of the sender's processor, in seconds")
      .def_ro("o_r", &LogGP::o_r, "Of the receiver's processor, in seconds")
      .def_ro("g", &LogGP::g, "That messages of one processor are apart at least, in seconds")
      .def_ro("G", &LogGP::G, "Of each byte, in seconds")
      .def("__eq__", &same_value<LogGP>, nb::arg("other"), value_sig)
      .def("__repr__", [](nb::object p) {
        return nb::str("LogGP(L={!r}, o_s={!r}, o_r={!r}, g={!r}, G={!r})")
            .format(p.attr("L"), p.attr("o_s"), p.attr("o_r"), p.attr("g"), p.attr("G"));
      });

  def_state(nb::class_<StripCost>(module, "StripCost", "What a loop over remote strips takes, in seconds"), anything,
            &StripCost::strips, &StripCost::issuing, &StripCost::waiting, &StripCost::computing)
      .def_ro("strips", &StripCost::strips, "How many there are")
      .def_ro("issuing", &StripCost::issuing, "The sum of issue(S_i)")
      .def_ro("waiting", &StripCost::waiting, "The sum of W(S_i)")
      .def_ro("computing", &StripCost::computing, "With what loading takes")
      .def_prop_ro("communication", &StripCost::communication, "issuing + waiting")
      .def_prop_ro("seconds", &StripCost::seconds, "All of it")
      .def("__repr__", [](const StripCost& c) {
        return nb::str("StripCost({:.3g} s in {} strips: issuing {:.3g}, waiting {:.3g}, computing {:.3g})")
            .format(c.seconds(), c.strips, c.issuing, c.waiting, c.computing);
      });

  const auto schedule = nb::arg("schedule"), elements = nb::arg("elements"), loggp = nb::arg("loggp");
  const auto itemsize = nb::arg("itemsize") = 8;
  const auto compute = nb::arg("compute") = 0.0, memory = nb::arg("memory") = 0.0;
  const auto link = nb::arg("link") = "independent";
  const auto rolling = nb::arg("rolling") = false;
  module.def(
      "strip_cost",
      [](const ScheduleOrText& given, Index n, const LogGP& p, Index bytes, double k, double load, const std::string& l,
         bool roll) {
        return strip_cost(to_schedule(given), {n, bytes, k, load, to_link(l), roll}, p);
      },
      schedule, elements, loggp, nb::kw_only(), itemsize, compute, memory, link, rolling,
      "What a loop over so many remote elements takes by LogGP: the recurrence of Iancu, Husbands & Chen (section 3), "
      "for any unroll depth.\n\n"
      "A get of S bytes takes o = o_s + o_r to issue, at least g after the last one, and has come 2 L + G S after "
      "that. "
      "Each strip is waited\nfor, W(S_i) >= 0, and takes (`compute` + `memory`) S to work on: K, what the loop does "
      "with "
      "a byte, and what loading a byte takes,\nin seconds a byte. As in the paper's figures 4 and 5, U strips are "
      "issued "
      "and then U are worked on; with `rolling`, one before each one.\nOn an \"independent\" link transfers that are "
      "under way together do not slow each other down, which is what the paper's equations\nsay; on a \"shared\" one "
      "they come one after the other. Takes as long as there are strips, where they grow; any number of fixed ones "
      "is\nfound from those that repeat. Raises ArgumentError for negative parameters.\n\n"
      ">>> net = LogGP(o_s=4e-6, o_r=2e-6, g=5e-6, G=6e-9)\n"
      ">>> for schedule in \"small\", \"vectorized\", \"fixed(1024)\", \"fixed(8192, 2)\", \"variable(128, 0.45)\":\n"
      "...     print(f\"{schedule:20} {strip_cost(schedule, 2**17, net, compute=4e-9, link='shared').seconds:.6f}\")\n"
      "small                0.796918\nvectorized           0.010492\nfixed(1024)          0.006330\n"
      "fixed(8192, 2)       0.006560\nvariable(128, 0.45)  0.007027");
  module.def(
      "strip_waits",
      [](const ScheduleOrText& given, Index n, const LogGP& p, Index most, Index bytes, double k, double load,
         const std::string& l, bool roll) {
        return strip_waits(to_schedule(given), {n, bytes, k, load, to_link(l), roll}, p, most);
      },
      schedule, elements, loggp, nb::arg("most") = 1000, nb::kw_only(), itemsize, compute, memory, link, rolling,
      "W(S_i), what the first strips are waited for, in seconds; at most so many of them. Of fixed strips it swings "
      "where less is computed than transferred (section 3.1):\n\n"
      ">>> [round(1e6 * w) for w in strip_waits(\"fixed(1000)\", 9000, LogGP(o_s=1e-6, G=6e-9), compute=2e-9)]\n"
      "[47, 0, 31, 0, 31, 0, 31, 0, 32]");
  module.def("smallest_strip", &smallest_strip, loggp,
             "Bytes of the smallest strip that may be worth sending, max(o, g) / G (section 4.3).");
  module.def(
      "strip_steps",
      [](const ScheduleOrText& given, Index n, const std::string& pattern, Index ranks, Index bytes, double k,
         double load, bool roll) {
        return strip_steps(to_schedule(given), {n, bytes, k, load, Link::shared, roll}, to_pattern(pattern), ranks);
      },
      schedule, elements, nb::arg("pattern"), nb::arg("ranks"), nb::kw_only(), itemsize, compute, memory, rolling,
      "The loop of `strip_cost` on each rank that reads, for `simulate`. Patterns: \"one-to-one\", each rank from the "
      "next one; \"all-to-one\", all others from rank 0; \"all-to-all\", each from all others in turn, a strip each.");
}

void bind_simulation(nb::module_& module) {
  nb::class_<RankSteps>(
      module, "RankSteps",
      "What each of `ranks` ranks does, step after step, for `simulate`. Ranks do nothing until they are told to, and "
      "are told in ascending order. Its methods raise ArgumentError for ranks that there are not and for negative "
      "numbers.\n\n"
      ">>> steps = RankSteps(2)  # there and back\n"
      ">>> steps.send(1, bytes=8); steps.receive(1)\n"
      ">>> steps.of(1); steps.receive(1); steps.send(0, bytes=8)\n"
      ">>> simulate(steps, LogGP(L=1, o_s=0.25, o_r=0.5)).seconds\n3.5")
      .def(nb::init<Index>(), nb::arg("ranks"))
      .def_prop_ro("ranks", &RankSteps::ranks, "How many there are")
      .def("of", &RankSteps::of, nb::arg("rank"), "The steps from here on are this rank's; rank 0's come first.")
      .def("compute", &RankSteps::compute, nb::arg("seconds"), "Computes for so many seconds.")
      .def("copy", &RankSteps::copy, nb::arg("bytes"), "Copies so many bytes within the rank.")
      .def("send", &RankSteps::send, nb::arg("to"), nb::arg("bytes"), nb::arg("stage") = 0,
           "Starts a message, which leaves when those before it have left.")
      .def(
          "receive",
          [](RankSteps& steps, std::optional<Index> messages, Index stage) {
            steps.receive(messages.value_or(RankSteps::all), stage);
          },
          nb::arg("messages") = nb::none(), nb::arg("stage") = 0,
          "Waits for so many messages of a stage, from whomever, as they arrive; None: for all that are sent to this "
          "rank.")
      .def("get", &RankSteps::get, nb::arg("from_rank"), nb::arg("bytes"),
           "Starts to read so many bytes of another rank, which takes nothing of that rank's processor.")
      .def("sync", &RankSteps::sync, "Waits for the first get that has not been waited for.");

  def_state(nb::class_<TimeShares>(module, "TimeShares", "Where the time of ranks' processors goes, in seconds"),
            anything, &TimeShares::computing, &TimeShares::issuing, &TimeShares::queue, &TimeShares::gap,
            &TimeShares::bandwidth, &TimeShares::latency, &TimeShares::waiting)
      .def_ro("computing", &TimeShares::computing, "And copying")
      .def_ro("issuing", &TimeShares::issuing, "o_s and o_r")
      .def_ro("queue", &TimeShares::queue, "Waiting until fewer messages are under way")
      .def_ro("gap", &TimeShares::gap, "Waiting for network interfaces that pass few messages a second")
      .def_ro("bandwidth", &TimeShares::bandwidth, "Waiting for bytes, and behind those of others")
      .def_ro("latency", &TimeShares::latency, "Waiting for what crosses the network")
      .def_ro("waiting", &TimeShares::waiting, "For ranks that have not begun yet to send what is waited for")
      .def("__repr__", [](nb::object s) {
        nb::list shares;
        for (const char* name : {"computing", "issuing", "queue", "gap", "bandwidth", "latency", "waiting"})
          if (nb::cast<double>(s.attr(name)) > 0) shares.append(nb::str("{} {:.3g}").format(name, s.attr(name)));
        return nb::str("TimeShares({})").format(nb::str(", ").attr("join")(shares));
      });
  def_state(
      nb::class_<Simulation::Class>(module, "SimulatedRanks", "Ranks that send and receive equally many messages"),
      anything, &Simulation::Class::messages_out, &Simulation::Class::messages_in, &Simulation::Class::ranks,
      &Simulation::Class::shares, &Simulation::Class::slowest, &Simulation::Class::seconds)
      .def_ro("ranks", &Simulation::Class::ranks, "How many they are")
      .def_ro("messages_out", &Simulation::Class::messages_out, "That each sends")
      .def_ro("messages_in", &Simulation::Class::messages_in, "That each receives or gets")
      .def_ro("shares", &Simulation::Class::shares, "Of all of them")
      .def_ro("slowest", &Simulation::Class::slowest, "The rank of them that ends last")
      .def_ro("seconds", &Simulation::Class::seconds, "When it does")
      .def("__repr__", [](const Simulation::Class& c) {
        return nb::str("SimulatedRanks({}, {} messages out and {} in, {:.3g} s)")
            .format(c.ranks, c.messages_out, c.messages_in, c.seconds);
      });
  def_state(nb::class_<Simulation>(module, "Simulation", "What ranks take, and where the time goes"), anything,
            &Simulation::seconds, &Simulation::critical, &Simulation::critical_shares, &Simulation::shares,
            &Simulation::classes, &Simulation::messages, &Simulation::bytes)
      .def_ro("seconds", &Simulation::seconds, "When the last rank ends")
      .def_ro("critical", &Simulation::critical, "That rank")
      .def_ro("critical_shares", &Simulation::critical_shares, "Where its time goes, which is all of `seconds`")
      .def_ro("shares", &Simulation::shares, "Where the time of all ranks goes, together")
      .def_prop_ro(
          "classes", [](const Simulation& s) { return s.classes; },
          "Ranks by how many messages they have; those that end last first")
      .def_ro("messages", &Simulation::messages, "That are sent and got")
      .def_ro("bytes", &Simulation::bytes, "Of them")
      .def("__repr__", [](const Simulation& s) {
        return nb::str("Simulation({:.3g} s; rank {}: {!r})").format(s.seconds, s.critical, s.critical_shares);
      });

  module.def(
      "simulate_steps",
      [](const RankSteps& steps, const LogGP& loggp, const std::string& link, Index queue, double copy) {
        const Network network{loggp, to_link(link), queue, copy};
        nb::gil_scoped_release release;
        return simulate(steps, network);
      },
      nb::arg("steps"), nb::arg("loggp"), nb::arg("link"), nb::arg("queue"), nb::arg("copy"),
      "What `model.simulate` does.");
  module.def(
      "exchange_steps",
      [](const MotionPlan& plan) {
        nb::gil_scoped_release release;
        return exchange_steps(plan);
      },
      nb::arg("plan"), "A plan's messages between layouts, for `simulate`.");
  module.def(
      "exchange_steps",
      [](const BlockPlan& plan, Index itemsize) {
        nb::gil_scoped_release release;
        return exchange_steps(plan, itemsize);
      },
      nb::arg("plan"), nb::arg("itemsize"), "A plan's messages between blocks, for `simulate`.");
}

}  // namespace

void bind_strips(nb::module_& module) {
  bind_schedules(module);
  bind_costs(module);
  bind_simulation(module);
}

}  // namespace longshore::python

#include "longshore/model/copy_transfer.hpp"

#include <nanobind/stl/variant.h>

#include <array>

#include "longshore/model/throughput.hpp"
#include "rooms.hpp"
#include "states.hpp"

namespace longshore::python {

namespace {

/// A dict of numbers by names, in its order.
std::vector<std::pair<std::string, double>> items(const nb::dict& numbers, const char* what) {
  std::vector<std::pair<std::string, double>> result;
  for (const auto [key, value] : numbers) {
    auto& [name, number] = result.emplace_back();
    if (!nb::try_cast(key, name) || !nb::try_cast(value, number))
      throw Error(ErrorKind::argument,
                  nb::str("{} has {!r}: {!r}; it must have numbers by text").format(what, key, value).c_str());
  }
  return result;
}

std::vector<MeasuredTransfer> measured(const nb::dict& rates) {
  std::vector<MeasuredTransfer> result;
  for (const auto& [name, rate] : items(rates, "megabytes_per_second")) {
    const auto parsed = TransferExpression::parse(name);
    if (parsed.composition() != TransferExpression::Composition::basic)
      throw Error(ErrorKind::argument, "megabytes_per_second has " + parsed.to_string() +
                                           ", which is no basic transfer, such as 64C1 or Nd@2");
    result.push_back({parsed.transfer(), rate});
  }
  return result;
}

std::vector<ResourceConstraint::Use> uses(const nb::dict& bytes) {
  std::vector<ResourceConstraint::Use> result;
  for (const auto& [kind, each] : items(bytes, "bytes_per_byte")) result.push_back({transfer_kind(kind), each});
  return result;
}

std::vector<std::string> ascii(const std::vector<BasicTransfer>& transfers) {
  std::vector<std::string> result;
  for (const auto& transfer : transfers) result.push_back(transfer.to_string(Notation::ascii));
  return result;
}

template <class T>
auto equal(const T& a, nb::object b) {
  return nb::isinstance<T>(b) && a == nb::cast<const T&>(b);
}
const auto equal_sig = nb::sig("def __eq__(self, other: object, /) -> bool");

void bind_expressions(nb::module_& module) {
  nb::class_<TransferExpression>(
      module, "TransferExpression",
      "A way of moving data as the copies and transfers that it consists of (Stricker & Gross, sections 3.2 and 3.3), "
      "from text such as\n\"64C1 o (1S0 || Nd || 0D1) o 1C64\". A value.\n\n"
      "A basic transfer has the pattern it reads before and the one it writes behind its letter: 0 a fixed place, 1 "
      "contiguous,\nn a stride of n 64-bit words, n[b] blocks of b words with it, ω or w indexed. xCy is a local copy, "
      "xS0 load-send, xF0 fetch-send,\n0Ry receive-store, 0Dy receive-deposit; Nd is the network with data only, Nadp "
      "with address-data pairs, Nd@4 at a congestion of 4.\n∘, o or `>>` is one after the other, where each step reads "
      "the pattern that the one before writes; ‖, || or `|` is at the same time,\nand binds less tightly. Raises "
      "ArgumentError that says at which character what is expected.\n\n"
      ">>> packed = TransferExpression(\"64C1\") >> TransferExpression(\"1S0 || Nd || 0D1\")\n"
      ">>> packed == TransferExpression(\"64C1 o (1S0 || Nd || 0D1)\")\nTrue\n"
      ">>> print(packed)\n64C1 ∘ (1S0 ‖ Nd ‖ 0D1)")
      .def(
          "__init__",
          [](TransferExpression* self, const std::string& text) {
            new (self) TransferExpression(TransferExpression::parse(text));
          },
          nb::arg("text"))
      .def_prop_ro(
          "composition",
          [](const TransferExpression& e) {
            return std::array{"basic", "sequence", "parallel"}[std::size_t(e.composition())];
          },
          "\"basic\", \"sequence\" (∘) or \"parallel\" (‖)")
      .def_prop_ro(
          "parts", [](const TransferExpression& e) { return e.parts(); },
          "What is composed; nothing of a basic transfer")
      .def(
          "__rshift__", [](const TransferExpression& a, const TransferExpression& b) { return a >> b; },
          nb::arg("after"), nb::is_operator())
      .def(
          "__or__", [](const TransferExpression& a, const TransferExpression& b) { return a | b; }, nb::arg("other"),
          nb::is_operator())
      .def("__eq__", &equal<TransferExpression>, nb::arg("other"), equal_sig)
      .def("__hash__", [](const TransferExpression& e) { return nb::hash(nb::str(e.to_string().c_str())); })
      .def("__str__", [](const TransferExpression& e) { return e.to_string(); })
      .def("__repr__",
           [](const TransferExpression& e) { return "TransferExpression('" + e.to_string(Notation::ascii) + "')"; });
}

void bind_tables(nb::module_& module) {
  nb::class_<ResourceConstraint>(
      module, "ResourceConstraint",
      "Transfers at the same time must not take more of a resource than there is: the sum of their rates, each times "
      "the bytes of it that `bytes_per_byte` has for a byte of data, is at most `megabytes_per_second`. The paper's 2 "
      "|xQy| < "
      "|0Cx| is {\"S\": 1, \"D\": 1} of \"memory\".")
      .def(
          "__init__",
          [](ResourceConstraint* self, std::string resource, const nb::dict& bytes, double rate) {
            new (self) ResourceConstraint{std::move(resource), uses(bytes), rate};
          },
          nb::arg("resource"), nb::arg("bytes_per_byte"), nb::kw_only(), nb::arg("megabytes_per_second"),
          nb::sig("def __init__(self, resource: str, bytes_per_byte: dict[str, float], *, megabytes_per_second: float) "
                  "-> None"))
      .def_ro("resource", &ResourceConstraint::resource, "Its name")
      .def_prop_ro(
          "bytes_per_byte",
          [](const ResourceConstraint& c) {
            nb::dict result;
            for (const auto& [kind, bytes] : c.uses) result[to_string(kind)] = bytes;
            return result;
          },
          nb::sig("def bytes_per_byte(self) -> dict[str, float]"),
          "Bytes of it for each byte that C, S, F, R, D, Nd or Nadp moves")
      .def_ro("megabytes_per_second", &ResourceConstraint::megabytes_per_second, "What there is")
      .def("__eq__", &equal<ResourceConstraint>, nb::arg("other"), equal_sig)
      .def("__repr__", [](nb::object c) {
        return nb::str("ResourceConstraint({!r}, {!r}, megabytes_per_second={!r})")
            .format(c.attr("resource"), c.attr("bytes_per_byte"), c.attr("megabytes_per_second"));
      });

  nb::class_<ThroughputTable>(module, "ThroughputTable")
      .def(
          "__init__",
          [](ThroughputTable* self, std::string machine, const nb::dict& rates, double congestion,
             std::vector<ResourceConstraint> constraints) {
            new (self) ThroughputTable(std::move(machine), measured(rates), congestion, std::move(constraints));
          },
          nb::arg("machine"), nb::arg("megabytes_per_second"), nb::kw_only(), nb::arg("congestion") = 1.0,
          nb::arg("constraints") = nb::tuple(),
          nb::sig(
              "def __init__(self, machine: str, megabytes_per_second: dict[str, float], *, congestion: float = 1.0, "
              "constraints: Sequence[ResourceConstraint] = ()) -> None"))
      .def_prop_ro(
          "machine", [](const ThroughputTable& t) { return t.machine(); }, "Its name")
      .def_prop_ro(
          "megabytes_per_second",
          [](const ThroughputTable& t) {
            nb::dict result;
            for (const auto& [transfer, rate] : t.transfers())
              result[transfer.to_string(Notation::ascii).c_str()] = rate;
            return result;
          },
          nb::sig("def megabytes_per_second(self) -> dict[str, float]"), "The rates, by the names of basic transfers")
      .def_prop_ro("congestion", &ThroughputTable::congestion,
                   "What networks run at, unless an expression says otherwise")
      .def_prop_ro(
          "constraints", [](const ThroughputTable& t) { return t.constraints(); }, "What its resources have to give")
      .def("__eq__", &equal<ThroughputTable>, nb::arg("other"), equal_sig)
      .def("__repr__", [](nb::object t) {
        return nb::str("ThroughputTable({!r}, {!r}, congestion={!r}, constraints={!r})")
            .format(t.attr("machine"), t.attr("megabytes_per_second"), t.attr("congestion"), t.attr("constraints"));
      });
  module.attr("cray_t3d") = cray_t3d();
  module.attr("intel_paragon") = intel_paragon();
}

using Part = ThroughputEstimate::Part;

nb::tuple state_of_part(const Part& part) {
  return nb::make_tuple(part.name, part.megabytes_per_second, part.share_of_time, ascii(part.measured));
}

Part part_of(const State& state) {
  Part part{state.at<std::string>(0), state.at<double>(1), state.at<double>(2), {}};
  for (const auto& text : state.at<std::vector<std::string>>(3)) {
    const auto expression = TransferExpression::parse(text);
    if (expression.composition() != TransferExpression::Composition::basic)
      state.refuse("names " + text + ", which is no basic transfer");
    part.measured.push_back(expression.transfer());
  }
  return part;
}

void check_parts(const ThroughputEstimate& e) {
  if (e.bottleneck >= e.parts.size())
    throw Error(ErrorKind::argument, "the state of a ThroughputEstimate has its bottleneck in part " +
                                         std::to_string(e.bottleneck) + " of " + std::to_string(e.parts.size()));
}

}  // namespace

void bind_copy_transfer(nb::module_& module) {
  bind_expressions(module);
  bind_tables(module);

  def_state(nb::class_<Part>(module, "ThroughputPart",
                             "A basic transfer of an expression, or a constraint it was slowed down for"),
            4, state_of_part, part_of)
      .def_ro("name", &Part::name, "As the paper writes it, or the constraint's resource")
      .def_ro("megabytes_per_second", &Part::megabytes_per_second,
              "What it would run at by itself; of a constraint, what it allows")
      .def_ro("share_of_time", &Part::share_of_time, "Of the whole, from 0 to 1; 0 where something slower hides it")
      .def_prop_ro(
          "measured", [](const Part& p) { return ascii(p.measured); },
          "The table's entries that its rate comes from; none of a constraint")
      .def("__repr__", [](const Part& p) {
        return nb::str("ThroughputPart({}: {:.1f} MB/s, {:.0%} of the time)")
            .format(p.name, p.megabytes_per_second, p.share_of_time);
      });
  def_state(nb::class_<ThroughputEstimate>(module, "ThroughputEstimate",
                                           "How fast an expression is, and where its time goes"),
            check_parts, &ThroughputEstimate::megabytes_per_second, &ThroughputEstimate::parts,
            &ThroughputEstimate::bottleneck)
      .def_ro("megabytes_per_second", &ThroughputEstimate::megabytes_per_second, "Of data, in 10^6 bytes")
      .def_prop_ro(
          "bottleneck", [](const ThroughputEstimate& e) { return e.parts[e.bottleneck]; },
          "The part that takes the most of the time")
      .def_prop_ro(
          "parts", [](const ThroughputEstimate& e) { return e.parts; },
          "Basic transfers in the expression's order, and constraints; their shares of the time add up to 1")
      .def("__repr__", [](const ThroughputEstimate& e) {
        const auto& slowest = e.parts[e.bottleneck];
        return nb::str("ThroughputEstimate({:.1f} MB/s; {} takes {:.0%} of the time)")
            .format(e.megabytes_per_second, slowest.name, slowest.share_of_time);
      });
  module.def(
      "evaluate",
      [](const std::variant<TransferExpression, std::string>& expression, const ThroughputTable& machine) {
        if (const auto* text = std::get_if<std::string>(&expression))
          return evaluate(TransferExpression::parse(*text), machine);
        return evaluate(std::get<TransferExpression>(expression), machine);
      },
      nb::arg("expression"), nb::arg("machine"),
      nb::sig("def evaluate(expression: TransferExpression | str, machine: ThroughputTable) -> ThroughputEstimate"),
      "How fast an expression is on a machine: sequences take the sum of their steps' times per byte, parallel "
      "compositions the time of the\nslowest, and where a constraint is broken, those at the same time are slowed down "
      "until it holds (section 3.3). Raises ArgumentError\nfor a transfer that the table has nothing for.\n\n"
      ">>> evaluate(\"1C1 o (1S0 || Nd || 0D1) o 1C1024\", cray_t3d)\n"
      "ThroughputEstimate(25.0 MB/s; 1C1024 takes 37% of the time)");
}

}  // namespace longshore::python

#include "longshore/model/decode_or_recompute.hpp"

#include "rooms.hpp"

namespace longshore::python {

namespace {

nb::object shown(double value) { return nb::repr(nb::float_(value)); }

}  // namespace

void bind_model(nb::module_& module) {
  nb::class_<MachineRates>(
      module, "MachineRates",
      "How fast a machine issues integer instructions and reaches memory: r_i in instructions per second, "
      "and the rates of memory accesses in words per second. A word is an address or a datum.")
      .def(
          "__init__",
          [](MachineRates* self, double i, double rc, double rr, double wc, double wr) {
            new (self) MachineRates{i, rc, rr, wc, wr};
          },
          nb::kw_only(), nb::arg("instructions_per_second"), nb::arg("read_words_per_second"),
          nb::arg("random_read_words_per_second"), nb::arg("write_words_per_second"),
          nb::arg("random_write_words_per_second"))
      .def_ro("instructions_per_second", &MachineRates::instructions_per_second, "r_i")
      .def_ro("read_words_per_second", &MachineRates::read_words_per_second, "r_rc: unit stride")
      .def_ro("random_read_words_per_second", &MachineRates::random_read_words_per_second, "r_rr")
      .def_ro("write_words_per_second", &MachineRates::write_words_per_second, "r_wc: unit stride")
      .def_ro("random_write_words_per_second", &MachineRates::random_write_words_per_second,
              "r_wr: for disassembly; the equations of assembly do not ask for it")
      .def(
          "__eq__",
          [](const MachineRates& a, nb::object b) {
            return nb::isinstance<MachineRates>(b) && a == nb::cast<const MachineRates&>(b);
          },
          nb::arg("other"), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__repr__", [](const MachineRates& r) {
        return nb::
            str("MachineRates(instructions_per_second={}, read_words_per_second={}, random_read_words_per_second={}, "
                "write_words_per_second={}, random_write_words_per_second={})")
                .format(shown(r.instructions_per_second), shown(r.read_words_per_second),
                        shown(r.random_read_words_per_second), shown(r.write_words_per_second),
                        shown(r.random_write_words_per_second));
      });

  nb::class_<LoopCosts>(
      module, "LoopCosts",
      "Instructions a loop spends on each tuple besides making the tuple and reaching memory: n_ac, n_au and "
      "n_o. A fit to measured loops may give negative ones where the machine does that work meanwhile.")
      .def(
          "__init__",
          [](LoopCosts* self, double ac, double au, double o) {
            new (self) LoopCosts{ac, au, o};
          },
          nb::kw_only(), nb::arg("decode_instructions"), nb::arg("recompute_instructions"),
          nb::arg("encode_instructions"))
      .def_ro("decode_instructions", &LoopCosts::decode_instructions, "n_ac")
      .def_ro("recompute_instructions", &LoopCosts::recompute_instructions, "n_au")
      .def_ro("encode_instructions", &LoopCosts::encode_instructions, "n_o")
      .def(
          "__eq__",
          [](const LoopCosts& a, nb::object b) {
            return nb::isinstance<LoopCosts>(b) && a == nb::cast<const LoopCosts&>(b);
          },
          nb::arg("other"), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__repr__", [](const LoopCosts& c) {
        return nb::str("LoopCosts(decode_instructions={}, recompute_instructions={}, encode_instructions={})")
            .format(shown(c.decode_instructions), shown(c.recompute_instructions), shown(c.encode_instructions));
      });

  module.attr("iwarp_rates") = iwarp_rates;
  module.attr("iwarp_static_costs") = iwarp_static_costs;
  module.attr("iwarp_dynamic_costs") = iwarp_dynamic_costs;
  module.attr("paragon_rates") = paragon_rates;
  module.attr("paragon_static_costs") = paragon_static_costs;

  const auto rates = nb::arg("rates"), costs = nb::arg("costs"), words = nb::arg("words");
  const auto generate = nb::arg("generate_instructions");
  module.def(
      "encode_seconds", &encode_seconds, rates, costs, generate, words,
      "Seconds to make the relation of an n-word message and to store it: t_g + t_o = n ((n_g + n_o)/r_i + 2/r_wc).\n\n"
      "`generate_instructions` is n_g, what makes one tuple; `words` is n. Raises ArgumentError for a rate that is not "
      "positive, a cost that is not finite, a negative n_g or n.");
  module.def("assembly_seconds", &assembly_seconds, rates, costs, words,
             "Seconds to assemble an n-word message from the stored relation: t_ac = n (2/r_rc + 1/r_rr + 2/r_wc + "
             "n_ac/r_i).");
  module.def(
      "decode_seconds", &decode_seconds, rates, costs, generate, words, nb::arg("uses"),
      "Seconds to assemble an n-word message from the stored relation, with its share of encoding once for n_i uses:\n"
      "t_decode = (t_g + t_o)/n_i + t_ac (equation \"cached\"). `uses` is n_i, at least 1.");
  module.def("recompute_seconds", &recompute_seconds, rates, costs, generate, words,
             "Seconds to assemble an n-word message while its relation is computed:\n"
             "t_recompute = t_g + t_au = n ((n_g + n_au)/r_i + 1/r_rr + 2/r_wc) (equation \"uncached\").");
  module.def("threshold_instructions", &threshold_instructions, rates, costs,
             "The threshold of n_g in instructions, 2 r_i/r_rc + n_ac - n_au: decoding wins where making a tuple takes "
             "strictly more.\n\n>>> threshold_instructions(iwarp_rates, iwarp_static_costs)\n1.0");
  module.def(
      "break_even_uses", &break_even_uses, rates, costs, generate,
      "The smallest whole n_i with t_decode <= t_recompute (equation \"crossover\"): (n_g + n_o + 2 r_i/r_wc) "
      "instructions a word against the\nn_g - threshold that each use gains. None at the threshold and below. Raises "
      "SizeOverflowError hardly above it.\n\n>>> break_even_uses(paragon_rates, paragon_static_costs, 17)\n41");
  module.def("assembly_speedup", &assembly_speedup, rates, costs, generate,
             "What decoding gains in the end, (t_g + t_au)/t_ac: linear in n_g, less than 1 below the threshold.\n\n"
             ">>> round(assembly_speedup(iwarp_rates, iwarp_static_costs, 5), 2)\n1.33");
}

}  // namespace longshore::python

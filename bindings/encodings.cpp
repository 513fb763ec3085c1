#include "longshore/encodings/encoding.hpp"
#include "relation_buffers.hpp"

namespace longshore::python {

void bind_encodings(nb::module_& module) {
  nb::class_<Encoding>(
      module, "Encoding",
      "An address relation stored compactly: one of the paper's encodings (Dinda & O'Hallaron, section 4) or of "
      "those it leaves open. A value: immutable, picklable. Made by `encode`.")
      .def_prop_ro(
          "kind", [](const Encoding& e) { return std::string(encoding_name(e.kind())); }, "\"dmrlec\", \"nest\", ...")
      .def_prop_ro("element_bytes", &Encoding::element_bytes, "Bytes of one element.")
      .def_prop_ro("elements", &Encoding::elements, "Number of pairs.")
      .def_prop_ro(
          "encoded_bytes", &Encoding::encoded_bytes,
          "Bytes of keys and symbols as the paper counts them: 64-bit words, no header, DMRLEC's table of 2^k entries.")
      .def_prop_ro("symbols", &Encoding::symbols, "Symbols that are decoded to go through the whole relation.")
      .def_prop_ro("distinct_symbols", &Encoding::distinct_symbols,
                   "Distinct symbols, where the kind keeps a table of them.")
      .def_prop_ro("predicted_decode_ns", &Encoding::predicted_decode_ns,
                   "Nanoseconds that decoding all of it once is predicted to take, moving the data aside.")
      .def("__len__", &Encoding::elements)
      .def("decode", &Encoding::decode, nb::call_guard<nb::gil_scoped_release>(), "The relation again.")
      .def(
          "assemble",
          [](const Encoding& self, const nb::object& source, nb::object message, Index first,
             std::optional<Index> last) {
            const Index end = end_of_stretch(first, last, self.elements());
            if (message.is_none())
              message = arrays_module().attr("empty_message")(source, end - first, self.element_bytes());
            const auto extent = self.source_extent();
            const Memory from(source), to(message);
            const Interval bytes{0, (end - first) * self.element_bytes()};
            from.check(extent, "source", false);
            to.check(bytes, "message", true);
            to.check_apart(bytes, from, extent);
            self.assemble(to.data, from.data, first, end);
            return message;
          },
          nb::arg("source"), nb::arg("message") = nb::none(), nb::arg("first") = 0, nb::arg("last") = nb::none(),
          "The paper's executor, decoding symbol by symbol: as `Assembler.__call__`, slower and without its memory.",
          nb::sig("def assemble(self, source: object, message: object | None = None, first: int = 0, last: int | None "
                  "= None) -> numpy.typing.NDArray"))
      .def(
          "disassemble",
          [](const Encoding& self, const nb::object& message, const nb::object& destination, Index first,
             std::optional<Index> last) {
            const Index end = end_of_stretch(first, last, self.elements());
            const auto extent = self.destination_extent();
            const Memory from(message), to(destination);
            const Interval bytes{0, (end - first) * self.element_bytes()};
            from.check(bytes, "message", false);
            to.check(extent, "destination", true);
            to.check_apart(extent, from, bytes);
            self.disassemble(to.data, from.data, first, end);
            return destination;
          },
          nb::arg("message"), nb::arg("destination"), nb::arg("first") = 0, nb::arg("last") = nb::none(),
          "The paper's executor of the receiver, as `Disassembler.__call__`.",
          nb::sig("def disassemble(self, message: object, destination: object, first: int = 0, last: int | None = "
                  "None) -> typing.Any"))
      .def(
          "to_bytes",
          [](const Encoding& e) {
            const auto bytes = e.to_bytes();
            return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
          },
          "A file's content: header with version and kind, the encoding, a checksum.")
      .def_static(
          "from_bytes",
          [](const nb::bytes& bytes) {
            return Encoding::from_bytes({reinterpret_cast<const std::byte*>(bytes.c_str()), bytes.size()});
          },
          nb::arg("bytes"),
          "What to_bytes() wrote. Raises ArgumentError saying what is wrong; never trusts a length or an offset.")
      .def(
          "validate",
          [](const Encoding& e) -> std::optional<std::string> {
            std::string reason;
            if (e.validate(reason)) return std::nullopt;
            return reason;
          },
          "None, or why the encoding does not hold together.")
      .def(
          "__eq__",
          [](const Encoding& a, const nb::object& b) {
            return nb::isinstance<Encoding>(b) && a == nb::cast<const Encoding&>(b);
          },
          nb::arg("other"), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__",
           [](const Encoding& e) {
             return nb::hash(
                 nb::make_tuple(int(e.kind()), e.element_bytes(), e.elements(), e.symbols(), int(e.reduction().op())));
           })
      .def("__repr__",
           [](const Encoding& e) {
             return "<longshore.Encoding " + std::string(encoding_name(e.kind())) + ": " +
                    std::to_string(e.elements()) + " elements in " + std::to_string(e.encoded_bytes()) + " bytes, " +
                    std::to_string(e.symbols()) + " symbols>";
           })
      .def("__reduce__", [](nb::handle self) {
        return nb::make_tuple(nb::module_::import_("longshore._api").attr("_encoding_from_bytes"),
                              nb::make_tuple(self.attr("to_bytes")()));
      });

  module.def(
      "encode",
      [](const AddressRelation& relation, const std::string& kind) {
        nb::gil_scoped_release release;
        return kind == "auto" ? Encoding::automatic(relation) : Encoding(relation, encoding_kind(kind));
      },
      nb::arg("relation"), nb::arg("kind") = "auto",
      "Stores a relation as \"aapair\", \"aablk\", \"dmrle\", \"dmrlec\", \"huffman\", \"lz\", \"packed\", \"delta\" "
      "or \"nest\"; \"auto\" takes the kind with the least predicted time to read and decode, the smaller of equals.");
  module.def(
      "encoding_kinds",
      [] {
        std::vector<std::string> names;
        for (const auto kind : encoding_kinds()) names.emplace_back(encoding_name(kind));
        return names;
      },
      "The kinds of encoding there are.");
}

}  // namespace longshore::python

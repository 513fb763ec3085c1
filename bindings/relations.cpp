#include <cctype>

#include "longshore/encodings/encoding.hpp"
#include "longshore/layouts/layout.hpp"
#include "longshore/plans/motion_plan.hpp"
#include "points.hpp"
#include "relation_buffers.hpp"

namespace longshore::python {

namespace {

nb::dict to_dict(const AccessPattern& pattern) {
  nb::list loops;
  for (const auto& loop : pattern.loops) loops.append(nb::make_tuple(loop.count, loop.stride));
  nb::dict result;
  result["block_bytes"] = pattern.block_bytes;
  result["loops"] = loops;
  result["regular"] = pattern.regular;
  return result;
}

/// The relation as one nest, where it is one.
const LoopNest* single_nest(const AddressRelation& relation) {
  return relation.parts().size() == 1 ? std::get_if<LoopNest>(&relation.parts()[0]) : nullptr;
}

AccessPattern pattern_of(const AddressRelation& relation, bool source) {
  const auto canonical = relation.canonical();
  if (const auto* nest = single_nest(canonical)) return source ? nest->source_pattern() : nest->destination_pattern();
  return {relation.element_bytes(), {}, relation.empty()};
}

PairOrder order_of(const std::string& name) {
  if (name == "source") return PairOrder::source_first;
  if (name == "destination") return PairOrder::destination_first;
  throw Error(ErrorKind::argument, "by is '" + name + "'; it can be 'source' or 'destination'");
}

template <class T>
std::vector<T> rows_of(const nb::object& values, const char* name) {
  constexpr int columns = int(sizeof(T) / sizeof(Index));
  const IndexArray array(values, name, columns);
  std::vector<T> rows(array.rows);
  auto* out = reinterpret_cast<Index*>(rows.data());
  if (array.narrow)
    std::copy(array.narrow_values().begin(), array.narrow_values().end(), out);
  else
    std::copy(array.wide_values().begin(), array.wide_values().end(), out);
  return rows;
}

template <std::size_t Columns, class T>
nb::object to_rows(const std::vector<T>& rows) {
  const auto* first = reinterpret_cast<const Index*>(rows.data());
  return python::to_array<Columns>(std::vector<Index>(first, first + rows.size() * Columns));
}

AddressRelation stretch_of(const AddressRelation& relation, const nb::slice& positions) {
  const auto [start, stop, step, length] = positions.compute(std::size_t(relation.elements()));
  if (step != 1) throw Error(ErrorKind::argument, "a stretch of a relation is taken without gaps: use a step of 1");
  return relation.restrict(Index(start), Index(start + length));
}

nb::tuple pair_of(const AddressRelation& relation, const nb::object& key) {
  const auto index = nb::steal(PyNumber_Index(key.ptr()));
  if (!index.is_valid()) throw nb::python_error();  // TypeError: neither an integer nor a slice
  Index position = 0;
  const bool fits = nb::try_cast(index, position);
  if (position < 0) position += relation.elements();
  if (!fits || position < 0 || position >= relation.elements())
    throw nb::index_error(("position " + std::string(nb::str(index).c_str()) + " is outside a relation of " +
                           std::to_string(relation.elements()) + " elements")
                              .c_str());
  const auto pair = relation.at(position);
  return nb::make_tuple(pair.source, pair.destination);
}

void bind_programs(nb::module_& module) {
  nb::class_<Assembler>(module, "Assembler", "A compiled source -> message half of a relation: the sender's executor.")
      .def(
          "__call__",
          [](const Assembler& self, const nb::object& source, nb::object message, Index first,
             std::optional<Index> last) {
            const auto& program = self.program();
            const Index end = end_of_stretch(first, last, program.elements());
            if (message.is_none())
              message = arrays_module().attr("empty_message")(source, end - first, program.element_bytes());
            const Memory from(source), to(message);
            const Interval bytes{0, (end - first) * program.element_bytes()};
            from.check(program.source_extent(), "source", false);
            to.check(bytes, "message", true);
            to.check_apart(bytes, from, program.source_extent());
            nb::gil_scoped_release release;
            self.run(to.data, from.data, first, end);
            return message;
          },
          nb::arg("source"), nb::arg("message") = nb::none(), nb::arg("first") = 0, nb::arg("last") = nb::none(),
          "The elements at the message's positions [first, last) into `message` (new where None), which begins with "
          "element `first`. Returns the message. Raises LocalArrayError where an array is too small.",
          nb::sig("def __call__(self, source: object, message: object | None = None, first: int = 0, last: int | None "
                  "= None) -> numpy.typing.NDArray"))
      .def_prop_ro(
          "workspace_bytes", [](const Assembler& a) { return a.program().workspace_bytes(); }, "Memory it holds.")
      .def("__str__", [](const Assembler& a) { return a.program().describe(); });

  nb::class_<Disassembler>(module, "Disassembler",
                           "A compiled message -> destination half of a relation: the receiver's executor.")
      .def(
          "__call__",
          [](const Disassembler& self, const nb::object& message, const nb::object& destination, Index first,
             std::optional<Index> last) {
            const auto& program = self.program();
            const Index end = end_of_stretch(first, last, program.elements());
            const Memory from(message), to(destination);
            const Interval bytes{0, (end - first) * program.element_bytes()};
            from.check(bytes, "message", false);
            to.check(program.destination_extent(), "destination", true);
            to.check_apart(program.destination_extent(), from, bytes);
            nb::gil_scoped_release release;
            self.run(to.data, from.data, first, end);
            return destination;
          },
          nb::arg("message"), nb::arg("destination"), nb::arg("first") = 0, nb::arg("last") = nb::none(),
          "A message that begins with element `first`, up to element `last`, into `destination`, which is returned. "
          "Raises LocalArrayError where an array is too small or read-only.",
          nb::sig("def __call__(self, message: object, destination: object, first: int = 0, last: int | None = None) "
                  "-> typing.Any"))
      .def_prop_ro(
          "workspace_bytes", [](const Disassembler& d) { return d.program().workspace_bytes(); }, "Memory it holds.")
      .def("__str__", [](const Disassembler& d) { return d.program().describe(); });

  nb::class_<RelationProgram>(module, "RelationProgram", "A compiled relation: source -> destination in one step.")
      .def(
          "__call__",
          [](const RelationProgram& self, const nb::object& source, const nb::object& destination) {
            const Memory from(source), to(destination);
            from.check(self.source_extent(), "source", false);
            to.check(self.destination_extent(), "destination", true);
            to.check_apart(self.destination_extent(), from, self.source_extent());
            nb::gil_scoped_release release;
            self.run(to.data, from.data);
            return destination;
          },
          nb::arg("source"), nb::arg("destination"), "Moves every pair. Returns the destination.",
          nb::sig("def __call__(self, source: object, destination: object) -> typing.Any"))
      .def_prop_ro("workspace_bytes", &RelationProgram::workspace_bytes, "Memory it holds.")
      .def("__str__", &RelationProgram::describe);
}

}  // namespace

void bind_relations(nb::module_& module) {
  const auto reduce_doc = nb::arg("reduce") = nb::none();
  nb::class_<AddressRelation>(
      module, "AddressRelation",
      "An ordered sequence of (source offset, destination offset) pairs in bytes over elements of one size (Dinda & "
      "O'Hallaron, section 2). A value: immutable, comparable, picklable. The order is the order of the elements in a "
      "message. Sources may be replicated; destinations may not overlap unless there is a combining operation.\n\n"
      "`dtype` is a NumPy dtype or a number of bytes. `reduce` names a combining operation (add, multiply, minimum, "
      "maximum, logical_and, logical_or, logical_xor, bitwise_and, bitwise_or, bitwise_xor): destination = destination "
      "op source. Raises ArgumentError naming two pairs that write the same bytes, ShapeError, DTypeError, "
      "SizeOverflowError.")
      .def_static(
          "from_indices",
          [](const nb::object& source, const nb::object& destination, const nb::object& dtype,
             const nb::object& reduce) {
            const Element element(dtype, reduce);
            const IndexArray s(source, "source", 1), d(destination, "destination", 1);
            nb::gil_scoped_release release;
            if (s.narrow && d.narrow)
              return AddressRelation::from_indices(element.bytes, s.narrow_values(), d.narrow_values(),
                                                   element.reduction);
            auto widened = [](const IndexArray& a) {
              return a.narrow ? std::vector<std::int64_t>(a.narrow_values().begin(), a.narrow_values().end())
                              : std::vector<std::int64_t>(a.wide_values().begin(), a.wide_values().end());
            };
            const auto from = widened(s), to = widened(d);
            return AddressRelation::from_indices(element.bytes, std::span<const std::int64_t>(from),
                                                 std::span<const std::int64_t>(to), element.reduction);
          },
          nb::arg("source"), nb::arg("destination"), nb::arg("dtype"), reduce_doc,
          "Element source[k] of one array goes to element destination[k] of the other: NumPy's destination[d] = "
          "source[s].")
      .def_static(
          "from_pairs",
          [](const nb::object& pairs, const nb::object& dtype, const nb::object& reduce) {
            const Element element(dtype, reduce);
            const auto rows = rows_of<OffsetPair>(pairs, "pairs");
            nb::gil_scoped_release release;
            return AddressRelation::from_pairs(element.bytes, rows, element.reduction);
          },
          nb::arg("pairs"), nb::arg("dtype"), reduce_doc,
          "Rows of (source offset, destination offset) in bytes, shape (n, 2).")
      .def_static(
          "from_blocks",
          [](const nb::object& blocks, const nb::object& dtype, const nb::object& reduce) {
            const Element element(dtype, reduce);
            return AddressRelation::from_blocks(element.bytes, rows_of<OffsetBlock>(blocks, "blocks"),
                                                element.reduction);
          },
          nb::arg("blocks"), nb::arg("dtype"), reduce_doc,
          "Rows of (source offset, destination offset, elements), offsets in bytes, shape (n, 3): the symbols of "
          "AABLK.")
      .def_static(
          "from_segments",
          [](const nb::object& source, const nb::object& destination, const nb::object& dtype,
             const nb::object& reduce) {
            const Element element(dtype, reduce);
            const auto from = rows_of<Segment>(source, "source");
            Index total = 0;
            for (const auto& segment : from) total = checked_add(total, segment.bytes);
            const auto to =
                destination.is_none() ? std::vector<Segment>{{0, total}} : rows_of<Segment>(destination, "destination");
            return AddressRelation::from_segments(element.bytes, from, to, element.reduction);
          },
          nb::arg("source"), nb::arg("destination") = nb::none(), nb::arg("dtype") = 1, reduce_doc,
          "Gather lists as of readv(2): rows of (offset, bytes), shape (n, 2). The bytes of the source segments, one "
          "after the other, go to the bytes of the destination segments; without `destination`, to a dense message.")
      .def_static(
          "strided",
          [](const std::vector<Index>& shape, const std::vector<Index>& source_strides,
             const std::vector<Index>& destination_strides, const nb::object& dtype, Index source_offset,
             Index destination_offset, const nb::object& reduce) {
            const Element element(dtype, reduce);
            return AddressRelation::strided(element.bytes, shape, source_strides, destination_strides, source_offset,
                                            destination_offset, element.reduction);
          },
          nb::arg("shape"), nb::arg("source_strides"), nb::arg("destination_strides"), nb::arg("dtype"),
          nb::arg("source_offset") = 0, nb::arg("destination_offset") = 0, reduce_doc,
          "A box of elements with strides and offsets in bytes on both sides, as NumPy's array.strides; the last "
          "dimension runs fastest.")
      .def_static(
          "from_layouts",
          [](const Layout& source, Index source_rank, const Layout& destination, Index destination_rank,
             const nb::object& dtype, const nb::object& axes) {
            const Element element(dtype, nb::none());
            const MotionPlan plan(source, destination, element.bytes, to_axes(axes, source.rank_of_array()));
            for (const auto& motion : plan.sends(source_rank))
              if (motion.destination == destination_rank) return AddressRelation(plan.relation(motion));
            return AddressRelation(element.bytes);
          },
          nb::arg("source"), nb::arg("source_rank"), nb::arg("destination"), nb::arg("destination_rank"),
          nb::arg("dtype"), nb::arg("axes") = nb::none(),
          "What goes from one rank's local array to another's when an array is redistributed. Costs the same at any "
          "number of elements.",
          nb::sig("def from_layouts(source: Layout, source_rank: int, destination: Layout, destination_rank: int, "
                  "dtype: object, axes: Sequence[int] | None = None) -> AddressRelation"))
      .def_static(
          "concatenate",
          [](const std::vector<AddressRelation>& relations) { return AddressRelation::concatenate(relations); },
          nb::arg("relations"), "The pairs of one relation after the other.")
      .def_prop_ro("element_bytes", &AddressRelation::element_bytes, "Bytes of one element.")
      .def_prop_ro("elements", &AddressRelation::elements, "Number of pairs.")
      .def_prop_ro("bytes", &AddressRelation::bytes, "Bytes of the message.")
      .def_prop_ro(
          "reduce",
          [](const AddressRelation& r) -> std::optional<std::string> {
            if (r.reduction().is_replace()) return std::nullopt;
            return std::string(reduce_name(r.reduction().op()));
          },
          "The combining operation, or None.")
      .def_prop_ro(
          "source_extent",
          [](const AddressRelation& r) { return nb::make_tuple(r.source_extent().first, r.source_extent().last); },
          "The bytes [first, last) of the source array that are touched.")
      .def_prop_ro(
          "destination_extent",
          [](const AddressRelation& r) {
            return nb::make_tuple(r.destination_extent().first, r.destination_extent().last);
          },
          "The bytes [first, last) of the destination array that are touched.")
      .def_prop_ro("workspace_bytes", &AddressRelation::workspace_bytes, "Memory that this object holds.")
      .def("__len__", &AddressRelation::elements)
      .def("__getitem__", &stretch_of, nb::arg("positions"), "The relation of consecutive positions.",
           nb::sig("def __getitem__(self, positions: slice, /) -> AddressRelation"))
      .def("__getitem__", &pair_of, nb::arg("position"), "The pair (source offset, destination offset) at a position.",
           nb::sig("def __getitem__(self, position: int, /) -> tuple[int, int]"))
      .def(
          "__eq__",
          [](const AddressRelation& a, const nb::object& b) {
            return nb::isinstance<AddressRelation>(b) && a == nb::cast<const AddressRelation&>(b);
          },
          nb::arg("other"), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__",
           [](const AddressRelation& r) {  // of what equal relations have in common, however they are kept
             return nb::hash(nb::make_tuple(r.element_bytes(), r.elements(), r.source_extent().first,
                                            r.source_extent().last, r.destination_extent().first,
                                            r.destination_extent().last, int(r.reduction().op())));
           })
      .def("__repr__",
           [](const AddressRelation& r) {
             return "<longshore.AddressRelation: " + std::to_string(r.elements()) + " elements of " +
                    std::to_string(r.element_bytes()) + " bytes, " + RelationProgram(r).describe() + ">";
           })
      .def(
          "pairs", [](const AddressRelation& r) { return to_rows<2>(r.pairs()); },
          "All pairs of byte offsets in message order, shape (n, 2), int64.",
          nb::sig("def pairs(self) -> numpy.typing.NDArray"))
      .def(
          "source_segments", [](const AddressRelation& r) { return to_rows<2>(r.source_segments()); },
          "The source side as a gather list (iovec): rows of (offset, bytes) in message order, neighbours joined.",
          nb::sig("def source_segments(self) -> numpy.typing.NDArray"))
      .def(
          "destination_segments", [](const AddressRelation& r) { return to_rows<2>(r.destination_segments()); },
          "The destination side as a scatter list: rows of (offset, bytes) in message order, neighbours joined.",
          nb::sig("def destination_segments(self) -> numpy.typing.NDArray"))
      .def(
          "inverse",
          [](const AddressRelation& r, const nb::object& dtype, const nb::object& reduce) {
            return r.inverse(reduce.is_none() ? Reduction() : Element(dtype, reduce).reduction);
          },
          nb::arg("dtype") = nb::none(), reduce_doc,
          "Source and destination exchanged. Where sources are replicated that needs `dtype` and `reduce`.")
      .def(
          "compose", [](const AddressRelation& r, const AddressRelation& next) { return r.compose(next); },
          nb::arg("next"), "First this relation, then `next`: the pairs (a, c) with (a, b) here and (b, c) there.")
      .def("restrict", &AddressRelation::restrict, nb::arg("first"), nb::arg("last"),
           "The pairs at the message's positions [first, last).")
      .def(
          "sorted", [](const AddressRelation& r, const std::string& by) { return r.sorted(order_of(by)); },
          nb::arg("by"),
          "The same pairs in the paper's order, by \"source\" offsets first or by \"destination\" offsets.")
      .def(
          "is_sorted", [](const AddressRelation& r, const std::string& by) { return r.is_sorted(order_of(by)); },
          nb::arg("by"), "True when the pairs are in that order.")
      .def("canonical", &AddressRelation::canonical, "The same pairs in the same order in the least structure.")
      .def("same_pairs", &AddressRelation::same_pairs, nb::arg("other"), "The same set of pairs, in any order.")
      .def("assembly", &AddressRelation::assembly, "Source -> dense message: the sender's half (send/receive model).")
      .def("disassembly", &AddressRelation::disassembly, "Dense message -> destination: the receiver's half.")
      .def(
          "program", [](const AddressRelation& r) { return RelationProgram(r); },
          "Compiled: source -> destination in one step.")
      .def(
          "assembler", [](const AddressRelation& r) { return Assembler(r); }, "The sender's half, compiled.")
      .def(
          "disassembler", [](const AddressRelation& r) { return Disassembler(r); }, "The receiver's half, compiled.")
      .def(
          "move",
          [](nb::handle self, const nb::object& source, const nb::object& destination) {
            return self.attr("program")()(source, destination);
          },
          nb::arg("source"), nb::arg("destination"),
          "The paper's generalised memcpy (section 6): moves every pair between two arrays of this process, once. For "
          "repeated moves keep program(). Raises LocalArrayError where an array is too small, read-only, or overlaps "
          "the other.",
          nb::sig("def move(self, source: object, destination: object) -> typing.Any"))
      .def_prop_ro(
          "source_pattern", [](const AddressRelation& r) { return to_dict(pattern_of(r, true)); },
          "How the source is read, innermost first: contiguous `block_bytes`, then `loops` of (count, stride in "
          "bytes); `regular` is false where no one nest says it: block-cyclic meets block-cyclic, or lists.")
      .def_prop_ro(
          "destination_pattern", [](const AddressRelation& r) { return to_dict(pattern_of(r, false)); },
          "How the destination is written, as in source_pattern.")
      .def("__reduce__", [](const AddressRelation& r) {
        const auto bytes = Encoding(r, EncodingKind::nest).to_bytes();
        return nb::make_tuple(nb::module_::import_("longshore._api").attr("_relation_from_bytes"),
                              nb::make_tuple(nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size())));
      });
  bind_programs(module);

  module.def(
      "kernel_names",
      [] {
        std::vector<std::string> names;
        for (const auto* table : available_kernels()) names.push_back(table->name);
        return names;
      },
      "The kernel tables this CPU can run; the last is the fastest.");
}

}  // namespace longshore::python

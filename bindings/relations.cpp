#include "longshore/relations/copy_program.hpp"

#include "rooms.hpp"

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

}  // namespace

void bind_relations(nb::module_& module) {
  nb::class_<LoopNest>(module, "LoopNest",
                              "An ordered set of (source offset, destination offset) pairs in bytes, kept as a loop nest and never "
                              "enumerated (Dinda & O'Hallaron, section 2). The order is the order of the message.")
      .def_prop_ro("element_bytes", &LoopNest::element_bytes, "Bytes of one element.")
      .def_prop_ro("elements", &LoopNest::elements, "Number of pairs.")
      .def_prop_ro("bytes", &LoopNest::bytes, "Bytes of the message.")
      .def("__len__", &LoopNest::elements)
      .def("__getitem__", [](const LoopNest& r, Index position) {
             if (position < 0) position += r.elements();
             if (position < 0 || position >= r.elements()) throw nb::index_error("position outside the relation");
             const auto pair = r.at(position);
             return nb::make_tuple(pair.source, pair.destination);
           }, nb::arg("position"), "The pair (source offset, destination offset) at a position.",
           nb::sig("def __getitem__(self, position: int) -> tuple[int, int]"))
      .def_prop_ro("source_pattern", [](const LoopNest& r) { return to_dict(r.source_pattern()); },
                   "How the source is read, innermost first: contiguous `block_bytes`, then `loops` of (count, stride in bytes); "
                   "`regular` is false where block-cyclic meets block-cyclic and the loops show the commonest run.")
      .def_prop_ro("destination_pattern", [](const LoopNest& r) { return to_dict(r.destination_pattern()); },
                   "How the destination is written, as in source_pattern.")
      .def_prop_ro("contiguous_source", &LoopNest::contiguous_source,
                   "Byte offset of the message in the source if it lies there contiguously, else None.")
      .def_prop_ro("contiguous_destination", &LoopNest::contiguous_destination,
                   "Byte offset of the message in the destination if it lies there contiguously, else None.")
      .def_prop_ro("program", [](const LoopNest& r) { return CopyProgram(r).describe(); },
                   "What a direct copy of this relation runs, in words.");

  module.def("kernel_names", [] {
    std::vector<std::string> names;
    for (const auto* table : available_kernels()) names.push_back(table->name);
    return names;
  }, "The kernel tables this CPU can run; the last is the fastest.");
  module.def("copy_bytes", [](std::uintptr_t destination, std::uintptr_t source, Index n, bool streaming) {
    nb::gil_scoped_release release;
    const auto& table = kernels();
    table.copy(reinterpret_cast<std::byte*>(destination), reinterpret_cast<const std::byte*>(source), n,
               streaming ? Stores::streaming : Stores::cached);
    if (streaming) table.fence();
  }, nb::arg("destination"), nb::arg("source"), nb::arg("n"), nb::arg("streaming") = false,
     "One contiguous copy of n bytes between addresses, with ordinary or non-temporal stores: the limit benchmarks compare with.");
}

}  // namespace longshore::python

#include "longshore/copies/chunks.hpp"

#include "rooms.hpp"

namespace longshore::python {

namespace {

/// Memory that Python holds, by address: elements are of any type, so that no kind of NumPy array says it.
std::byte* at(std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

/// A box as Python has it: where its first element is, and NumPy's strides.
ArrayBox to_box(std::uintptr_t address, std::vector<Index> start, std::vector<Index> extents,
                std::vector<Index> strides) {
  return {at(address), std::move(start), std::move(extents), std::move(strides)};
}

std::vector<std::byte> fill_of(const std::optional<nb::bytes>& fill, Index element_bytes) {
  if (!fill) return {};
  if (Index(fill->size()) != element_bytes)
    throw Error(ErrorKind::argument, "a fill value of " + std::to_string(fill->size()) + " bytes for elements of " +
                                         std::to_string(element_bytes));
  const auto* first = reinterpret_cast<const std::byte*>(fill->c_str());
  return {first, first + element_bytes};
}

std::vector<Index> count(const ChunkBuffers& self, const std::vector<Index>& start, const std::vector<Index>& extents) {
  return count_in_chunks(start, extents, self);
}

}  // namespace

void bind_chunks(nb::module_& module) {
  nb::class_<ChunkBuffers>(module, "ChunkBuffers",
                           "Which chunks of an array of this shape are to be filled, those in the box [first, first + "
                           "counts) of the grid, and how far they are. Chunk k, in C order, begins at slots[k] of "
                           "memory (-1: it has no buffer), lacks missing[k] elements, and digests[k] is the digest of "
                           "what has come. These four are arrays of the caller's, given by address.")
      .def(
          "__init__",
          [](ChunkBuffers* self, std::vector<Index> shape, std::vector<Index> chunk, std::vector<Index> first,
             std::vector<Index> counts, Index element_bytes, const std::optional<nb::bytes>& fill,
             std::uintptr_t memory, std::uintptr_t slots, std::uintptr_t missing, std::uintptr_t digests) {
            new (self) ChunkBuffers{std::move(shape),
                                    std::move(chunk),
                                    std::move(first),
                                    std::move(counts),
                                    element_bytes,
                                    fill_of(fill, element_bytes),
                                    at(memory),
                                    reinterpret_cast<const Index*>(slots),
                                    reinterpret_cast<Index*>(missing),
                                    reinterpret_cast<std::uint64_t*>(digests)};
          },
          nb::arg("shape"), nb::arg("chunk"), nb::arg("first"), nb::arg("counts"), nb::arg("element_bytes"),
          nb::arg("fill").none(), nb::arg("memory"), nb::arg("slots"), nb::arg("missing"), nb::arg("digests"))
      .def(
          "scatter",
          [](const ChunkBuffers& self, std::uintptr_t address, std::vector<Index> start, std::vector<Index> extents,
             std::vector<Index> strides) {
            nb::gil_scoped_release unlocked;
            return scatter_to_chunks(to_box(address, std::move(start), std::move(extents), std::move(strides)), self);
          },
          nb::arg("address"), nb::arg("start"), nb::arg("extents"), nb::arg("strides"),
          "Copies the elements of a box to the chunks they belong to. Returns the chunks that are complete now.")
      .def("count", &count, nb::arg("start"), nb::arg("extents"), nb::call_guard<nb::gil_scoped_release>(),
           "Counts the elements of a box that the buffers hold already, as `scatter` does when it brings them. Returns "
           "the chunks that are complete now.");
  module.def(
      "element_digest",
      [](std::uintptr_t address, std::vector<Index> start, std::vector<Index> extents, std::vector<Index> strides,
         const std::vector<Index>& shape, Index element_bytes, const std::optional<nb::bytes>& fill) {
        const auto skipped = fill_of(fill, element_bytes);
        nb::gil_scoped_release unlocked;
        return element_digest(to_box(address, std::move(start), std::move(extents), std::move(strides)), shape,
                              element_bytes, skipped.empty() ? nullptr : skipped.data());
      },
      nb::arg("address"), nb::arg("start"), nb::arg("extents"), nb::arg("strides"), nb::arg("shape"),
      nb::arg("element_bytes"), nb::arg("fill") = nb::none(),
      "The digest of a box's elements at their places in an array of this shape; boxes that cover it add up, modulo "
      "2^64. Elements that are `fill` add nothing.");
}

}  // namespace longshore::python

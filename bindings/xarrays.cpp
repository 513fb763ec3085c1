#include "longshore/layouts/xarray.hpp"

#include "longshore/movers/mover.hpp"
#include "points.hpp"

namespace longshore::python {

namespace {

/// Grids over NumPy's arrays, which keep their memory alive.
XArray over(const FloorPlan& blocks, std::optional<Index> rank, Index itemsize, nb::handle ghost,
            std::vector<LocalArray> arrays, const std::string& name, bool written, const std::string& order) {
  const GhostWidths widths = to_widths(ghost, blocks.dims());
  std::vector<Index> owned = rank ? blocks.owned_by(*rank) : std::vector<Index>();
  if (!rank)
    for (Index k = 0; k < blocks.size(); ++k) owned.push_back(k);
  if (owned.size() != arrays.size())
    throw Error(ErrorKind::argument, std::to_string(arrays.size()) + " " + name + " arrays for " +
                                         std::to_string(owned.size()) + " blocks" +
                                         (rank ? " of rank " + std::to_string(*rank) : std::string()));
  std::vector<Grid> grids;
  std::vector<std::shared_ptr<const MemoryOwner>> memory_owners;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    auto& array = arrays[i];
    const Region region = blocks.region(owned[i]).grow(widths.below, widths.above);
    const std::string who = "the " + name + " array of block " + std::to_string(owned[i]) + " ";
    if (!(array.shape == region.shape()))
      throw Error(ErrorKind::shape, who + "has shape " + array.shape.to_string() + ", its region with ghost cells " +
                                        region.to_string() + " has " + region.shape().to_string());
    if (written && array.read_only && !region.empty())
      throw Error(ErrorKind::buffer, who + "is read-only; give the move one that can be written");
    grids.push_back({region, array.data, array.strides, itemsize});
    memory_owners.push_back(std::move(array.owner));
  }
  return XArray::over(blocks, rank, {itemsize, widths, to_order(order)}, std::move(grids), std::move(memory_owners));
}

}  // namespace

void bind_xarrays(nb::module_& module) {
  nb::class_<XArray>(module, "Grids", "The storage of an XArray, or arrays of one's own, as movers take them.")
      .def_static("over", &over, nb::arg("blocks"), nb::arg("rank").none(), nb::arg("itemsize"), nb::arg("ghost"),
                  nb::arg("arrays"), nb::arg("name"), nb::arg("written"), nb::arg("order"),
                  "Over one array a block that the rank owns (none: all blocks).")
      .def_static(
          "make",
          [](const FloorPlan& blocks, std::optional<Index> rank, Index itemsize, nb::handle ghost,
             const std::string& order) {
            return XArray(blocks, rank, {itemsize, to_widths(ghost, blocks.dims()), to_order(order)});
          },
          nb::arg("blocks"), nb::arg("rank").none(), nb::arg("itemsize"), nb::arg("ghost"), nb::arg("order"),
          "In ordinary memory, all zeros.")
      .def_prop_ro(
          "owned", [](const XArray& array) { return array.owned(); }, "The blocks with storage, ascending.")
      .def_prop_ro("rank", &XArray::rank, "Whose blocks have storage; None: everybody's.")
      .def_prop_ro(
          "blocks", [](const XArray& array) { return array.blocks(); }, "The floor plan.")
      .def(
          "address", [](const XArray& array, Index block) { return std::uintptr_t(array.grid(block).data); },
          nb::arg("block"), "Where a block's storage begins.")
      .def(
          "strides", [](const XArray& array, Index block) { return to_tuple(array.grid(block).strides); },
          nb::arg("block"), "Bytes, a dimension each.")
      .def(
          "region", [](const XArray& array, Index block) { return array.grid(block).region; }, nb::arg("block"),
          "What a block has storage for, ghost cells included.");
}

}  // namespace longshore::python

#include "longshore/plans/block_relation.hpp"

#include <algorithm>

namespace longshore {

namespace {

/// A box of a grid, to or from a dense message, the dimension that is visited fastest last.
struct Side {
  std::vector<Index> extents, strides, dense;
  Index base = 0;

  Side(const Region& region, const Grid& grid, Order visit) : base(grid.offset_of(region.lower())) {
    for (std::size_t d = 0; d < region.dims(); ++d) extents.push_back(region.extent(d));
    strides = grid.strides;
    dense = Grid::dense_strides(region, visit, grid.element_bytes);
    if (visit == Order::C) return;
    for (auto* values : {&extents, &strides, &dense}) std::reverse(values->begin(), values->end());
  }
};

void check(const BlockMotion& motion, const Region& region, const Grid& grid, const char* what, Index block) {
  if (!grid.region.contains(region))
    throw Error(ErrorKind::argument, motion.to_string() + ": the " + what + " region is not within the storage of " + what +
                                         " block " + std::to_string(block) + ", " + grid.region.to_string() + "; give it more ghost cells");
}

}  // namespace

AddressRelation block_relation(const BlockMotion& motion, const Grid& source, const Grid& destination, Order visit,
                               const Reduction& reduction) {
  check(motion, motion.source_region, source, "source", motion.source);
  check(motion, motion.destination_region, destination, "destination", motion.destination);
  if (source.element_bytes != destination.element_bytes)
    throw Error(ErrorKind::type, motion.to_string() + ": elements of " + std::to_string(source.element_bytes) + " and of " +
                                     std::to_string(destination.element_bytes) + " bytes");
  if (motion.source_region.size() != motion.destination_region.size())
    throw Error(ErrorKind::shape, motion.to_string() + ": the regions do not have the same number of points");
  const Index element = source.element_bytes;
  if (motion.source_region.empty()) return AddressRelation(element, reduction);
  const Side from(motion.source_region, source, visit), to(motion.destination_region, destination, visit);
  if (from.extents == to.extents)
    return AddressRelation::strided(element, from.extents, from.strides, to.strides, from.base, to.base, reduction);
  // Other shapes meet in the message.
  const auto assembly = AddressRelation::strided(element, from.extents, from.strides, from.dense, from.base, 0);
  const auto disassembly = AddressRelation::strided(element, to.extents, to.dense, to.strides, 0, to.base);
  return assembly.compose(disassembly, reduction);
}

}  // namespace longshore

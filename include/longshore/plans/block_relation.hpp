/// Motions between blocks, brought down to the addresses of two grids.
#pragma once

#include "longshore/layouts/grid.hpp"
#include "longshore/plans/block_plan.hpp"
#include "longshore/relations/address_relation.hpp"

namespace longshore {

/// The motion as byte offsets from the two grids' `data`, points visited in column-major order (the Data Mover's) or in
/// row-major order on both sides, the source's dimensions permuted by the motion's axes; lists in their order. Throws
/// `Error(argument)` where a region is outside its grid, `Error(type)` where element sizes differ, `Error(shape)` where
/// the numbers of points do; all name the blocks.
AddressRelation block_relation(const BlockMotion& motion, const Grid& source, const Grid& destination,
                               Order visit = Order::F, const Reduction& reduction = {});

/// What a motion touches of one grid, and where that begins: a box of elements, or a list of them. Two that differ in
/// nothing but their place differ in nothing but `offset`.
struct Footprint {
  Index element_bytes = 0, offset = 0;  ///< bytes from the grid's data to the first element
  std::vector<Index> extents, strides;  ///< of a box
  std::vector<Index> places;            ///< of a list: bytes from the first element

  /// The same elements in a dense message, in the order in which they are visited.
  Footprint message(Order visit) const;
};

/// Throw `Error(argument)` where the motion's region is outside the grid.
Footprint source_footprint(const BlockMotion& motion, const Grid& source);
Footprint destination_footprint(const BlockMotion& motion, const Grid& destination);
/// Element for element, boxes in the order of the visit.
AddressRelation relation_between(const Footprint& from, const Footprint& to, Order visit, const Reduction& reduction);

}  // namespace longshore

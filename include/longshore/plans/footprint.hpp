/// Motions between blocks, brought down to the addresses of grids: what a motion touches of one, and the relation of
/// two.
#pragma once

#include "longshore/layouts/grid.hpp"
#include "longshore/plans/block_plan.hpp"
#include "longshore/relations/address_relation.hpp"

namespace longshore {

/// What a motion touches of one grid, and where that begins: a box of elements, or a list of them. Two that differ in
/// nothing but their place differ in nothing but `offset`.
struct Footprint {
  Index element_bytes = 0, offset = 0;  ///< bytes from the grid's data to the first element
  std::vector<Index> extents, strides;  ///< of a box
  std::vector<Index> places;            ///< of a list: bytes from the first element

  /// The same elements in a dense message, in the order in which they are visited.
  Footprint message(Order visit) const;
};

/// Of a motion's source, its dimensions permuted by the motion's axes, and of its destination. Throw `Error(argument)`
/// where the motion's region is outside the grid, naming the block.
Footprint source_footprint(const BlockMotion& motion, const Grid& source);
Footprint destination_footprint(const BlockMotion& motion, const Grid& destination);
/// The elements of one to those of the other, as byte offsets from the grids' data: boxes visited in this order on both
/// sides, lists in their own.
AddressRelation relation_between(const Footprint& from, const Footprint& to, Order visit, const Reduction& reduction);

}  // namespace longshore

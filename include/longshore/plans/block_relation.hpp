/// Motions between blocks, brought down to the addresses of two grids.
#pragma once

#include "longshore/layouts/grid.hpp"
#include "longshore/plans/block_plan.hpp"
#include "longshore/relations/address_relation.hpp"

namespace longshore {

/// The motion as byte offsets from the two grids' `data`, points visited in column-major order (the Data Mover's) or in row-major
/// order on both sides. Throws `Error(argument)` where a region is outside its grid, `Error(type)` where element sizes differ,
/// `Error(shape)` where the numbers of points do; all name the blocks.
AddressRelation block_relation(const BlockMotion& motion, const Grid& source, const Grid& destination, Order visit = Order::F,
                               const Reduction& reduction = {});

}  // namespace longshore

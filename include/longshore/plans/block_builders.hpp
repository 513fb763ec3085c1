/// Plans between blocks that follow from floor plans: halos, copies, transposes, restriction and prolongation, panels,
/// the ghosts of finite elements. With a rank, a plan holds that rank's motions only.
#pragma once

#include "longshore/plans/block_plan.hpp"

namespace longshore {

/// Ghost cells of blocks, filled from the blocks that own them. Throws `Error(argument)` for negative widths, and where
/// something is periodic that the domain does not say.
BlockPlan halo_exchange(FloorPlan blocks, Halo halo, std::optional<Index> rank = {});
/// Every point of a destination block from the source blocks that have it. Where source blocks
/// overlap, that is a race. What lies outside a periodic domain comes from its images. Throws
/// `Error(argument)` for sources outside a periodic domain.
BlockPlan copy_between(FloorPlan source, FloorPlan destination, std::optional<Index> rank = {}, Region domain = {},
                       std::vector<bool> periodic = {});
/// The same with permuted dimensions: point p goes to the point q with q[d] = p[axes[d]].
BlockPlan transpose(FloorPlan source, FloorPlan destination, Axes axes, std::optional<Index> rank = {});

// Copies between floor plans that are derived from those given;
// `source()` and `destination()` are what arrays are made for.

/// Restriction: what fine blocks have worked out on the coarse mesh, `fine.coarsen(ratio)`, to the
/// coarse blocks; from outside a periodic domain, which is the coarse mesh's, to where it is an
/// image of. Fine blocks that share a coarse cell race for it.
BlockPlan coarsen_fine(const FloorPlan& fine, FloorPlan coarse, const Point& ratio, std::optional<Index> rank = {},
                       Region domain = {}, std::vector<bool> periodic = {});
/// Prolongation: the coarse cells under every fine block and `width` around it, `fine.coarsen(ratio).grow(width)`,
/// from the coarse blocks. The domain is the coarse mesh's. Throws `Error(argument)` for negative widths.
BlockPlan refine_coarse(FloorPlan coarse, const FloorPlan& fine, const Point& ratio, const Point& width,
                        std::optional<Index> rank = {}, Region domain = {}, std::vector<bool> periodic = {});
/// Of SUMMA: to every block, the panel [first, last) of one dimension over its own extent in the
/// others, `blocks.with_range(dim, first, last)`. Throws `Error(argument)` where there is no such
/// dimension, and where nobody has a part of a panel, naming both.
BlockPlan broadcast(FloorPlan blocks, std::size_t dim, Index first, Index last, std::optional<Index> rank = {});

/// The halo of a mesh of finite elements: blocks of one dimension own ranges of vertices, and block k wants the
/// vertices needed[k] of others, too. They land behind its own in the order in which they are listed: both floor
/// plans of the plan are the blocks, each so much longer. Reversed and combining, it adds what was worked out for
/// ghosts to their owners. Throws `Error(shape)` for other dimensions and another number of lists, `Error(argument)`
/// where blocks overlap, or nobody has a vertex.
BlockPlan gather_points(const FloorPlan& blocks, std::span<const std::vector<Index>> needed,
                        std::optional<Index> rank = {});

}  // namespace longshore

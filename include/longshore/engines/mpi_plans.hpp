/// engines/mpi: plans of which each rank knows only what it needs itself. Owners are found by messages, and no rank
/// ever holds everybody's needs: each gets its share of the plan (`BlockPlan::rank`), with the whole plan's digest.
#pragma once

#include <span>
#include <vector>

#include "longshore/layouts/layout.hpp"
#include "longshore/mpi/directory.hpp"
#include "longshore/plans/block_plan.hpp"

namespace longshore::mpi {

/// `longshore::gather_points` where each rank knows what its own blocks need: `needed[i]` is a list of vertices for the
/// i-th of `blocks.owned_by(rank)`, in any order; a vertex may come several times, and may be the block's own. The plan
/// is what `gather_points(blocks, everybody's lists, rank)` gives. Collective; all ranks give the same blocks, whose
/// owners are ranks of `comm`. Throws on every rank where one throws: as `gather_points`, and `Error(disagreement)`
/// where ranks give different blocks.
///
/// Takes memory in proportion to what a rank needs and others need of it, but for the floor plan and two numbers a
/// block.
BlockPlan gather_points(const FloorPlan& blocks, std::span<const std::vector<Index>> needed, CommHandle comm);

/// The same of numbers in a directory, which ranks own as they please. Both floor plans of the plan are one block a
/// rank, [0, owned + needed): what it owns at its local places, then what it needs, in the order in which it is listed.
/// Numbers may come several times. Collective. Throws `Error(argument)` on every rank where one needs a number that
/// nobody owns, or that it owns itself, naming it.
BlockPlan gather_points(const Directory& directory, std::span<const Index> needed);

/// Any elements of an array with a layout, as a list: `indices` has one index after the other, a number a dimension, in
/// any order; repeated ones come as often. Owners follow from the layout, of replicas this rank's own where it has one.
/// Source block r is rank r's local array, [0, layout.local_shape(r)); destination block r is the list of rank r, a
/// region of (n, 1, ...). Reversed, the plan scatters. Collective; all ranks give the same layout, whose ranks are
/// those of `comm`. Throws `Error(argument)` on every rank where an index is outside the array, naming it and the
/// dimension.
BlockPlan gather_indices(const Layout& layout, std::span<const Index> indices, CommHandle comm);

/// `longshore::copy_between` where each rank knows which regions it wants itself. The destination blocks are those of
/// rank 0, then those of rank 1, ...: floor plans are everybody's, so each rank gets the bounds of all regions, but
/// finds its own neighbours only. Collective; all ranks give the same blocks, domain and periodic dimensions.
BlockPlan copy_between(const FloorPlan& source, std::span<const Region> wanted, CommHandle comm, Region domain = {},
                       std::vector<bool> periodic = {});

}  // namespace longshore::mpi

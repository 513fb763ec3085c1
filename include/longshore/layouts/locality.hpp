/// In which order to number ranks so that those who talk to each other are near: tiles, Hilbert's curve, nodes. Each
/// order is a `RankMap` of everybody; `keys_of` makes it the keys of a split.
#pragma once

#include <span>
#include <vector>

#include "longshore/ranks/rank_map.hpp"

namespace longshore {

/// The ranks of a process grid, numbered with the last dimension fastest, visited tile by tile: the tiles in the order
/// of the grid, and the ranks of each in the same order. A closed form where the tile divides the grid, else tiles at
/// the upper ends are cut. Throws `Error(argument)` where an extent is less than 1 or there are not equally many.
RankMap tiled_order(std::span<const Index> shape, std::span<const Index> tile);

/// The same ranks along Hilbert's curve: each is a neighbour of the
/// one before where extents are one power of two, near it elsewhere.
RankMap hilbert_order(std::span<const Index> shape);

/// The order in which a grid goes to processes: the i-th rank of the grid that `cells` visits belongs to the i-th of
/// `processes`. As a numbering of the processes: member c is the one that takes rank c of the grid. With `cells` in
/// tiles and `processes` by node, nodes get tiles. Throws `Error(argument)` unless both are orders of the same world.
RankMap placed_order(const RankMap& cells, const RankMap& processes);

/// For each rank, the key for MPI_Comm_split with which the split numbers ranks in this order:
/// member i of the order becomes rank i. Who wants the key of one rank alone asks `order.rank(w)`.
/// Throws `Error(argument)` unless everybody is in the order.
std::vector<Index> keys_of(const RankMap& order);

}  // namespace longshore

/// The algebra of groups on rank maps: in MPI's order, and as sets. Nothing is enumerated where the forms allow.
#pragma once

#include "longshore/ranks/strategy.hpp"

namespace longshore {

// As MPI_Group_union and its like order them: members of `a` in their order; in a union, those of `b` alone follow in
// theirs. Maps are of one world, or `Error(argument)` is thrown.
RankMap group_union(const RankMap& a, const RankMap& b, const Strategy& strategy = {});
RankMap group_intersection(const RankMap& a, const RankMap& b, const Strategy& strategy = {});
RankMap group_difference(const RankMap& a, const RankMap& b, const Strategy& strategy = {});

// As sets: what comes out ascends, whatever goes in.
RankMap set_union(const RankMap& a, const RankMap& b, const Strategy& strategy = {});
RankMap set_intersection(const RankMap& a, const RankMap& b, const Strategy& strategy = {});
RankMap set_difference(const RankMap& a, const RankMap& b, const Strategy& strategy = {});
/// The same members, ascending.
RankMap as_set(const RankMap& map, const Strategy& strategy = {});

/// MPI's range of group ranks: first, first + stride, ... up to `last`, which is one of them if the stride leads there,
/// and may lie outside the group if not. A stride that leads away from `last` is `Error(argument)`.
struct RankRange {
  Index first, last, stride;
};

/// The members at these positions, in this order; all but them, in the map's order. Positions outside [0, size()), or
/// that come twice, are `Error(argument)`.
RankMap group_incl(const RankMap& map, std::span<const Index> positions, const Strategy& strategy = {});
RankMap group_excl(const RankMap& map, std::span<const Index> positions, const Strategy& strategy = {});
RankMap group_range_incl(const RankMap& map, std::span<const RankRange> ranges, const Strategy& strategy = {});
RankMap group_range_excl(const RankMap& map, std::span<const RankRange> ranges, const Strategy& strategy = {});

/// Members grouped by node, nodes in the order of their first member, members of a node in theirs. nodes[w]: a number
/// for the node of member w, any that tells nodes apart.
RankMap node_order(std::span<const Index> nodes);

/// Where members of `a` are in `b`, or `nobody`: of these positions, or of all.
std::vector<Index> translate_ranks(const RankMap& a, std::span<const Index> positions, const RankMap& b);
std::vector<Index> translate_ranks(const RankMap& a, const RankMap& b);

Comparison compare(const RankMap& a, const RankMap& b);

/// The members of one colour.
struct ColourGroup {
  Index colour;
  RankMap members;
};
/// MPI_Comm_split: a colour and a key for each member; groups by ascending colour, their members by key, and by their
/// order in the parent where keys are equal. Members of a negative colour are in no group. No keys: all equal. A group
/// of everybody shares the parent and adds a permutation.
std::vector<ColourGroup> by_colour(const RankMap& parent, std::span<const Index> colours, std::span<const Index> keys,
                                   const Strategy& strategy = {});

}  // namespace longshore

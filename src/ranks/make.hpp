/// Making maps: of members that are to be checked, and of those that are known to be distinct ranks of the world.
#pragma once

#include "longshore/ranks/rank_module.hpp"

namespace longshore::ranks {

/// Of any members: throws `Error(argument)` where one is outside the world or comes twice.
RankMap make_checked(const Members& members, Index world, const Strategy& strategy);
RankMap make_trusted(const Members& members, Index world, const Strategy& strategy);
/// With an analysis that is there already.
RankMap make_analysed(const Members& members, const Analysis& analysis, const Strategy& strategy);

/// A map of its own instead of a child of another, where it is not too large to be looked at.
RankMap flattened(const RankMap& map, const Strategy& strategy);

}  // namespace longshore::ranks

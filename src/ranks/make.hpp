/// Making maps of members that are known to be distinct ranks of the world.
#pragma once

#include "longshore/ranks/rank_module.hpp"

namespace longshore::ranks {

/// As `analyse_order`, but for what only maps that repeat are looked through
/// for: grammars and diagrams. Of `repetitive` members more runs are kept.
Analysis analyse_simply(const Members& members, Index world, bool repetitive = false);

RankMap make_trusted(const Members& members, Index world, const Strategy& strategy);
/// With an analysis that is there already.
RankMap make_analysed(const Members& members, const Analysis& analysis, const Strategy& strategy);

/// A map of its own instead of a child of another, where it is not too large to be looked at.
RankMap flattened(const RankMap& map, const Strategy& strategy);

/// A map as affine runs one after the other, where its form says
/// them without a look at each member and they are at most so many.
std::optional<std::vector<AffineRun>> known_runs(const RankMap& map, Index most);

/// The runs that the same members are put together to one by one: of equal members, equal ones.
std::vector<AffineRun> merged_runs(std::span<const AffineRun> runs);

/// Whether two maps that are not closed forms are kept in the same words; if not, they may be equal all the same.
bool same_words(const RankMap& a, const RankMap& b);

}  // namespace longshore::ranks

/// Making maps of members that are known to be distinct ranks of the world.
#pragma once

#include "longshore/ranks/rank_module.hpp"

namespace longshore::ranks {

RankMap make_trusted(const Members& members, Index world, const Strategy& strategy);
/// With an analysis that is there already.
RankMap make_analysed(const Members& members, const Analysis& analysis, const Strategy& strategy);

}  // namespace longshore::ranks

/// What the analysis of a map looks for, apart from what its one pass counts.
#pragma once

#include "longshore/ranks/rank_module.hpp"

namespace longshore::ranks {

/// As `analyse_order`, but for what only maps that repeat are looked through for: grammars and diagrams. Of
/// `repetitive` members more runs are kept.
Analysis analyse_simply(const Members& members, Index world, bool repetitive = false);

/// The loops that the runs are, level by level; or, where the firsts of some level follow no rule, the list of them and
/// the loops inside.
void find_loops(Analysis& analysis);
/// Members at random that all are some unit apart, as leaders of nodes are: as the list of how many units.
void find_unit(Analysis& analysis, const Members& members);

/// Whether stretches of some steps come again and again: looked at in a few places. They are long enough not to in sets
/// that are dense, but otherwise at random.
bool is_repetitive(const Members& members);
/// About how large a grammar of the steps is.
void estimate_grammar(Analysis& analysis);

}  // namespace longshore::ranks

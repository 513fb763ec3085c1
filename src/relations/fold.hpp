/// From runs to loop nests: what repeats in step is folded into loops, level by level.
#pragma once

#include "longshore/relations/address_relation.hpp"

namespace longshore {

/// The parts of a relation that has the reader's pairs in the reader's order. Repetitions become nests; runs that do
/// not repeat stay runs, and become pairs where that takes less memory.
std::vector<AddressRelation::Part> fold(Index element_bytes, RunReader& reader);

}  // namespace longshore

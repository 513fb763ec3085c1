/// What the algebra does to one part of a relation.
#pragma once

#include "longshore/relations/address_relation.hpp"

namespace longshore {

/// Source and destination exchanged.
AddressRelation::Part inverted(const AddressRelation::Part& part);

}  // namespace longshore

/// mpi: datatypes with a bound on their counts, so that tests need no lists of 2^31 blocks.
#pragma once

#include "longshore/mpi/datatypes.hpp"

namespace longshore::mpi {

/// `to_datatype` with counts up to `most` (at least 2) in one
/// constructor. Large counts are used only where that is int's largest.
DatatypeHandle to_datatype(const AddressRelation& relation, Side side, Index most);

/// So many bytes as one element, of blocks and a rest. Committed; whoever asks frees it.
DatatypeHandle byte_type(Index bytes, Index block_bytes);

}  // namespace longshore::mpi

/// movers/mpi: the export of datatypes with a bound on its counts, so that tests need no lists of 2^31 blocks.
#pragma once

#include "longshore/movers/mpi_datatypes.hpp"

namespace longshore::mpi {

/// `to_datatype` with counts up to `most` (at least 2) in one constructor. Large counts are used only where that is int's largest.
DatatypeHandle to_datatype(const AddressRelation& relation, Side side, Index most);

}  // namespace longshore::mpi

/// mpi: MPI's derived datatypes as address relations, and address relations as derived datatypes.
///
/// Nothing here is collective, and nothing communicates. Like `mpi.hpp`, this header names no MPI type: hand
/// over your `MPI_Datatype` as it is. MPI must be initialised, else `Error(argument)`. What MPI itself
/// reports becomes `Error(transport)` where its error handler lets calls return: for datatypes that is the
/// handler of MPI_COMM_SELF (MPI_COMM_WORLD before MPI-4), which is yours and is left as you set it. No call
/// here gives MPI anything that the standard calls an error.
#pragma once

#include "longshore/mpi/handle.hpp"
#include "longshore/relations/address_relation.hpp"

namespace longshore::mpi {

using DatatypeHandle = Handle<struct DatatypeTag>;

/// What MPI_Pack of `count` elements of a datatype does: offsets in the buffer, in the order of the typemap, to a dense
/// message. The datatype need not be committed. The relation's elements are the basic elements where these are of one
/// size, else the largest size that all of them are multiples of. What is regular stays loops: the time depends on how
/// the datatype was described, not on the elements. Throws `Error(argument)`, `Error(overflow)`, `Error(memory_limit)`
/// where repeated irregular content would take more than 2^26 lines.
AddressRelation from_datatype(DatatypeHandle type, Index count = 1);

/// What sending with one datatype and receiving with another does: the k-th byte of one typemap goes to the
/// k-th byte of the other. Throws `Error(shape)` too where there are not equally many bytes, and
/// `Error(argument)` where the destination overlaps itself.
AddressRelation from_datatypes(DatatypeHandle source, Index source_count, DatatypeHandle destination,
                               Index destination_count);

/// One side of a relation as a committed datatype, which the caller frees with MPI_Type_free. One element of it, from
/// the array's first byte, is the whole side in message order; its extent is not meant for more. Loops become vectors,
/// lists become indexed types, of unsigned integers where all offsets are aligned for them, of MPI_BYTE elsewhere.
/// Counts beyond int are made with large counts or, where MPI has none, of nested types. Throws `Error(argument)` for
/// the destination of a relation with a reduction, which no datatype can say.
DatatypeHandle to_datatype(const AddressRelation& relation, Side side);

}  // namespace longshore::mpi

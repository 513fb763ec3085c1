#include "mpi/byte_count.hpp"

#include <climits>

#include "mpi/datatypes.hpp"

namespace longshore::mpi {

DatatypeHandle byte_type(Index bytes, Index block_bytes) {
  const Index blocks = bytes / block_bytes;
  MPI_Datatype block = MPI_DATATYPE_NULL, made = MPI_DATATYPE_NULL;
  check_mpi(MPI_Type_contiguous(int(block_bytes), MPI_BYTE, &block), "MPI_Type_contiguous");
  const int counts[] = {int(blocks), int(bytes % block_bytes)};
  const MPI_Aint places[] = {0, MPI_Aint(blocks * block_bytes)};
  const MPI_Datatype types[] = {block, MPI_BYTE};
  const int code = MPI_Type_create_struct(2, counts, places, types, &made);
  MPI_Type_free(&block);
  check_mpi(code, "MPI_Type_create_struct");
  check_mpi(MPI_Type_commit(&made), "MPI_Type_commit");
  return made;
}

ByteCount::ByteCount(Index bytes) : count_(int(bytes)) {
  constexpr Index block_bytes = Index{1} << 24;  // with as many as an int counts, more than any memory has
  if (bytes > INT_MAX) count_ = 1, type_ = byte_type(bytes, block_bytes).get<MPI_Datatype>();
}

ByteCount::~ByteCount() {
  if (type_ != MPI_BYTE && mpi_alive()) MPI_Type_free(&type_);
}

Index ByteCount::received(const MPI_Status& status) {
  // Counted in MPI_BYTE: of a message shorter than the datatype, Open MPI does not count the elements.
  MPI_Count bytes = 0;
  check_mpi(MPI_Get_elements_x(&status, MPI_BYTE, &bytes), "MPI_Get_elements_x");
  return Index(bytes);
}

}  // namespace longshore::mpi

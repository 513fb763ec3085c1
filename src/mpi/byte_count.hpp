/// mpi: so many bytes as one MPI message, be they more than an int counts.
#pragma once

#include "mpi/communicator.hpp"

namespace longshore::mpi {

/// A count and a datatype that together are so many bytes: of MPI_BYTE, or one of a datatype made for them.
class ByteCount {
 public:
  explicit ByteCount(Index bytes);
  ByteCount(const ByteCount&) = delete;
  ByteCount& operator=(const ByteCount&) = delete;
  ~ByteCount();

  int count() const { return count_; }
  MPI_Datatype type() const { return type_; }
  /// How many of them a message brought.
  static Index received(const MPI_Status& status);

 private:
  int count_;
  MPI_Datatype type_ = MPI_BYTE;
};

}  // namespace longshore::mpi

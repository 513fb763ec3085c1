/// movers/mpi: so many bytes as one MPI message, be they more than an int counts.
#pragma once

#include <climits>

#include "movers/mpi/communicator.hpp"

namespace longshore::mpi {

/// A count and a datatype that together are so many bytes: of MPI_BYTE, or one of a datatype made for them.
class ByteCount {
 public:
  /// `most`: the largest count of bytes that needs no datatype of its own.
  explicit ByteCount(Index bytes, Index most = INT_MAX);
  ByteCount(const ByteCount&) = delete;
  ByteCount& operator=(const ByteCount&) = delete;
  ~ByteCount();

  int count() const { return count_; }
  MPI_Datatype type() const { return type_; }
  /// How many of them a message brought.
  Index received(const MPI_Status& status) const;

 private:
  int count_;
  MPI_Datatype type_ = MPI_BYTE;
};

}  // namespace longshore::mpi

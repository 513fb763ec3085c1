#include "mpi/subgroup.hpp"

#include <algorithm>
#include <bit>

#include "mpi/byte_count.hpp"

namespace longshore::mpi {

void Subgroup::send(Index to, const void* data, Index bytes) const {
  const ByteCount size(bytes);
  check_mpi(MPI_Send(data, size.count(), size.type(), int(members.select(to)), tag, comm), "MPI_Send");
}

void Subgroup::receive(Index from, void* data, Index bytes) const {
  const ByteCount size(bytes);
  check_mpi(MPI_Recv(data, size.count(), size.type(), int(members.select(from)), tag, comm, MPI_STATUS_IGNORE),
            "MPI_Recv");
}

Index branch(Index v, Index n) { return v == 0 ? n : std::min(v & -v, n - v); }

std::vector<Index> below(Index v, Index n) {
  std::vector<Index> children;
  for (auto bit = Index(std::bit_ceil(std::uint64_t(branch(v, n)))); (bit >>= 1) > 0;)
    if (v + bit < n) children.push_back(v + bit);
  return children;
}

}  // namespace longshore::mpi

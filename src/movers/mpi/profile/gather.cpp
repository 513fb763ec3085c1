#include "movers/mpi/profile/gather.hpp"

#include <algorithm>

namespace longshore::profile {

namespace {

constexpr int tag = 1;
constexpr std::size_t most_at_once = std::size_t{1} << 30;  // counts of MPI's are ints

void send(std::span<const std::byte> bytes, int to, MPI_Comm comm) {
  std::uint64_t size = bytes.size();
  mpi().Send(&size, sizeof size, mpi().byte, to, tag, comm);
  for (std::size_t at = 0; at < bytes.size(); at += most_at_once)
    mpi().Send(bytes.data() + at, int(std::min(most_at_once, bytes.size() - at)), mpi().byte, to, tag, comm);
}

std::vector<std::byte> receive(int from, MPI_Comm comm) {
  std::uint64_t size = 0;
  mpi().Recv(&size, sizeof size, mpi().byte, from, tag, comm, MPI_STATUS_IGNORE);
  std::vector<std::byte> bytes(size);
  for (std::size_t at = 0; at < bytes.size(); at += most_at_once)
    mpi().Recv(bytes.data() + at, int(std::min(most_at_once, bytes.size() - at)), mpi().byte, from, tag, comm, MPI_STATUS_IGNORE);
  return bytes;
}

}  // namespace

Summary gather(Summary own, MPI_Comm comm) {
  int rank = 0, size = 0;
  mpi().Comm_rank(comm, &rank), mpi().Comm_size(comm, &size);
  for (int step = 1; step < size; step *= 2) {
    if (rank & step) {
      send(own.to_bytes(), rank - step, comm);
      break;
    }
    if (rank + step >= size) continue;
    const auto bytes = receive(rank + step, comm);
    try {
      own.merge(Summary::from_bytes(bytes, own.world));
    } catch (const Error&) {
      own.unread += std::min(step, size - rank - step);
    }
  }
  return own;
}

}  // namespace longshore::profile

#include "profile/preload/gather.hpp"

#include <algorithm>
#include <array>

namespace longshore::profile {

namespace {

constexpr int tag = 1;
using Piece = std::array<std::byte, std::size_t{1} << 16>;

/// Of no bytes, where there is no memory for them.
std::vector<std::byte> written(const Summary& summary) noexcept {
  try {
    return summary.to_bytes();
  } catch (...) {
    return {};
  }
}

void send(std::span<const std::byte> bytes, int to, MPI_Comm comm) {
  std::uint64_t size = bytes.size();
  mpi().Send(&size, sizeof size, mpi().byte, to, tag, comm);
  for (std::size_t at = 0; at < size; at += sizeof(Piece))
    mpi().Send(bytes.data() + at, int(std::min(sizeof(Piece), bytes.size() - at)), mpi().byte, to, tag, comm);
}

/// All that was sent, or nothing: what there is no memory for is received all the same.
std::vector<std::byte> receive(int from, MPI_Comm comm) noexcept {
  std::uint64_t size = 0;
  mpi().Recv(&size, sizeof size, mpi().byte, from, tag, comm, MPI_STATUS_IGNORE);
  std::vector<std::byte> bytes;
  try {
    bytes.resize(size);
  } catch (...) {
  }
  Piece aside;
  for (std::size_t at = 0; at < size; at += sizeof(Piece))
    mpi().Recv(bytes.empty() ? aside.data() : bytes.data() + at, int(std::min(sizeof(Piece), size - at)), mpi().byte,
               from, tag, comm, MPI_STATUS_IGNORE);
  return bytes;
}

}  // namespace

void gather(Summary& own, MPI_Comm comm) noexcept {
  int rank = 0, size = 0;
  mpi().Comm_rank(comm, &rank), mpi().Comm_size(comm, &size);
  for (int step = 1; step < size; step *= 2) {
    if (rank & step) {
      send(written(own), rank - step, comm);
      return;
    }
    if (rank + step >= size) continue;
    const auto bytes = receive(rank + step, comm);
    try {
      own.merge(Summary::from_bytes(bytes, own.world));
    } catch (...) {
      own.unread += std::min(step, size - rank - step);
    }
  }
}

}  // namespace longshore::profile

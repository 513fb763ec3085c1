/// A grid of processes whose rows and columns are virtual communicators: each is a rank map of a few bytes, and MPI
/// makes no communicator but for the one collective.
#include <mpi.h>

#include <cstdio>
#include <numeric>

#include "longshore/mpi/virtual_comm.hpp"

using namespace longshore;

namespace {

/// Everybody's number to the next member and from the one before;
/// then from all to the first, in whatever order they come.
int wrong_messages(const mpi::VirtualComm& line, Index mine) {
  int wrong = 0;
  const Index next = (line.rank() + 1) % line.size(), before = (line.rank() + line.size() - 1) % line.size();
  for (const Index n : {Index{0}, Index{1}, Index{100'000}}) {
    const std::vector<Index> out(static_cast<std::size_t>(n), mine);
    std::vector<Index> in(static_cast<std::size_t>(n) + 1, -1);
    auto arriving = line.start_receive(in.data(), Index(in.size() * sizeof(Index)), before, 1);
    line.start_send(out.data(), Index(out.size() * sizeof(Index)), next, 1).wait();
    while (!arriving.test()) {
    }
    const auto [source, bytes] = arriving.wait();
    in.resize(out.size());
    wrong += source != before || bytes != n * Index(sizeof(Index)) ||
             in != std::vector<Index>(out.size(), line.peer(before));
  }
  if (line.rank() != 0) {
    line.send(&mine, sizeof mine, 0);
    return wrong;
  }
  std::vector<bool> heard(static_cast<std::size_t>(line.size()));
  for (Index k = 1; k < line.size(); ++k) {
    Index number = -1;
    const auto source = line.receive(&number, sizeof number, mpi::any_source).source;
    wrong += number != line.peer(source) || heard[std::size_t(source)];
    heard[std::size_t(source)] = true;
  }
  return wrong;
}

/// Whether a call that is a mistake is refused with a word about it.
template <class Call>
int not_refused(const char* word, Call&& call, ErrorKind kind = ErrorKind::argument) {
  try {
    call();
  } catch (const Error& error) {
    return error.kind() != kind || std::string(error.what()).find(word) == std::string::npos;
  }
  return 1;
}

/// Process 0 sends to 1 on a virtual communicator that 1 has not
/// made; 1 receives from any source on another of that context.
int stray_not_refused(const mpi::VirtualComm& grid) {
  if (grid.size() < 3 || grid.rank() > 1) return 0;
  const auto pair = grid.create(RankMap::of_nest(AffineNest::stride(grid.rank(), 2, 1), grid.size()), 4);
  if (grid.rank() == 0) {
    for (const int tag : {0, 1}) pair.send(nullptr, 0, 1, tag);
    return 0;
  }
  auto arriving = pair.start_receive(nullptr, 0, mpi::any_source, 1);
  const auto tested = [&] {
    while (!arriving.test()) {
    }
  };
  int wrong = not_refused(
      "rank 0", [&] { pair.receive(nullptr, 0, mpi::any_source); }, ErrorKind::disagreement);
  wrong += not_refused("rank 0", tested, ErrorKind::disagreement);
  return wrong + not_refused(
                     "rank 0", [&] { arriving.wait(); }, ErrorKind::disagreement);
}

int wrong_on(MPI_Comm comm) {
  int size = 0, rank = 0, wrong = 0;
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &rank);
  const Index columns = size % 2 == 0 ? 2 : 1, x = rank % columns, y = rank / columns;

  const auto grid = mpi::VirtualComm::over(comm);
  const auto row = grid.create(RankMap::of_nest(AffineNest::stride(y * columns, columns, 1), size), 1);
  const auto column = grid.split(x, y);
  wrong += column.map() != RankMap::of_nest(AffineNest::stride(x, size / columns, columns), size);
  wrong += wrong_messages(grid, rank) + wrong_messages(row, rank) + wrong_messages(column, rank);

  int sum = 0;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, column.comm().get<MPI_Comm>());
  const auto members = column.map().to_vector();
  wrong += sum != std::accumulate(members.begin(), members.end(), Index{0});

  wrong += not_refused("already", [&] { grid.create(row.map(), 1); });
  wrong += not_refused("tag", [&] { row.send(nullptr, 0, 0, row.tag_ub() + 1); });
  const auto others =
      grid.create(RankMap::of_nest(AffineNest::stride((y * columns + columns) % size, columns, 1), size), 3);
  if (others.rank() == nobody) wrong += not_refused("members", [&] { others.send(nullptr, 0, 0); });

  wrong += not_refused("already", [&] { grid.split(x, y, column.context()); });
  wrong += stray_not_refused(grid);

  // As MPI's own communicators and groups, and back.
  auto made = mpi::create_communicator(row.map(), comm).get<MPI_Comm>();
  wrong += mpi::rank_map_of(made, comm) != row.map();
  MPI_Comm_free(&made);
  auto group = mpi::to_group(column.map(), comm).get<MPI_Group>();
  wrong += mpi::rank_map_of_group(group, comm) != column.map();
  MPI_Group_free(&group);
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, wrong = 0, total = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  try {
    wrong = wrong_on(MPI_COMM_WORLD);
  } catch (const Error& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Allreduce(&wrong, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%d answers are wrong\n", total);
  MPI_Finalize();
  return total != 0;
}

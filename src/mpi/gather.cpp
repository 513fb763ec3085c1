#include "mpi/gather.hpp"

#include <sched.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "mpi/patience.hpp"

namespace longshore::mpi {

namespace {

/// For who waits for all of the node.
class Waiting {
 public:
  explicit Waiting(const Communicator& communicator) : communicator_(communicator), patience_(communicator) {}
  void operator()() {
    patience_.nothing([&] {
      std::vector<Awaited> all;
      for (int k = 0; k < communicator_.node_size(); ++k) all.push_back({communicator_.world_rank_of(k)});
      return all;
    });
  }

 private:
  const Communicator& communicator_;
  Patience patience_;
};

/// Waits for a collective that has been started: it cannot be complete before everybody has come.
void wait_for(const Communicator& communicator, MPI_Request request, const char* call) {
  Waiting waiting(communicator);
  while (true) {
    int done = 0;
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), call);
    if (done) return;
    waiting();
    communicator.do_besides();
    sched_yield();
  }
}

/// Whether all of them are of one node, which has a board, and so many bytes of each fit there.
bool fits_board(const Communicator& communicator, Among among, std::size_t bytes) {
  return communicator.board() && Index(bytes) <= NodeBoard::most_bytes &&
         (among == Among::node || communicator.size() == communicator.node_size());
}

/// A round takes less than a microsecond where all come at once, and to step aside much more.
constexpr int patient_looks = 200;

/// MPI gets on meanwhile, for others may need it to before they come.
void gather_on_board(const Communicator& communicator, std::span<const std::byte> mine, std::span<std::byte> all) {
  std::optional<Waiting> waiting;
  communicator.board()->gather(mine, all, communicator.crowded() ? 0 : patient_looks, [&] {
    communicator.poke();
    (waiting ? *waiting : waiting.emplace(communicator))();
  });
}

/// Starts a collective from `mine` to as many bytes as `all` has, and waits for it.
template <class Start>
void collect(const Communicator& communicator, Among among, const char* call, std::span<const std::byte> mine,
             std::span<std::byte> all, Start start) {
  struct Held {
    std::vector<std::byte> mine, all;
    Start start;
  };
  auto held =
      std::make_unique<Held>(Held{{mine.begin(), mine.end()}, std::vector<std::byte>(all.size()), std::move(start)});
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(held->start(held->mine.data(), held->all.data(),
                        among == Among::world ? communicator.world() : communicator.node(), &request),
            call);
  try {
    wait_for(communicator, request, call);
  } catch (...) {
    static_cast<void>(held.release());  // MPI may still read and write it
    throw;
  }
  std::copy(held->all.begin(), held->all.end(), all.begin());
}

}  // namespace

void gather_equal(const Communicator& communicator, Among among, std::span<const std::byte> mine,
                  std::span<std::byte> all) {
  if (fits_board(communicator, among, mine.size())) return gather_on_board(communicator, mine, all);
  collect(communicator, among, "MPI_Iallgather", mine, all,
          [bytes = int(mine.size())](void* in, void* out, MPI_Comm comm, MPI_Request* made) {
            return MPI_Iallgather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, comm, made);
          });
}

void find_smallest(const Communicator& communicator, Among among, std::span<Index> values) {
  if (const auto mine = std::as_bytes(values); fits_board(communicator, among, mine.size())) {
    std::vector<Index> all(values.size() * std::size_t(communicator.node_size()));
    gather_on_board(communicator, mine, std::as_writable_bytes(std::span(all)));
    for (std::size_t k = 0; k < all.size(); ++k)
      values[k % values.size()] = std::min(values[k % values.size()], all[k]);
    return;
  }
  collect(communicator, among, "MPI_Iallreduce", std::as_bytes(values), std::as_writable_bytes(values),
          [n = int(values.size())](void* in, void* out, MPI_Comm comm, MPI_Request* made) {
            return MPI_Iallreduce(in, out, n, MPI_INT64_T, MPI_MIN, comm, made);
          });
}

void add_up(const Communicator& communicator, std::span<std::uint64_t> values) {
  collect(communicator, Among::world, "MPI_Iallreduce", std::as_bytes(values), std::as_writable_bytes(values),
          [n = int(values.size())](void* in, void* out, MPI_Comm comm, MPI_Request* made) {
            return MPI_Iallreduce(in, out, n, MPI_UINT64_T, MPI_SUM, comm, made);
          });
}

void swap_numbers(const Communicator& communicator, std::span<Index> numbers) {
  collect(communicator, Among::world, "MPI_Ialltoall", std::as_bytes(numbers), std::as_writable_bytes(numbers),
          [](void* in, void* out, MPI_Comm comm, MPI_Request* made) {
            return MPI_Ialltoall(in, 1, MPI_INT64_T, out, 1, MPI_INT64_T, comm, made);
          });
}

std::vector<std::string> gather_bytes(const Communicator& communicator, Among among, std::string_view mine) {
  const auto lengths = gather(communicator, among, int(mine.size()));
  std::vector<int> places(lengths.size());
  std::exclusive_scan(lengths.begin(), lengths.end(), places.begin(), 0);
  std::string all(std::size_t(places.back() + lengths.back()), '\0');
  collect(communicator, among, "MPI_Iallgatherv", std::as_bytes(std::span(mine)),
          std::as_writable_bytes(std::span(all)),
          [n = int(mine.size()), lengths, places](void* in, void* out, MPI_Comm comm, MPI_Request* made) {
            return MPI_Iallgatherv(in, n, MPI_BYTE, out, lengths.data(), places.data(), MPI_BYTE, comm, made);
          });
  std::vector<std::string> each;
  for (std::size_t r = 0; r < lengths.size(); ++r)
    each.push_back(all.substr(std::size_t(places[r]), std::size_t(lengths[r])));
  return each;
}

std::string obstacle_of_node(const Communicator& communicator, const std::optional<std::string>& mine) {
  Index free = !mine;
  find_smallest(communicator, Among::node, std::span(&free, 1));
  if (free) return {};
  const auto all = gather_bytes(communicator, Among::node, mine.value_or(""));
  const auto first = std::find_if(all.begin(), all.end(), [](const std::string& words) { return !words.empty(); });
  if (first == all.end()) return "a process of the node has none";
  return "rank " + std::to_string(communicator.world_rank_of(int(first - all.begin()))) + ": " + *first;
}

}  // namespace longshore::mpi

#include "mpi/sparse_exchange.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>

#include "mpi/agreement.hpp"
#include "mpi/gather.hpp"
#include "mpi/messages.hpp"
#include "mpi/patience.hpp"

namespace longshore::mpi {

std::vector<Index> announce(const Communicator& communicator, std::vector<Index> counts) {
  swap_numbers(communicator, counts);
  return counts;
}

void agree_on_room(const Communicator& communicator, const std::vector<Index>& counts,
                   const std::function<void(std::size_t)>& make, const std::optional<Error>& failure) {
  Submission mine;
  mine.failure = failure ? failure : attempt([&] {
    Index n = 0;
    for (const Index count : counts) n = checked_add(n, count);
    make(std::size_t(n));
  });
  agree(communicator, mine);
}

void carry(Communicator& communicator, Index item_bytes, std::span<const std::byte> out,
           const std::vector<Index>& out_counts, std::span<std::byte> in, const std::vector<Index>& in_counts) {
  const int me = communicator.rank(), size = communicator.size(), tag = communicator.next_tag();
  const MPI_Comm comm = communicator.world();
  struct UnderWay {
    int peer;
    Requests requests;
  };
  std::vector<UnderWay> all;
  auto begin_of = [item_bytes](const std::vector<Index>& counts, int rank) {
    return item_bytes * std::accumulate(counts.begin(), counts.begin() + rank, Index{0});
  };
  Index place = 0;
  for (int r = 0; r < size; ++r) {
    const Index bytes = item_bytes * in_counts[std::size_t(r)];
    if (r != me && bytes > 0) {
      all.push_back({r, {}});
      all.back().requests.receive(comm, r, tag, in.data() + place, bytes);
    }
    place += bytes;
  }
  if (const Index own = item_bytes * out_counts[std::size_t(me)]; own > 0)
    std::memcpy(in.data() + begin_of(in_counts, me), out.data() + begin_of(out_counts, me), std::size_t(own));
  // Begin with the next rank, or everybody floods rank 0.
  place = begin_of(out_counts, me);
  for (int i = 0; i < size; ++i) {
    const int r = (me + i) % size;
    if (r == 0) place = 0;
    const Index bytes = item_bytes * out_counts[std::size_t(r)];
    if (r != me && bytes > 0) {
      all.push_back({r, {}});
      all.back().requests.send(comm, r, tag, out.data() + place, bytes, Requests::Mode::eager);
    }
    place += bytes;
  }

  Patience patience(communicator);
  while (!all.empty()) {
    if (std::erase_if(all, [](UnderWay& one) { return one.requests.test(); }) > 0) {
      patience.progress();
      continue;
    }
    patience.nothing([&] {
      std::vector<Awaited> awaited;
      for (const auto& one : all) awaited.push_back({one.peer});
      return awaited;
    });
    sched_yield();
  }
}

}  // namespace longshore::mpi

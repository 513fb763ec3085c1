/// mpi: items for some of the ranks, where nobody knows yet who has something for whom.
#pragma once

#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "mpi/communicator.hpp"

namespace longshore::mpi {

/// `counts[r]` items for (from) rank r, those of rank 0 first: a number a rank, and what it has to do with some.
template <class T>
struct Parcels {
  std::vector<Index> counts;
  std::vector<T> items;

  /// Where those of each rank begin, and where the last ones end.
  std::vector<Index> places() const {
    std::vector<Index> places(counts.size() + 1);
    std::partial_sum(counts.begin(), counts.end(), places.begin() + 1);
    return places;
  }
};

/// How much each rank has for me, of what I have for each: one number a rank, in one MPI_Alltoall. What follows are
/// messages between those ranks only that have something for each other. Collective.
std::vector<Index> announce(const Communicator& communicator, std::vector<Index> counts);

/// The messages: `out` has `item_bytes` * out_counts[r] bytes for rank r, and `in` room for as many of each as
/// in_counts says. Collective. Where it throws, MPI may still read and write both.
void carry(Communicator& communicator, Index item_bytes, std::span<const std::byte> out,
           const std::vector<Index>& out_counts, std::span<std::byte> in, const std::vector<Index>& in_counts);

/// Agrees on whether everybody has room for so many items, and nothing else has failed, before anything is sent.
/// Collective.
void agree_on_room(const Communicator& communicator, const std::vector<Index>& counts,
                   const std::function<void(std::size_t)>& make, const std::optional<Error>& failure);

/// Everybody's items for me. `coming`: how many, where that is known, as it is of answers. `failure`: what has gone
/// wrong here before. Collective; what is wrong on one rank is an error of all.
template <class T>
Parcels<T> exchange(Communicator& communicator, Parcels<T> mine, std::vector<Index> coming = {},
                    const std::optional<Error>& failure = {}) {
  static_assert(std::is_trivially_copyable_v<T>);
  struct Held {
    Parcels<T> mine, got;
  };
  auto held = std::make_unique<Held>(Held{std::move(mine), {}});
  auto& [out, in] = *held;
  in.counts = coming.empty() ? announce(communicator, out.counts) : std::move(coming);
  agree_on_room(
      communicator, in.counts, [&in = in.items](std::size_t n) { in.resize(n); }, failure);
  try {
    carry(communicator, sizeof(T), std::as_bytes(std::span(out.items)), out.counts,
          std::as_writable_bytes(std::span(in.items)), in.counts);
  } catch (...) {
    static_cast<void>(held.release());
    throw;
  }
  return std::move(in);
}

}  // namespace longshore::mpi

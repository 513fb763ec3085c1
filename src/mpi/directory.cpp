#include "longshore/mpi/directory.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "mpi/agreement.hpp"
#include "mpi/gather.hpp"
#include "mpi/sparse_exchange.hpp"

namespace longshore::mpi {

namespace {

struct DirectoryEntry {
  Index number, rank, place;
};

struct DirectoryAnswer {
  Index rank = -1, place = -1;
};

/// Whose share a number is in: splitmix64's finisher, so that numbers in steps of the number of ranks are spread, too.
std::size_t share_of(Index number, int ranks) {
  auto x = std::uint64_t(number);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  x ^= x >> 31;
  return std::size_t(x % std::uint64_t(ranks));
}

/// Numbers sorted by who keeps them; `each(i, place)` says where number i comes.
template <class F>
std::vector<Index> by_share(std::span<const Index> numbers, int ranks, F&& each) {
  std::vector<Index> counts(std::size_t(ranks), 0);
  for (const Index number : numbers) ++counts[share_of(number, ranks)];
  std::vector<Index> next = Parcels<Index>{counts, {}}.places();
  for (std::size_t i = 0; i < numbers.size(); ++i) each(i, std::size_t(next[share_of(numbers[i], ranks)]++));
  return counts;
}

std::string in_owned(std::size_t place) { return "owned[" + std::to_string(place) + "]"; }

/// Throws for a number that is owned twice, telling who owns it and where. Collective: all say the same.
[[noreturn]] void throw_owned_twice(const Communicator& communicator, std::span<const Index> owned, Index number) {
  std::array<Index, 2> places = {-1, -1};
  std::size_t found = 0;
  for (std::size_t i = 0; i < owned.size() && found < 2; ++i)
    if (owned[i] == number) places[found++] = Index(i);
  std::vector<std::string> owners;
  const auto all = gather(communicator, Among::world, places);
  for (std::size_t r = 0; r < all.size(); ++r)
    for (const Index place : all[r])
      if (place >= 0 && owners.size() < 2)
        owners.push_back("rank " + std::to_string(r) + " (" + in_owned(std::size_t(place)) + ")");
  owners.resize(2, "another");
  throw Error(ErrorKind::argument, "number " + std::to_string(number) + " is owned twice, by " + owners[0] +
                                       " and by " + owners[1] + "; every number has one owner");
}

}  // namespace

struct Directory::Share {
  std::shared_ptr<Communicator> communicator;
  CommHandle comm;
  Index owned = 0;
  std::vector<DirectoryEntry> entries;  ///< by number
};

Directory::Directory(CommHandle comm, std::span<const Index> owned) {
  auto share = std::make_shared<Share>(Share{Communicator::of(comm), comm, Index(owned.size()), {}});
  auto& communicator = *share->communicator;
  struct Told {
    Index number, place;
  };
  Parcels<Told> mine;
  mine.counts.assign(std::size_t(communicator.size()), 0);
  Submission checked;
  checked.failure = attempt([&] {
    for (std::size_t i = 0; i < owned.size(); ++i)
      if (owned[i] < 0)
        throw Error(ErrorKind::argument,
                    in_owned(i) + " is " + std::to_string(owned[i]) + "; numbers that ranks own are not negative");
    mine.items.resize(owned.size());
    mine.counts = by_share(owned, communicator.size(), [&](std::size_t i, std::size_t place) {
      mine.items[place] = {owned[i], Index(i)};
    });
  });
  const auto told = exchange(communicator, std::move(mine), {}, checked.failure);

  auto& entries = share->entries;
  Values twice = {0, std::numeric_limits<Index>::max()};  // is any, and the smallest
  checked.failure = attempt([&] {
    entries.reserve(told.items.size());
    const auto places = told.places();
    for (std::size_t r = 0; r < told.counts.size(); ++r)
      for (Index i = places[r]; i < places[r + 1]; ++i)
        entries.push_back({told.items[std::size_t(i)].number, Index(r), told.items[std::size_t(i)].place});
    std::sort(entries.begin(), entries.end(),
              [](const DirectoryEntry& a, const DirectoryEntry& b) { return a.number < b.number; });
    const auto same =
        std::adjacent_find(entries.begin(), entries.end(),
                           [](const DirectoryEntry& a, const DirectoryEntry& b) { return a.number == b.number; });
    if (same != entries.end()) twice = {-1, same->number};
  });
  twice = agree(communicator, checked, twice);
  if (twice[0] < 0) throw_owned_twice(communicator, owned, twice[1]);
  share_ = std::move(share);
}

Owners Directory::find(std::span<const Index> numbers) const {
  auto& communicator = *share_->communicator;
  const int ranks = communicator.size();
  Owners found;
  Parcels<Index> asked{std::vector<Index>(std::size_t(ranks), 0), {}};
  const auto failure = attempt([&] {
    found.ranks.resize(numbers.size()), found.places.resize(numbers.size()), asked.items.resize(numbers.size());
    asked.counts = by_share(numbers, ranks, [&](std::size_t i, std::size_t place) { asked.items[place] = numbers[i]; });
  });
  auto answers_coming = asked.counts;
  const auto questions = exchange(communicator, std::move(asked), {}, failure);

  Parcels<DirectoryAnswer> answers{questions.counts, {}};
  const auto& entries = share_->entries;
  const auto no_answer = attempt([&] {
    answers.items.reserve(questions.items.size());
    for (const Index number : questions.items) {
      const auto at = std::lower_bound(entries.begin(), entries.end(), number,
                                       [](const DirectoryEntry& entry, Index wanted) { return entry.number < wanted; });
      const bool known = at != entries.end() && at->number == number;
      answers.items.push_back(known ? DirectoryAnswer{at->rank, at->place} : DirectoryAnswer{});
    }
  });
  const auto got = exchange(communicator, std::move(answers), std::move(answers_coming), no_answer);
  by_share(numbers, ranks, [&](std::size_t i, std::size_t place) {
    found.ranks[i] = got.items[place].rank, found.places[i] = got.items[place].place;
  });
  return found;
}

CommHandle Directory::comm() const { return share_->comm; }

Index Directory::owned() const { return share_->owned; }

Index Directory::workspace_bytes() const {
  return Index(sizeof *share_ + share_->entries.capacity() * sizeof(DirectoryEntry));
}

}  // namespace longshore::mpi

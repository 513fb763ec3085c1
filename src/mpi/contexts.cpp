#include "mpi/contexts.hpp"

#include <algorithm>

#include "longshore/mpi/groups.hpp"

namespace longshore::mpi {

Context::~Context() {
  if (in_ == nullptr) return;
  const std::lock_guard lock(in_->mutex_);
  in_->living_.erase(number_);
}

void Contexts::check(Index number) const {
  if (number < 0 || number >= count_)
    throw Error(ErrorKind::argument,
                "context " + std::to_string(number) + " is outside [0, " + std::to_string(count_) + ")");
}

std::optional<Context> Contexts::take(int number) {
  const std::lock_guard lock(mutex_);
  if (!living_.insert(number).second) return std::nullopt;
  return Context(this, number);
}

Error Contexts::clash(Index number, Index rank) const {
  return Error(ErrorKind::argument, "rank " + std::to_string(rank) + " has a virtual communicator with context " +
                                        std::to_string(number) +
                                        " already: release it, or pass another context, below " +
                                        std::to_string(count_) + ", at all members of the new one");
}

namespace {

/// A number and the rank that it is of.
struct Told {
  Index number, rank;
};

struct Vote {
  Told least, most;  ///< of the contexts given; `no_number` where none is
  Told offer;        ///< the last of the first offers that a member can take
};

void merge(Vote& mine, const Vote& another) {
  if (another.least.number < mine.least.number) mine.least = another.least;
  if (another.most.number > mine.most.number) mine.most = another.most;
  if (another.offer.number > mine.offer.number) mine.offer = another.offer;
}

std::string told(const Told& given) {
  const auto what = given.number == no_number ? std::string("no context") : "context " + std::to_string(given.number);
  return "rank " + std::to_string(given.rank) + " was given " + what;
}

}  // namespace

Context agreed_context(const Subgroup& group, Contexts& contexts, std::optional<int> given, int wanted) {
  const Index rank = group.members.select(group.me), number = given ? *given : no_number;
  const bool known = given && *given >= 0 && *given < contexts.count();
  // What is tried one after the other: the one given, or those unasked and then the users', but not everybody's.
  const Index offers = !given ? contexts.count() - 1 : known ? 1 : 0;
  const Index first = contexts.unasked(), unasked = contexts.count() - first;
  const auto offer = [&](Index k) {
    return given ? *given : int(k < unasked ? first + (wanted - first + k) % unasked : contexts.count() - 1 - k);
  };
  for (Index k = 0;;) {
    std::optional<Context> held;
    Index mine = k;
    while (mine < offers && !held.has_value())
      if (auto taken = contexts.take(offer(mine)))
        held.emplace(std::move(*taken));
      else
        ++mine;
    const auto all = merged(group, Vote{{number, rank}, {number, rank}, {mine, rank}}, merge);
    if (all.least.number != all.most.number)
      throw Error(ErrorKind::disagreement,
                  told(all.least) + ", " + told(all.most) + ": give the same to all members of a colour");
    if (given) contexts.check(*given);
    if (all.offer.number == k && held) return std::move(*held);
    k = all.offer.number;
    if (k < offers) continue;
    if (given) throw contexts.clash(*given, all.offer.rank);
    throw Error(ErrorKind::argument,
                "rank " + std::to_string(all.offer.rank) + " has no context free, of " +
                    std::to_string(contexts.count()) +
                    ", that the other members have: release virtual communicators that are not in use");
  }
}

}  // namespace longshore::mpi

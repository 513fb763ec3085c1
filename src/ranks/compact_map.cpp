#include "longshore/ranks/compact_map.h"

#include <map>
#include <mutex>
#include <thread>

#include "longshore/ranks/rank_groups.hpp"

using longshore::Error;
using longshore::ErrorKind;
using longshore::Index;
using longshore::RankMap;

struct CMMap {
  RankMap map;
  longshore::Strategy strategy;
  std::string representation;

  explicit CMMap(RankMap from) { set(std::move(from)); }
  void set(RankMap from) {
    map = std::move(from);
    representation = map.representation();
  }

  /// Runs f and keeps the words of what it throws: nothing is thrown across C.
  template <class F>
  int guarded(F f) const noexcept {
    try {
      f();
      return 0;
    } catch (const std::exception& error) {
      try {
        const std::lock_guard lock(mutex);
        mistakes[std::this_thread::get_id()] = error.what();
      } catch (...) {
        // There is no memory for words; the result says enough.
      }
      return 1;
    }
  }

  mutable std::mutex mutex;
  mutable std::map<std::thread::id, std::string> mistakes;
};

struct CMIterator {
  const CMMap* map;
  std::vector<Index> ahead;  ///< members from `first` on, read in one go
  Index first = 0, at = 0;
};

namespace {

CMMap* created(Index world, bool everybody) noexcept {
  try {
    return new CMMap(everybody ? RankMap::whole(world) : RankMap::of({}, world));
  } catch (const std::exception&) {
    return nullptr;
  }
}

void insert(CMMap& map, const RankMap& more) {
  const auto both = longshore::set_intersection(map.map, more);
  if (!both.empty())
    throw Error(ErrorKind::argument, "rank " + std::to_string(both.select(0)) + " is a member already, at position " +
                                         std::to_string(map.map.rank(both.select(0))));
  map.set(longshore::group_union(map.map, more, map.strategy));
}

std::span<const Index> list(const std::int64_t* values, std::int64_t n) {
  if (n < 0 || (n > 0 && values == nullptr))
    throw Error(ErrorKind::argument, "an array of " + std::to_string(n) + " values");
  return {values, std::size_t(n)};
}

}  // namespace

extern "C" {

CMMap* CMCreate(int64_t world) { return created(world, false); }
CMMap* CMWorldCreate(int64_t world) { return created(world, true); }
void CMKill(CMMap* map) { delete map; }

int CMInsert(CMMap* map, int64_t rank) { return CMBlockInsert(map, &rank, 1); }

int CMBlockInsert(CMMap* map, const int64_t* ranks, int64_t n) {
  return map->guarded([&] { insert(*map, RankMap::of(list(ranks, n), map->map.world(), map->strategy)); });
}

int CMRangeInsert(CMMap* map, int64_t first, int64_t last, int64_t stride) {
  return map->guarded([&] {
    const longshore::RankRange range{first, last, stride};
    insert(*map, longshore::group_range_incl(RankMap::whole(map->map.world()), std::span(&range, 1), map->strategy));
  });
}

CMIterator* CMIteratorCreate(const CMMap* map) { return new (std::nothrow) CMIterator{map, {}}; }
void CMIteratorFree(CMIterator* iterator) { delete iterator; }

int CMIteratorNext(CMIterator* iterator, int64_t* rank) {
  auto& [map, ahead, first, at] = *iterator;
  const Index size = map->map.size();
  if (at >= size) return 1;
  if (at < first || at >= first + Index(ahead.size())) {
    constexpr Index piece = 256;
    const int failed = map->guarded([&, &map = map, &ahead = ahead, at = at] {
      ahead.resize(std::size_t(std::min(piece, size - at)));
      map->map.read(at, Index(ahead.size()), ahead.data());
    });
    if (failed) return ahead.clear(), 1;
    first = at;
  }
  *rank = ahead[std::size_t(at++ - first)];
  return 0;
}

void CMIteratorRewind(CMIterator* iterator) { iterator->at = 0; }

int CMFind(const CMMap* map, int64_t position, int64_t* rank) {
  return map->guarded([&] { *rank = map->map.world_rank(position); });
}

int CMBlockFind(const CMMap* map, const int64_t* positions, int64_t n, int64_t* ranks) {
  return map->guarded([&] { map->map.world_ranks(list(positions, n), std::span(ranks, list(ranks, n).size())); });
}

int CMRangeFind(const CMMap* map, int64_t first, int64_t last, int64_t stride, int64_t* ranks) {
  return map->guarded([&] {
    const longshore::RankRange range{first, last, stride};
    const auto positions = longshore::group_range_incl(RankMap::whole(map->map.size()), std::span(&range, 1));
    for (Index k = 0; k < positions.size(); ++k) ranks[k] = map->map.select(positions.select(k));
  });
}

int64_t CMRank(const CMMap* map, int64_t rank) {
  Index position = longshore::nobody;
  map->guarded([&] { position = map->map.rank(rank); });
  return position;
}

int CMSetStrategy(CMMap* map, CMStrategy strategy, double alpha) {
  return map->guarded([&] {
    auto wanted = strategy == CM_TIME    ? longshore::Strategy::time()
                  : strategy == CM_SPACE ? longshore::Strategy::space()
                                         : longshore::Strategy::hybrid(alpha);
    map->set(longshore::rebuilt(map->map, wanted));
    map->strategy = std::move(wanted);
  });
}

int64_t CMSize(const CMMap* map) { return map->map.size(); }
int64_t CMBytes(const CMMap* map) { return map->map.bytes(); }
const char* CMRepresentation(const CMMap* map) { return map->representation.c_str(); }

const char* CMError(const CMMap* map) {
  const std::lock_guard lock(map->mutex);
  const auto found = map->mistakes.find(std::this_thread::get_id());
  return found == map->mistakes.end() ? "" : found->second.c_str();
}

}  // extern "C"

#include "longshore/encodings/eviction_policy.hpp"

#include <algorithm>
#include <tuple>

namespace longshore {

namespace {

/// Flushes the unit with the least rank; of equals, the first by name.
template <class Rank>
std::size_t least(std::span<const FlushUnit* const> units, Rank&& rank) {
  const auto at = std::min_element(units.begin(), units.end(),
                                   [&](const FlushUnit* a, const FlushUnit* b) { return rank(*a) < rank(*b); });
  return std::size_t(at - units.begin());
}

struct LeastRecentlyUsed : EvictionPolicy {
  std::string_view name() const override { return "lru"; }
  std::size_t victim(std::span<const FlushUnit* const> units) override {
    return least(units, [](const FlushUnit& unit) { return unit.last_use; });
  }
};

struct FirstStored : EvictionPolicy {
  std::string_view name() const override { return "fifo"; }
  std::size_t victim(std::span<const FlushUnit* const> units) override {
    return least(units, [](const FlushUnit& unit) { return unit.stored; });
  }
};

struct LeastOftenUsed : EvictionPolicy {
  std::string_view name() const override { return "lfu"; }
  std::size_t victim(std::span<const FlushUnit* const> units) override {
    return least(units, [](const FlushUnit& unit) { return std::tuple(unit.uses, unit.last_use); });
  }
};

/// The mark is a unit's time to make a byte again, on top of what the last
/// flushed unit was worth: what is not used loses against what is stored later.
struct GreedyDualSize : EvictionPolicy {
  double worth_of_last = 0;

  std::string_view name() const override { return "cost"; }
  void touched(FlushUnit& unit) override {
    unit.mark = worth_of_last + unit.make_ns / double(std::max<Index>(unit.bytes, 1));
  }
  std::size_t victim(std::span<const FlushUnit* const> units) override {
    const auto k = least(units, [](const FlushUnit& unit) { return std::tuple(unit.mark, unit.last_use); });
    worth_of_last = std::max(worth_of_last, units[k]->mark);
    return k;
  }
};

}  // namespace

std::unique_ptr<EvictionPolicy> eviction_policy(std::string_view name) {
  if (name == "lru") return std::make_unique<LeastRecentlyUsed>();
  if (name == "fifo") return std::make_unique<FirstStored>();
  if (name == "lfu") return std::make_unique<LeastOftenUsed>();
  if (name == "cost") return std::make_unique<GreedyDualSize>();
  throw Error(ErrorKind::argument,
              "there is no eviction policy '" + std::string(name) + "'; there are lru, fifo, lfu, cost");
}

}  // namespace longshore

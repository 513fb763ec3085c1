// The relation cache against a plain model, and under threads.
#include "support/generators.hpp"

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "support/cache.hpp"

namespace longshore::test {
namespace {

/// The cache with LRU said plainly: units in a list, the least recently used first.
struct Model {
  struct Unit {
    std::string group;
    std::map<std::string, Index> bytes;
    std::set<std::string> pinned;
    Index size() const {
      Index sum = 0;
      for (const auto& [key, size] : bytes) sum += size;
      return sum;
    }
  };
  Index ceiling;
  bool spills;
  std::vector<Unit> units;
  std::map<std::string, Unit> stored;  ///< by name

  static std::string name(const std::string& key, const std::string& group) {
    return group.empty() ? "k" + key : "g" + group;
  }
  Index bytes() const {
    Index sum = 0;
    for (const auto& unit : units) sum += unit.size();
    return sum;
  }
  std::vector<Unit>::iterator unit_of(const std::string& key) {
    return std::find_if(units.begin(), units.end(), [&](const Unit& unit) { return unit.bytes.contains(key); });
  }
  void use(std::vector<Unit>::iterator at) { std::rotate(at, at + 1, units.end()); }

  void flush(std::vector<Unit>::iterator at) {
    const auto id = name(at->bytes.begin()->first, at->group);
    at->pinned.clear();
    if (spills) stored[id] = *at;
    units.erase(at);
  }
  bool keep(const std::string& key, const std::string& group, Index size, bool pin) {
    auto own = [&](const Unit& unit) { return !group.empty() && unit.group == group; };
    Index held = 0;
    for (const auto& unit : units) held += own(unit) || !unit.pinned.empty() ? unit.size() : 0;
    if (size > ceiling - held) return false;
    while (bytes() > ceiling - size)
      flush(std::find_if(units.begin(), units.end(),
                         [&](const Unit& unit) { return !own(unit) && unit.pinned.empty(); }));
    auto at = std::find_if(units.begin(), units.end(), own);
    if (at == units.end()) at = units.insert(units.end(), Unit{group, {}, {}});
    at->bytes[key] = size;
    if (pin) at->pinned.insert(key);
    use(at);
    return true;
  }
  /// How often the maker is called: never or once.
  int ask(const std::string& key, const std::string& group, Index size, bool pin) {
    if (const auto at = unit_of(key); at != units.end()) return use(at), 0;
    const auto id = name(key, group);
    const bool there = std::any_of(units.begin(), units.end(),
                                   [&](const Unit& unit) { return !group.empty() && unit.group == group; });
    if (!there && stored.contains(id)) {
      const auto record = stored.at(id).bytes;
      if (record.contains(key)) keep(key, group, size, pin);
      for (const auto& [other, bytes] : record)
        if (other != key) keep(other, group, bytes, false);
      if (record.contains(key)) return 0;
    }
    keep(key, group, size, pin);
    return 1;
  }
};

RC_GTEST_PROP(RelationCache, does_what_the_model_does, ()) {
  const Index ceiling = draw(0, 12) * cached_bytes(10, 1);
  const bool spills = chance(50);
  Model model{ceiling, spills, {}, {}};
  RelationCache cache(ceiling, nullptr, spills ? std::make_shared<MemoryStore>() : nullptr);
  for (Index step = draw(1, 150); step > 0; --step) {
    const Index id = draw(0, 15), pairs = 1 + id * id % 40;
    const std::string key(1, char('a' + id)), group = id % 3 == 0 ? "" : std::string(1, char('A' + id % 4));
    const auto size = cached_bytes(pairs, 1);
    RC_LOG() << key << " of group '" << group << "'\n";
    switch (draw(0, 9)) {
      case 0: {
        const bool pin = chance(50);
        cache.pin(key, pin);
        if (const auto at = model.unit_of(key); at != model.units.end()) {
          if (pin)
            at->pinned.insert(key);
          else
            at->pinned.erase(key);
        }
        break;
      }
      case 1:
        cache.flush(key);
        if (const auto at = model.unit_of(key); at != model.units.end()) model.flush(at);
        break;
      case 2:
        cache.erase(key, group);
        model.stored.erase(Model::name(key, group));
        if (const auto at = model.unit_of(key); at != model.units.end()) {
          at->bytes.erase(key), at->pinned.erase(key);
          if (at->bytes.empty()) model.units.erase(at);
        }
        break;
      default: {
        const bool pin = chance(5);
        int made = 0;
        const auto relation =
            cache.get_or_make(key, [&] { return ++made, encoding_of(id, pairs); }, {.group = group, .pin = pin});
        RC_ASSERT(id_of(relation) == id);
        RC_ASSERT(made == model.ask(key, group, size, pin));
      }
    }
    const auto now = cache.statistics();
    RC_ASSERT(now.bytes == model.bytes());
    RC_ASSERT(now.most_bytes <= ceiling);
    std::set<std::string> keys, expected;
    Index pinned = 0;
    for (const auto& entry : cache.entries()) keys.insert(entry.key);
    for (const auto& unit : model.units) {
      for (const auto& [k, bytes] : unit.bytes) expected.insert(k);
      pinned += unit.pinned.empty() ? 0 : unit.size();
    }
    RC_ASSERT(keys == expected);
    RC_ASSERT(now.pinned_bytes == pinned);
  }
}

/// Any policy, hints included: the ceiling holds, and what comes back is what was asked for.
RC_GTEST_PROP(RelationCache, stays_below_its_ceiling, ()) {
  const Index ceiling = draw(0, 8) * cached_bytes(20, 1);
  const auto policy = *rc::gen::element<std::string>("lru", "fifo", "lfu", "cost");
  RelationCache cache(ceiling, eviction_policy(policy), chance(50) ? std::make_shared<MemoryStore>() : nullptr);
  for (Index step = draw(1, 100); step > 0; --step) {
    const Index id = draw(0, 25);
    const std::string key(1, char('a' + id)), group = chance(50) ? "" : std::string(1, char('A' + id % 4));
    CacheHint hint;
    hint.group = id % 2 ? "" : std::string(1, char('A' + id % 4));
    hint.soon = chance(20), hint.pin = chance(5), hint.expected_uses = draw(0, 3);
    hint.keep =
        *rc::gen::element(KeptProgram::none, KeptProgram::program, KeptProgram::assembler, KeptProgram::disassembler);
    switch (draw(0, 12)) {
      case 0: cache.soon(key); break;
      case 1: cache.done(key); break;
      case 2: cache.pin(key, chance(30)); break;
      case 3: cache.put(key, encoding_of(id, draw(1, 60)), hint); break;
      default:
        RC_ASSERT(id_of(cache.get_or_make(
                      key, [&] { return encoding_of(id, draw(1, 60)); }, hint)) == id);
    }
    const auto now = cache.statistics();
    RC_ASSERT(now.most_bytes <= ceiling);
    Index bytes = 0;
    for (const auto& entry : cache.entries()) bytes += entry.bytes;
    RC_ASSERT(now.bytes == bytes);
    RC_ASSERT(now.bytes <= now.most_bytes);
  }
  cache.flush_all();
  RC_ASSERT(cache.statistics().bytes == 0);
  RC_ASSERT(cache.statistics().relations == 0);
}

TEST(RelationCacheThreads, one_key_is_made_once) {
  for (int round = 0; round < (quick() ? 20 : 200); ++round) {
    RelationCache cache(round % 2 ? 1 << 20 : 0);  // kept, or given and not kept
    std::atomic<int> made = 0, wrong = 0, ready = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        ++ready;
        while (ready < 4) std::this_thread::yield();
        const auto relation = cache.get_or_make("a", [&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
          return ++made, encoding_of(3);
        });
        wrong += id_of(relation) != 3;
      });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_TRUE(made == 1 || round % 2 == 0);
  }
}

TEST(RelationCacheThreads, a_maker_that_fails_leaves_it_to_another) {
  RelationCache cache(1 << 20);
  std::atomic<int> calls = 0, failed = 0, got = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      try {
        cache.get_or_make("a", [&]() -> Encoding {
          if (++calls <= 2) throw Error(ErrorKind::argument, "not yet");
          return encoding_of(3);
        });
        ++got;
      } catch (const Error&) {
        ++failed;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failed, 2);
  EXPECT_EQ(got, 2);
}

TEST(RelationCacheThreads, makers_that_need_each_other_are_refused) {
  RelationCache cache(1 << 20);
  std::atomic<int> inside = 0, refused = 0;
  auto ask = [&](const std::string& mine, const std::string& other) {
    try {
      cache.get_or_make(mine, [&] {
        ++inside;
        while (inside < 2) std::this_thread::yield();
        try {
          cache.get_or_make(other, [] { return encoding_of(1); });
        } catch (const Error&) {
          ++refused;
        }
        return encoding_of(2);
      });
    } catch (const Error&) {
      ADD_FAILURE() << "the maker itself goes on";
    }
  };
  std::thread a(ask, "a", "b"), b(ask, "b", "a");
  a.join(), b.join();
  EXPECT_EQ(refused, 1);
}

TEST(RelationCacheThreads, many_threads_many_keys) {
  const auto store = std::make_shared<MemoryStore>();
  const Index ceiling = 6 * cached_bytes(20, 2);
  RelationCache cache(ceiling, eviction_policy("cost"), store);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::uint32_t state = 12345 + t;
      auto random = [&] { return (state = state * 1664525 + 1013904223) >> 8; };
      for (int step = 0; step < (quick() ? 400 : 4000); ++step) {
        const Index id = random() % 24;
        const auto key = "k" + std::string(1, char('a' + id)), group = id % 3 ? "" : std::string("g");
        switch (random() % 16) {
          case 0: cache.flush(key); break;
          case 1: cache.erase(key, group); break;
          case 2: cache.put(key, encoding_of(id, 20), {.group = group}); break;
          case 3: wrong += cache.statistics().bytes > ceiling; break;
          case 4: cache.soon(key), cache.done(key), cache.pin(key, false); break;
          case 5: wrong += cache.entries().size() > 24; break;
          case 6:
            if (const auto relation = cache.get(key, group)) wrong += id_of(relation) != id;
            break;
          default: wrong += id_of(cache.get_or_make(key, [&] { return encoding_of(id, 20); }, {.group = group})) != id;
        }
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  const auto now = cache.statistics();
  EXPECT_LE(now.most_bytes, ceiling);
  EXPECT_GT(now.restores, 0);
  EXPECT_EQ(now.damaged + now.store_failures, 0);
}

}  // namespace
}  // namespace longshore::test

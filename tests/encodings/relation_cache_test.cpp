#include "longshore/encodings/relation_cache.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "support/cache.hpp"
#include "support/expect_error.hpp"

namespace longshore::test {
namespace {

/// Room for `n` relations of 10 pairs with keys of one byte.
Index room_for(Index n) { return n * cached_bytes(10, 1); }

RelationCache::Maker make(Index id, Index pairs = 10) {
  return [=] { return encoding_of(id, pairs); };
}

RelationCache::Maker never() {
  return []() -> Encoding { throw Error(ErrorKind::argument, "made again"); };
}

std::string keys_of(const RelationCache& cache) {
  std::string keys;
  for (const auto& entry : cache.entries()) keys += entry.key;
  return keys;
}

/// Stores a relation that took so long to make.
void put(RelationCache& cache, const std::string& key, double make_ns = 0, Index pairs = 10,
         const CacheHint& hint = {}) {
  ASSERT_TRUE(cache.put(key, encoding_of(key[0], pairs), hint, make_ns));
}

TEST(RelationCache, keeps_what_was_made) {
  RelationCache cache(room_for(3));
  const auto first = cache.get_or_make("a", make(1));
  EXPECT_EQ(id_of(first), 1);
  EXPECT_EQ(cache.get_or_make("a", never()), first);
  EXPECT_EQ(cache.get("a"), first);
  EXPECT_EQ(cache.get("b"), nullptr);
  const auto now = cache.statistics();
  EXPECT_EQ(now.hits, 2);
  EXPECT_EQ(now.misses, 2);
  EXPECT_EQ(now.relations, 1);
  EXPECT_EQ(now.bytes, cached_bytes(10, 1));
  EXPECT_EQ(now.most_bytes, now.bytes);
  EXPECT_EQ(now.largest_bytes, now.bytes);
  EXPECT_EQ(now.ceiling_bytes, room_for(3));
  EXPECT_EQ(cache.policy_name(), "lru");
}

TEST(RelationCache, keys_and_groups_are_any_bytes) {
  RelationCache cache(1 << 20);
  const std::string zero("\0\xff", 2), group("\0", 1);
  cache.get_or_make(zero, make(1), {.group = group});
  cache.get_or_make("", make(2));
  EXPECT_EQ(id_of(cache.get(zero)), 1);
  EXPECT_EQ(id_of(cache.get("")), 2);
  EXPECT_EQ(cache.entries()[1].group, group);
}

TEST(RelationCache, policies_choose_their_victims) {
  struct Case {
    const char* policy;
    std::string left;
  };
  for (const auto& [policy, left] :
       {Case{"lru", "acde"}, Case{"fifo", "bcde"}, Case{"lfu", "abde"}, Case{"cost", "abce"}}) {
    RelationCache cache(room_for(4), eviction_policy(policy));
    put(cache, "a", 500), put(cache, "b", 600), put(cache, "c", 700), put(cache, "d", 100);
    for (const char* key : {"b", "b", "b", "d", "d", "a", "a", "c"}) cache.get(key);
    put(cache, "e", 300);
    EXPECT_EQ(keys_of(cache), left) << policy;
    EXPECT_EQ(cache.statistics().evictions, 1) << policy;
    EXPECT_EQ(cache.policy_name(), policy);
  }
  expect_error(ErrorKind::argument, {"'mru'", "lru, fifo, lfu, cost"}, [] { eviction_policy("mru"); });
}

TEST(RelationCache, cost_counts_time_for_a_byte_and_forgets_what_is_not_used) {
  RelationCache cache(2 * cached_bytes(100, 1) + cached_bytes(10, 1) - 1, eviction_policy("cost"));
  put(cache, "l", 5000, 100);  // large: less time a byte than the small one
  put(cache, "s", 2000, 10);
  put(cache, "m", 3000, 100);
  EXPECT_EQ(keys_of(cache), "ms");
  for (char key = 'A'; key <= 'Z'; ++key) put(cache, std::string(1, key), 3000, 100);
  EXPECT_FALSE(cache.contains("s"));  // dear as it is, nobody uses it
}

TEST(RelationCache, a_policy_of_ones_own) {
  struct Largest : EvictionPolicy {
    std::string_view name() const override { return "largest"; }
    std::size_t victim(std::span<const FlushUnit* const> units) override {
      const auto at =
          std::max_element(units.begin(), units.end(), [](auto* a, auto* b) { return a->bytes < b->bytes; });
      return answer_wrong ? units.size() : std::size_t(at - units.begin());
    }
    bool answer_wrong = false;
  };
  const auto policy = std::make_shared<Largest>();
  RelationCache cache(3000, policy);
  put(cache, "a", 0, 20), put(cache, "b", 0, 100), put(cache, "c", 0, 90);
  EXPECT_EQ(keys_of(cache), "ac");
  policy->answer_wrong = true;
  expect_error(ErrorKind::argument, {"largest", "unit 2 of 2"}, [&] { cache.get_or_make("d", make(1, 90)); });
  EXPECT_EQ(keys_of(cache), "ac");
  policy->answer_wrong = false;
  EXPECT_EQ(id_of(cache.get_or_make("d", make(1, 90))), 1);
}

TEST(RelationCache, policies_and_stores_may_not_call_the_cache) {
  struct Caller : EvictionPolicy {
    std::string_view name() const override { return "caller"; }
    std::size_t victim(std::span<const FlushUnit* const>) override { return cache->statistics().relations > 0 ? 0 : 1; }
    RelationCache* cache = nullptr;
  };
  const auto policy = std::make_shared<Caller>();
  RelationCache cache(room_for(1), policy);
  policy->cache = &cache;
  cache.get_or_make("a", make(1));
  expect_error(ErrorKind::argument, {"may not call the cache"}, [&] { cache.get_or_make("b", make(2)); });
  EXPECT_EQ(keys_of(cache), "a");
}

TEST(RelationCache, hints) {
  RelationCache cache(room_for(3));
  cache.get_or_make("p", make(1), {.pin = true});
  cache.get_or_make("s", make(2), {.soon = true});
  cache.soon("s");  // its making was its first use
  cache.get_or_make("a", make(3));
  cache.get_or_make("b", make(4));
  EXPECT_EQ(keys_of(cache), "bps");  // a, though it was used last
  cache.done("s");
  cache.get_or_make("c", make(5));
  EXPECT_EQ(keys_of(cache), "bcp");
  cache.pin("b"), cache.pin("c");
  EXPECT_EQ(id_of(cache.get_or_make("d", make(6))), 6);
  EXPECT_EQ(keys_of(cache), "bcp");
  EXPECT_EQ(cache.statistics().not_kept, 1);
  EXPECT_EQ(cache.statistics().pinned_bytes, room_for(3));
  cache.pin("p", false);
  cache.get_or_make("d", make(6));
  EXPECT_EQ(keys_of(cache), "bcd");
  cache.pin("nobody"), cache.soon("nobody"), cache.done("nobody"), cache.flush("nobody");
}

TEST(RelationCache, expected_uses) {
  RelationCache cache(room_for(3));
  cache.get_or_make("a", make(1));
  cache.get_or_make("b", make(2), {.expected_uses = 2});
  cache.get_or_make("c", make(3), {.expected_uses = 3});
  cache.get("c"), cache.get("a"), cache.get("b");  // b is done
  cache.get_or_make("d", make(4));
  EXPECT_EQ(keys_of(cache), "acd");
  cache.get("c");  // and so is c
  EXPECT_TRUE(cache.entries()[1].done);
  cache.get("c");  // who is asked for all the same is not
  EXPECT_FALSE(cache.entries()[1].done);
}

TEST(RelationCache, groups_are_flushed_together) {
  RelationCache cache(room_for(4));
  cache.get_or_make("a", make(1), {.group = "g"});
  cache.get_or_make("b", make(2));
  cache.get_or_make("c", make(3), {.group = "g"});
  cache.get_or_make("d", make(4));
  cache.get("a");  // the group is used when one of it is
  cache.get_or_make("e", make(5));
  EXPECT_EQ(keys_of(cache), "acde");
  cache.get("d"), cache.get("e");
  cache.get_or_make("f", make(6));
  EXPECT_EQ(keys_of(cache), "def");
  EXPECT_EQ(cache.statistics().evictions, 3);
  EXPECT_EQ(cache.statistics().groups, 0);
}

TEST(RelationCache, a_group_does_not_make_room_for_itself) {
  RelationCache cache(room_for(2));
  cache.get_or_make("x", make(0));
  for (const char* key : {"a", "b", "c"}) cache.get_or_make(key, make(key[0]), {.group = "g"});
  EXPECT_EQ(keys_of(cache), "ab");
  EXPECT_EQ(cache.statistics().not_kept, 1);
}

TEST(RelationCache, what_is_larger_than_the_ceiling_is_given_and_not_kept) {
  RelationCache cache(room_for(2));
  cache.get_or_make("a", make(1));
  EXPECT_EQ(id_of(cache.get_or_make("b", make(2, 1000))), 2);
  EXPECT_EQ(keys_of(cache), "a");
  EXPECT_EQ(cache.statistics().not_kept, 1);
  EXPECT_EQ(cache.statistics().largest_bytes, cached_bytes(1000, 1));
  RelationCache nothing(0);
  EXPECT_EQ(id_of(nothing.get_or_make("b", make(2))), 2);
  expect_error(ErrorKind::argument, {"-1"}, [] { RelationCache(-1); });
}

TEST(RelationCache, programs_are_kept_and_counted) {
  RelationCache cache(1 << 20);
  const auto relation = cache.get_or_make("a", make(1, 100), {.keep = KeptProgram::assembler});
  ASSERT_NE(relation->assembler(), nullptr);
  EXPECT_EQ(relation->program(), nullptr);
  EXPECT_EQ(relation->disassembler(), nullptr);
  EXPECT_EQ(relation->kept(), KeptProgram::assembler);
  EXPECT_EQ(cache.statistics().bytes, cached_bytes(100, 1) + relation->assembler()->program().workspace_bytes());
}

TEST(RelationCache, what_a_maker_throws_goes_on_and_nothing_is_kept) {
  RelationCache cache(room_for(2));
  EXPECT_THROW(cache.get_or_make("a", []() -> Encoding { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_EQ(keys_of(cache), "");
  EXPECT_EQ(id_of(cache.get_or_make("a", make(1))), 1);
}

TEST(RelationCache, makers_may_ask_for_others_not_for_themselves) {
  RelationCache cache(room_for(3));
  const auto inner = [&] { return cache.get_or_make("b", make(2))->encoding(); };
  EXPECT_EQ(id_of(cache.get_or_make("a", inner)), 2);
  EXPECT_EQ(keys_of(cache), "ab");
  expect_error(ErrorKind::argument, {"the maker of 'c'"},
               [&] { cache.get_or_make("c", [&] { return cache.get_or_make("c", make(1))->encoding(); }); });
}

TEST(RelationCache, put_replaces_and_erase_forgets) {
  const auto store = std::make_shared<MemoryStore>();
  RelationCache cache(room_for(4), nullptr, store);
  put(cache, "a");
  cache.flush("a");
  EXPECT_EQ(store->records.size(), 1u);
  ASSERT_TRUE(cache.put("a", encoding_of(7), {.group = "g"}));
  EXPECT_EQ(id_of(cache.get("a")), 7);
  ASSERT_TRUE(cache.put("a", encoding_of(8)));
  EXPECT_EQ(id_of(cache.get("a")), 8);
  cache.flush_all();
  EXPECT_EQ(id_of(cache.get("a")), 8);
  cache.erase("a");
  EXPECT_EQ(cache.get("a"), nullptr);
  EXPECT_TRUE(store->records.empty());
}

TEST(RelationCache, restores_what_it_flushed) {
  const auto store = std::make_shared<MemoryStore>();
  RelationCache cache(room_for(2), nullptr, store);
  for (const char* key : {"a", "b", "c"}) cache.get_or_make(key, make(key[0]));
  EXPECT_EQ(keys_of(cache), "bc");
  EXPECT_EQ(id_of(cache.get_or_make("a", never())), 'a');
  EXPECT_EQ(id_of(cache.get("b")), 'b');
  const auto now = cache.statistics();
  EXPECT_EQ(now.restores, 2);
  EXPECT_EQ(now.misses, 3);
  EXPECT_EQ(now.spills, 3);  // a's record is as it was, so that flushing it again writes nothing
  EXPECT_EQ(now.evictions, 3);
  cache.flush_all();
  EXPECT_EQ(cache.statistics().spills, 3);
}

TEST(RelationCache, groups_are_restored_together) {
  const auto store = std::make_shared<MemoryStore>();
  RelationCache cache(room_for(3), nullptr, store);
  for (const char* key : {"a", "b"}) cache.get_or_make(key, make(key[0]), {.group = "g", .keep = KeptProgram::none});
  cache.flush("a");
  EXPECT_EQ(keys_of(cache), "");
  EXPECT_EQ(store->records.size(), 1u);
  EXPECT_EQ(id_of(cache.get_or_make("b", never(), {.group = "g"})), 'b');
  EXPECT_EQ(keys_of(cache), "ab");
  EXPECT_EQ(cache.statistics().restores, 2);
  // One more of the group: the others come first, and all are written again.
  cache.flush_all();
  cache.get_or_make("c", make('c'), {.group = "g"});
  EXPECT_EQ(keys_of(cache), "abc");
  cache.flush_all();
  EXPECT_EQ(cache.statistics().spills, 2);
  cache.get("c", "g");
  EXPECT_EQ(keys_of(cache), "abc");
}

TEST(RelationCache, a_group_that_no_longer_fits_comes_back_in_part) {
  const auto store = std::make_shared<MemoryStore>();
  RelationCache cache(room_for(3), nullptr, store);
  for (const char* key : {"a", "b", "c"}) cache.get_or_make(key, make(key[0]), {.group = "g"});
  cache.flush_all();
  cache.get_or_make("p", make('p'), {.pin = true});
  EXPECT_EQ(id_of(cache.get("c", "g")), 'c');
  EXPECT_EQ(cache.statistics().relations, 3);
  EXPECT_TRUE(cache.contains("c"));
}

TEST(RelationCache, a_damaged_record_is_a_miss) {
  const auto store = std::make_shared<MemoryStore>();
  RelationCache cache(room_for(2), nullptr, store);
  cache.get_or_make("a", make(1));
  cache.flush_all();
  const auto record = store->records.begin()->second;
  Index damaged = 0;
  for (std::size_t at = 0; at < record.size(); ++at) {
    store->records["ka"] = record;
    store->records["ka"][at] ^= std::byte(1 << (at % 8));
    EXPECT_EQ(id_of(cache.get_or_make("a", make(2))), 2) << at;
    EXPECT_EQ(cache.statistics().damaged, ++damaged);
    cache.erase("a");
  }
  for (std::size_t bytes = 0; bytes < record.size(); bytes += 3) {
    store->records["ka"].assign(record.begin(), record.begin() + Index(bytes));
    EXPECT_EQ(cache.get("a"), nullptr);
    EXPECT_EQ(cache.statistics().damaged, ++damaged);
    EXPECT_TRUE(store->records.empty());
  }
  store->records["kb"] = record;  // another's
  EXPECT_EQ(cache.get("b"), nullptr);
  EXPECT_EQ(cache.statistics().damaged, ++damaged);
  EXPECT_EQ(cache.statistics().restores, 0);
}

TEST(RelationCache, a_store_that_fails_costs_time_only) {
  const auto store = std::make_shared<MemoryStore>();
  RelationCache cache(room_for(1), nullptr, store);
  store->fails = true;
  cache.get_or_make("a", make(1));
  cache.get_or_make("b", make(2));
  EXPECT_EQ(id_of(cache.get_or_make("a", make(1))), 1);
  EXPECT_EQ(cache.statistics().store_failures, 5);  // three that could not be read, two that could not be written
  EXPECT_EQ(cache.statistics().evictions, 2);
}

struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("longshore-cache-" + std::to_string(::getpid()));
  Folder() { std::filesystem::remove_all(path); }
  ~Folder() { std::filesystem::remove_all(path); }
};

TEST(RelationCache, a_folder_keeps_what_is_flushed_for_the_next_process) {
  const Folder folder;
  for (const auto kept : {KeptProgram::none, KeptProgram::program, KeptProgram::assembler, KeptProgram::disassembler}) {
    const auto key = "key" + std::to_string(int(kept));
    const auto before = relation_of(int(kept), 500);
    {
      RelationCache cache(1 << 20, nullptr, std::make_shared<DirectoryStore>(folder.path));
      cache.get_or_make(key, [&] { return Encoding::automatic(before); }, {.keep = kept});
      cache.flush_all();
    }
    RelationCache cache(1 << 20, nullptr, std::make_shared<DirectoryStore>(folder.path));
    const auto relation = cache.get_or_make(key, never(), {.keep = kept});
    EXPECT_EQ(relation->encoding().decode(), before);
    EXPECT_EQ(relation->kept(), kept);
  }
  const DirectoryStore store(folder.path);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path))
    EXPECT_EQ(entry.path().extension(), ".lsrc") << entry.path();
  std::ofstream(store.file_of("kkey0"), std::ios::trunc) << "LSRC";
  RelationCache cache(1 << 20, nullptr, std::make_shared<DirectoryStore>(folder.path));
  EXPECT_EQ(cache.get("key0"), nullptr);
  EXPECT_EQ(cache.statistics().damaged, 1);
  EXPECT_FALSE(std::filesystem::exists(store.file_of("kkey0")));
}

TEST(RelationCache, a_folder_is_swept_and_may_vanish) {
  const Folder folder;
  std::filesystem::create_directory(folder.path);
  const auto stale = folder.path / "0123.lsrc-partial-9-9", fresh = folder.path / "4567.lsrc-partial-9-9";
  std::ofstream(stale) << "half", std::ofstream(fresh) << "half";
  std::filesystem::last_write_time(stale, std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  RelationCache cache(room_for(1), nullptr, std::make_shared<DirectoryStore>(folder.path));
  EXPECT_FALSE(std::filesystem::exists(stale));
  EXPECT_TRUE(std::filesystem::exists(fresh));
  std::filesystem::remove_all(folder.path);
  cache.get_or_make("a", make(1)), cache.get_or_make("b", make(2));
  EXPECT_EQ(id_of(cache.get_or_make("a", make(1))), 1);
  EXPECT_EQ(cache.statistics().store_failures, 2);
  expect_error(ErrorKind::argument, {"make its parent first"}, [&] { DirectoryStore(folder.path / "deeper"); });
}

}  // namespace
}  // namespace longshore::test

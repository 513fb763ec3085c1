// Hostile bytes as stored rank maps of every representation.
#include "fuzz/rank_map.hpp"

#include <cstring>
#include <random>

#include "support/quick.hpp"
#include "support/ranks.hpp"

namespace longshore::test {
namespace {

const std::vector<Bytes>& corpus() {
  static const std::vector<Bytes> all = [] {
    std::vector<Bytes> list;
    for (const auto& [name, members, world] : rank_cases(8))
      for (const auto* module : all_modules()) {
        const auto analysis = analyse(Members(members), world);
        if (members.size() > 3000 || !module->estimate(Members(members), analysis).possible) continue;
        list.push_back(RankMap::of(members, world, {0.25, {module}, LookupKind::hash}).to_bytes());
      }
    const auto parent = RankMap::of(iota(0, 100, 3), 300);
    list.push_back(RankMap::child(parent, RankMap::of(Ranks{7, 3, 99}, 100)).to_bytes());
    for (const auto* module : {"array", "packed", "linear"})
      list.push_back(RankMap::of({}, 50, Strategy::only(module)).to_bytes());
    return list;
  }();
  return all;
}

TEST(StoredRankMap, what_is_written_is_read) {
  EXPECT_GT(corpus().size(), 100u);
  for (const auto& bytes : corpus()) {
    auto sealed = bytes;
    seal(sealed);
    ASSERT_EQ(sealed, bytes);
    ASSERT_TRUE(check_rank_map(bytes));
  }
}

TEST(StoredRankMap, any_damage_is_noticed) {
  for (const auto& bytes : corpus()) {
    const std::size_t step = 1 + bytes.size() / (quick() ? 10 : 60);
    for (std::size_t n = 0; n < bytes.size(); n += step) ASSERT_FALSE(check_rank_map(std::span(bytes).first(n)));
    for (std::size_t k = 0; k < bytes.size(); k += step) {
      auto damaged = bytes;
      damaged[k] ^= std::byte(1 << (k % 8));
      ASSERT_FALSE(check_rank_map(damaged));
    }
  }
}

constexpr std::size_t head_bytes = 5;  // four letters and a version

TEST(StoredRankMap, nobody_in_no_order_is_refused) {
  constexpr std::size_t flags = head_bytes + 16;  // behind what it is, its world and its size
  int seen = 0;
  for (const auto& bytes : corpus()) {
    std::uint64_t size;
    std::memcpy(&size, &bytes[head_bytes + 8], 8);
    if (size > 1) continue;
    ++seen;
    for (std::uint64_t lookup = 0; lookup < 4; ++lookup)
      for (const std::uint64_t ascending : {0u, 1u}) {
        auto changed = bytes;
        const std::uint64_t word = lookup << 8 | ascending;
        std::memcpy(&changed[flags], &word, 8);
        seal(changed);
        ASSERT_EQ(check_rank_map(changed), ascending == 1);
      }
  }
  EXPECT_GT(seen, 3);
}

TEST(StoredRankMap, survives_words_replaced) {
  std::mt19937_64 random(20261122);
  const std::uint64_t odd[] = {0,
                               1,
                               2,
                               7,
                               63,
                               64,
                               255,
                               1u << 16,
                               std::uint64_t(1) << 31,
                               std::uint64_t(1) << 32,
                               std::uint64_t(1) << 40,
                               (std::uint64_t(1) << 40) + 1,
                               std::uint64_t(1) << 62,
                               std::uint64_t(INT64_MAX),
                               std::uint64_t(INT64_MIN),
                               ~std::uint64_t(0),
                               ~std::uint64_t(0) - 1};
  int good = 0;
  for (const auto& bytes : corpus()) {
    const std::size_t words = (bytes.size() - head_bytes) / 8 - 1;
    for (int round = 0; round < (quick() ? 10 : 150); ++round) {
      auto changed = bytes;
      for (int edits = 1 + int(random() % 2); edits > 0; --edits) {
        // The first words say what the others are. The head changes too, now and then.
        const std::size_t place = random() % 2 ? random() % std::min<std::size_t>(words, 24) : random() % words;
        const std::size_t at = random() % 32 == 0 ? 0 : head_bytes + 8 * place;
        std::uint64_t word;
        std::memcpy(&word, &changed[at], 8);
        switch (random() % 4) {
          case 0: word = odd[random() % std::size(odd)]; break;
          case 1: word ^= std::uint64_t(1) << (random() % 64); break;
          case 2: word += random() % 5 - 2; break;
          default: std::memcpy(&word, &changed[head_bytes + 8 * (random() % words)], 8);
        }
        std::memcpy(&changed[at], &word, 8);
      }
      if (random() % 8 == 0) changed.resize(head_bytes + 8 * (random() % (words + 1)));
      seal(changed);
      good += check_rank_map(changed);
    }
  }
  EXPECT_GT(good, 100);  // some say the same, or something else
}

}  // namespace
}  // namespace longshore::test

// Plans and floor plans as bytes: what is written is read, and whatever else comes is refused, or is a plan that holds together.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <random>

#include "longshore/plans/block_plan.hpp"
#include "support/expect_error.hpp"
#include "support/quick.hpp"

namespace longshore::test {
namespace {

using Bytes = std::vector<std::byte>;

/// The checksum again, from its definition.
void seal(Bytes& bytes) {
  std::uint64_t hash = 14695981039346656037u;
  const std::size_t content = bytes.size() - 8;
  auto mix = [&hash](std::uint64_t word) {
    hash = (hash ^ word) * 1099511628211u;
    hash ^= hash >> 32;
  };
  mix(content);
  for (std::size_t k = 0; k < content; k += 8) {
    std::uint64_t word = 0;
    for (std::size_t j = k; j < std::min(k + 8, content); ++j) word |= std::uint64_t(bytes[j]) << 8 * (j - k);
    mix(word);
  }
  for (std::size_t k = 0; k < 8; ++k) bytes[content + k] = std::byte(hash >> 8 * k);
}

const Region domain({0, 0}, {8, 6});
const FloorPlan four = even_floor_plan(domain, 4);

/// Plans of every kind.
std::vector<BlockPlan> plans() {
  const FloorPlan tall = even_floor_plan(Region({-3, 0}, {6, 8}), 3), line = even_floor_plan(Region({0}, {100}), 5);
  Halo faces(2, 1, domain, {true, false});
  faces.corners = false;
  BlockPlan hand(four, tall, {1, 0});
  hand.copy(Region({3, 0}, {6, 4}), 0, Region({0, 3}, {4, 6}), 1);
  hand.copy_points({2, std::vector<Index>{0, 0, 5, 5}}, 2, {2, std::vector<Index>{1, 1, 1, 1}}, 3);
  hand.copy(Region({3, 4}, {6, 5}), 1, Region({0, 3}, {1, 6}), 1);
  std::vector<std::vector<Index>> needed(5);
  for (Index k = 0; k < 60; ++k) needed[std::size_t(k % 5)].push_back(k * 37 % 100);
  BlockPlan both = BlockPlan::halo(four, Halo(2, 1), 2);
  both.copy(Region({0, 0}, {1, 1}), 3, Region({1, 0}, {2, 1}), 3);
  return {BlockPlan(FloorPlan(), FloorPlan()), hand, hand.reverse(), BlockPlan::halo(four, faces), both, both.reverse(),
          BlockPlan::copy_between(four, tall, 1, domain, {false, true}), BlockPlan::transpose(four, tall, {1, 0}),
          BlockPlan::transpose(four, tall, {1, 0}).reverse(), BlockPlan::gather_points(line, needed, 3)};
}

TEST(StoredPlan, what_is_written_is_read) {
  for (const auto& plan : plans()) {
    const auto bytes = plan.to_bytes();
    auto sealed = bytes;
    seal(sealed);
    ASSERT_EQ(sealed, bytes);  // the checksum of the test is the format's
    const auto again = BlockPlan::from_bytes(bytes);
    EXPECT_EQ(again, plan) << plan.to_string();
    EXPECT_EQ(again.motions(), plan.motions());
    EXPECT_EQ(again.digest(), plan.digest());
    EXPECT_EQ(again.rank(), plan.rank());
    EXPECT_EQ(again.axes(), plan.axes());
    EXPECT_EQ(again.to_bytes(), bytes);
  }
  // Its description, not its lists.
  const auto boxes = split_evenly(Region({0, 0, 0}, {160, 160, 160}), {16, 16, 16});
  const BlockPlan halo = BlockPlan::halo(balanced_along(boxes, 16), Halo(3, 1));
  EXPECT_LT(Index(halo.to_bytes().size()), halo.workspace_bytes() / 8);
  EXPECT_EQ(BlockPlan::from_bytes(halo.to_bytes()), halo);
}

TEST(StoredPlan, floor_plans_are_read_too) {
  const Index far = std::numeric_limits<Index>::max();
  for (const auto& plan : {FloorPlan(), four, even_floor_plan(Region({-5}, {1000}), 7),
                           FloorPlan(std::vector{Region({3, 3}, {3, 9}), Region({-far - 1, 0}, {far, 1})}, {far - 1, 0}),
                           FloorPlan(std::vector(3, Region(Point(), Point())), {0, 1, 2})}) {
    EXPECT_EQ(FloorPlan::from_bytes(plan.to_bytes()), plan) << plan.to_string();
    EXPECT_EQ(FloorPlan::from_bytes(plan.to_bytes()).world_size(), plan.world_size());
  }
}

TEST(StoredPlan, any_damage_is_noticed) {
  auto refused = [](const Bytes& bytes, auto&& read) {
    try {
      read(bytes);
      return false;
    } catch (const Error& error) {
      return error.kind() == ErrorKind::argument;
    }
  };
  auto damage = [&](const Bytes& bytes, auto&& read) {
    for (std::size_t n = 0; n < bytes.size(); ++n)
      ASSERT_TRUE(refused({bytes.begin(), bytes.begin() + std::ptrdiff_t(n)}, read)) << n;
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      auto damaged = bytes;
      damaged[bit / 8] ^= std::byte(1 << bit % 8);
      ASSERT_TRUE(refused(damaged, read)) << bit;
    }
    auto longer = bytes;
    longer.insert(longer.end() - 8, std::byte(0));
    seal(longer);
    ASSERT_TRUE(refused(longer, read));
  };
  for (const auto& plan : plans()) damage(plan.to_bytes(), [](const Bytes& bytes) { BlockPlan::from_bytes(bytes); });
  damage(four.to_bytes(), [](const Bytes& bytes) { FloorPlan::from_bytes(bytes); });
}

/// Refused in printable words, or a plan.
bool check(const Bytes& bytes) {
  try {
    const auto plan = BlockPlan::from_bytes(bytes, 1 << 16);
    EXPECT_EQ(BlockPlan::from_bytes(plan.to_bytes()), plan);
    try {
      for (const auto& motion : plan.motions()) motion.to_string();
      plan.volumes();
      plan.check_races(plan.source() == plan.destination());
    } catch (const Error&) {  // races; sizes beyond 64 bits
    }
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(int(error.kind()), int(ErrorKind::argument)) << error.what();
    for (const char c : std::string(error.what())) EXPECT_TRUE(c >= ' ' && c <= '~');
    return false;
  }
}

TEST(StoredPlan, survives_bytes_changed_and_sealed) {
  std::mt19937_64 random(20261121);  // fixed: a failure repeats
  const auto all = plans();
  int good = 0, bad = 0;
  for (int trial = 0; trial < (quick() ? 4000 : 40000); ++trial) {
    auto bytes = all[random() % all.size()].to_bytes();
    for (auto edits = 1 + random() % 3; edits > 0; --edits) {
      const auto at = std::ptrdiff_t(5 + random() % (bytes.size() - 13));
      switch (random() % 5) {
        case 0: bytes[std::size_t(at)] ^= std::byte(1 << random() % 8); break;
        case 1: bytes[std::size_t(at)] = std::byte(random()); break;
        case 2: bytes.insert(bytes.begin() + at, std::byte(random())); break;
        case 3: bytes[std::size_t(at)] = std::byte(random() % 3 * 127); break;
        default:
          if (bytes.size() > 32) bytes.erase(bytes.begin() + at);
      }
    }
    seal(bytes);
    (check(bytes) ? good : bad)++;
  }
  EXPECT_GT(good, 20);  // some say the same, or something else
  EXPECT_GT(bad, 100);
}

TEST(StoredPlan, bombs_do_not_go_off) {
  // Few bytes for many pairs of neighbours: as many as the reader wants, and no more.
  const std::vector<Region> same(50000, Region({0, 0}, {4, 4}));
  Map owners(same.size(), 0);
  owners[7] = 1;
  const FloorPlan heap(same, owners);
  const BlockPlan plan = BlockPlan::copy_between(heap, heap, 1);
  const auto bytes = plan.to_bytes();
  EXPECT_LT(bytes.size(), 10000u);
  EXPECT_EQ(BlockPlan::from_bytes(bytes), plan);
  expect_error(ErrorKind::argument, {"more than 1000 pairs of neighbours"}, [&] { BlockPlan::from_bytes(bytes, 1000); });
}

TEST(StoredPlan, says_what_is_wrong) {
  auto bytes = BlockPlan::halo(four, Halo(2, 1)).to_bytes();
  auto wrong = [&](const std::vector<std::string>& words, const std::function<void(Bytes&)>& change, bool sealed = true) {
    auto changed = bytes;
    change(changed);
    if (sealed) seal(changed);
    expect_error(ErrorKind::argument, words, [&] { BlockPlan::from_bytes(changed); });
  };
  wrong({"the stored plan has 12 bytes", "cut short"}, [](Bytes& b) { b.resize(12); });
  wrong({"does not begin with LSBP"}, [](Bytes& b) { b[0] = std::byte('x'); });
  wrong({"version 2", "reads version 1"}, [](Bytes& b) { b[4] = std::byte(2); });
  wrong({"wrong checksum", "damaged"}, [](Bytes& b) { b[20] ^= std::byte(1); }, false);
  wrong({"goes on for 1 bytes"}, [](Bytes& b) { b.insert(b.end() - 8, std::byte(0)); });
  expect_error(ErrorKind::argument, {"does not begin with LSFP"}, [&] { FloorPlan::from_bytes(bytes); });
  expect_error(ErrorKind::argument, {"the stored floor plan", "cut short"}, [&] { FloorPlan::from_bytes({}); });
  expect_error(ErrorKind::argument, {"more than 3 pairs of neighbours"}, [&] { BlockPlan::from_bytes(bytes, 3); });
}

}  // namespace
}  // namespace longshore::test

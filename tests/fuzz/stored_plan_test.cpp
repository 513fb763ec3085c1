// Hostile bytes as stored plans and floor plans: damaged ones of every
// kind, and bombs; stored_plan_fuzz.cpp is the same under libFuzzer.
#include "fuzz/stored_plan.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <random>

#include "sequences/stored_words.hpp"
#include "support/clock.hpp"
#include "support/expect_error.hpp"
#include "support/plans.hpp"
#include "support/quick.hpp"

namespace longshore::test {
namespace {

/// Plans of every kind and floor plans, as bytes.
const std::vector<Bytes>& corpus() {
  static const std::vector<Bytes> all = [] {
    std::vector<Bytes> result;
    for (const auto& plan : every_kind_of_plan()) result.push_back(plan.to_bytes());
    for (const auto& plan : odd_floor_plans()) result.push_back(plan.to_bytes());
    return result;
  }();
  return all;
}

TEST(FuzzedPlan, any_damage_is_noticed) {
  for (const auto& bytes : corpus()) {
    auto sealed = bytes;
    seal(sealed);
    ASSERT_EQ(sealed, bytes);  // the checksum of the test is the format's
    ASSERT_TRUE(check_stored(bytes));
    for (std::size_t n = 0; n < bytes.size(); ++n)
      ASSERT_FALSE(check_stored({bytes.begin(), bytes.begin() + std::ptrdiff_t(n)}));
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      auto damaged = bytes;
      damaged[bit / 8] ^= std::byte(1 << bit % 8);
      ASSERT_FALSE(check_stored(damaged)) << bit;
    }
    auto longer = bytes;
    longer.insert(longer.end() - 8, std::byte(0));
    seal(longer);
    ASSERT_FALSE(check_stored(longer));
  }
}

TEST(FuzzedPlan, survives_every_byte_replaced_and_sealed) {
  int good = 0, bad = 0;
  for (const auto& bytes : corpus())
    for (std::size_t at = 0; at + 8 < bytes.size(); ++at)
      for (const int byte : {0, 1, 2, 63, 64, 127, 128, 129, 254, 255}) {
        if (quick() && (at + std::size_t(byte)) % 4 != 0) continue;
        auto changed = bytes;
        changed[at] = std::byte(byte);
        seal(changed);
        (check_stored(changed) ? good : bad)++;
        changed[at] ^= bytes[at];
        seal(changed);
        (check_stored(changed) ? good : bad)++;
      }
  EXPECT_GT(good, 100);  // some say the same, or something else
  EXPECT_GT(bad, 1000);
}

TEST(FuzzedPlan, survives_bytes_changed_and_sealed) {
  std::mt19937_64 random(20261121);  // fixed: a failure repeats
  int good = 0, bad = 0;
  for (int trial = 0; trial < (quick() ? 4000 : 40000); ++trial) {
    auto bytes = corpus()[random() % corpus().size()];
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
    (check_stored(bytes) ? good : bad)++;
  }
  EXPECT_GT(good, 20);
  EXPECT_GT(bad, 100);
}

/// So many blocks or motions, all alike, of `dims` dimensions from
/// `lower` with `extent`, in some dozens of bytes a thousand.
void write_alike(WordWriter& out, Index n, Index dims, Index lower, Index extent) {
  for (Index d = 0; d < dims; ++d)
    out.integers(std::vector<Index>(std::size_t(n), lower)), out.integers(std::vector<Index>(std::size_t(n), extent));
}

struct Bomb {
  Index kind = 2, blocks = 1, dims = 1, extent = 4, width = 1, motions = 0, points = 0, period = 0;
};

Bytes build(const Bomb& bomb) {
  WordWriter out({"LSBP", 2, "plan"});
  out.integers({bomb.kind, 0, -1, 1, 1});
  out.integers({bomb.dims});
  out.integers(std::vector<Index>(std::size_t(bomb.blocks), 0));
  write_alike(out, bomb.blocks, bomb.dims, 0, bomb.extent);
  out.integers({});
  const std::size_t dims = bomb.kind == 0 ? 0 : std::size_t(bomb.dims);
  out.integers(std::vector<Index>(dims, bomb.width)), out.integers(std::vector<Index>(dims, bomb.width));
  out.integers(std::vector<Index>(bomb.period > 0 ? dims : 0, 1));
  write_alike(out, 1, Index(dims), 0, bomb.period);
  const std::vector<Index> none(std::size_t(bomb.motions), 0);
  out.integers(none), out.integers(none), out.integers(std::vector<Index>(none.size(), bomb.points));
  for (int side = 0; side < 2; ++side) write_alike(out, bomb.points == 0 ? bomb.motions : 0, bomb.dims, 0, 1);
  for (int side = 0; side < 2; ++side)
    for (Index d = 0; d < bomb.dims; ++d) out.integers(std::vector<Index>(std::size_t(bomb.motions * bomb.points), 3));
  out.integers({bomb.motions, 0, 0});  // those of no motions
  return std::move(out).finish();
}

/// Few bytes that stand for a great deal: refused in a moment and little memory. Bounds are those of whoever reads.
TEST(FuzzedPlan, bombs_do_not_go_off) {
  const Clock clock;
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  constexpr Index many = 1000000, most = 1 << 14;
  auto refused = [](const Bomb& bomb, const std::string& words) {
    const Bytes bytes = build(bomb);
    EXPECT_LT(bytes.size(), 600000u);
    expect_error(ErrorKind::argument, {words}, [&] { BlockPlan::from_bytes(bytes, most); });
  };
  // More blocks than are read; blocks upon blocks, that have
  // nothing of each other's or everything; in very many dimensions.
  refused({.blocks = many}, "has 1000000 regions, more than the 16384 that are read");
  refused({.blocks = most}, "takes too long: blocks lie upon each other");
  refused({.kind = 1, .blocks = most, .width = 0}, "more than 16384 pairs of neighbours");
  refused({.blocks = 2000, .dims = 64}, "takes too long: blocks lie upon each other");
  refused({.blocks = most, .dims = 3, .extent = 1, .width = 7, .period = 1}, "more than 16384 pairs of neighbours");
  refused({.blocks = 4, .dims = 65}, "has regions of 65 dimensions, more than the 64 that are read");
  refused({.blocks = 2, .dims = 20000}, "has regions of 20000 dimensions");
  refused({.blocks = 0, .dims = 20000}, "has 0 regions of 20000 dimensions");
  // Images upon images.
  refused({.blocks = 1, .extent = 1, .width = 1 << 20, .period = 1}, "more than 16384 images");
  EXPECT_TRUE(BlockPlan::from_bytes(build({.blocks = most, .dims = 2, .extent = 0, .width = 50, .period = 1}))
                  .motions()
                  .empty());
  // Motions by hand, and lists of points.
  refused({.kind = 0, .motions = many}, "has 1000000 motions by hand, more than the 16384 that are read");
  refused({.kind = 0, .motions = many, .points = 1}, "has 1000000 motions by hand");
  refused({.kind = 0, .motions = 10, .points = 100000}, "the stored plan has another digest than its motions by hand");
  // Floor plans by themselves.
  const Bytes heap = FloorPlan(std::vector<Region>(many, Region({0, 0}, {4, 4})), Map(many, 0)).to_bytes();
  EXPECT_LT(heap.size(), 200000u);
  expect_error(ErrorKind::argument, {"the stored floor plan has 1000000 regions, more than the 1000 that are read"},
               [&] { FloorPlan::from_bytes(heap, 1000); });
  EXPECT_EQ(FloorPlan::from_bytes(heap, many).size(), many);
  rusage after{};
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 1 << 20);  // KiB; sanitizers keep what is freed
}

}  // namespace
}  // namespace longshore::test

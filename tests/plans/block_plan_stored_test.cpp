// Plans and floor plans as bytes: what is written is read, and
// what is wrong is said. For hostile bytes, see the tests in fuzz.
#include <gtest/gtest.h>

#include <functional>

#include "fuzz/stored_plan.hpp"
#include "layouts/floor_plan_stored.hpp"
#include "longshore/layouts/balance.hpp"
#include "longshore/plans/block_algebra.hpp"
#include "support/expect_error.hpp"
#include "support/plans.hpp"

namespace longshore::test {
namespace {

TEST(StoredPlan, what_is_written_is_read) {
  for (const auto& plan : every_kind_of_plan()) {
    const auto bytes = plan.to_bytes();
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
  const BlockPlan halo = halo_exchange(balanced_along(boxes, 16), Halo(3, 1));
  EXPECT_LT(Index(halo.to_bytes().size()), halo.workspace_bytes() / 8);
  EXPECT_EQ(BlockPlan::from_bytes(halo.to_bytes()), halo);
}

TEST(StoredPlan, phases_are_not_stored) {
  const auto parts = phases(halo_exchange(even_floor_plan(Region({0, 0}, {8, 6}), 4), Halo(2, 1)));
  ASSERT_EQ(parts.size(), 2u);
  expect_error(ErrorKind::argument, {"store the plan that it is a phase of"}, [&] { parts[0].to_bytes(); });
}

TEST(StoredPlan, floor_plans_are_read_too) {
  for (const auto& plan : odd_floor_plans()) {
    EXPECT_EQ(FloorPlan::from_bytes(plan.to_bytes()), plan) << plan.to_string();
    EXPECT_EQ(FloorPlan::from_bytes(plan.to_bytes()).world_size(), plan.world_size());
  }
}

TEST(StoredPlan, of_a_rank_takes_the_others_motions_at_their_word) {
  const FloorPlan four = even_floor_plan(Region({0}, {40}), 4);
  auto plan = [&](std::optional<Index> rank, Index others) {
    BlockPlan made = halo_exchange(four, Halo(1, 1), rank);
    made.copy(Region({0}, {1}), 0, Region({3}, {4}), 0);
    made.copy(Region({20}, {21}), 2, Region({others}, {others + 1}), 3);
    return made;
  };
  for (const BlockPlan& mine : {plan(0, 30), plan(0, 31), plan(3, 31), plan(1, 30)}) {
    const auto again = BlockPlan::from_bytes(mine.to_bytes());
    EXPECT_EQ(again, mine);
    EXPECT_EQ(again.digest(), plan({}, mine == plan(0, 30) || mine == plan(1, 30) ? 30 : 31).digest());
  }
}

TEST(StoredPlan, is_read_within_bounds) {
  const std::vector<Region> same(50000, Region({0, 0}, {4, 4}));
  Map owners(same.size(), 0);
  owners[7] = 1;
  const FloorPlan heap(same, owners);
  const BlockPlan plan = copy_between(heap, heap, 1);
  const auto bytes = plan.to_bytes();
  EXPECT_LT(bytes.size(), 10000u);
  EXPECT_EQ(BlockPlan::from_bytes(bytes), plan);
  EXPECT_EQ(BlockPlan::from_bytes(bytes, 99999), plan);
  expect_error(ErrorKind::argument, {"more than 99998 pairs of neighbours"},
               [&] { BlockPlan::from_bytes(bytes, 99998); });
  expect_error(ErrorKind::argument, {"the stored plan has 50000 regions, more than the 49999 that are read"},
               [&] { BlockPlan::from_bytes(bytes, 49999); });
  expect_error(ErrorKind::argument, {"the stored floor plan has 50000 regions, more than the 49999 that are read"},
               [&] { FloorPlan::from_bytes(heap.to_bytes(), 49999); });
}

TEST(StoredPlan, says_what_is_wrong) {
  const FloorPlan four = even_floor_plan(Region({0, 0}, {8, 6}), 4);
  auto bytes = halo_exchange(four, Halo(2, 1)).to_bytes();
  auto wrong = [&](const std::vector<std::string>& words, const std::function<void(Bytes&)>& change,
                   bool sealed = true) {
    auto changed = bytes;
    change(changed);
    if (sealed) seal(changed);
    expect_error(ErrorKind::argument, words, [&] { BlockPlan::from_bytes(changed); });
  };
  wrong({"the stored plan has 12 bytes", "cut short"}, [](Bytes& b) { b.resize(12); });
  wrong({"does not begin with LSBP"}, [](Bytes& b) { b[0] = std::byte('x'); });
  wrong({"version 1", "reads version 2"}, [](Bytes& b) { b[4] = std::byte(1); });
  wrong(
      {"wrong checksum", "damaged"}, [](Bytes& b) { b[20] ^= std::byte(1); }, false);
  wrong({"goes on for 1 bytes"}, [](Bytes& b) { b.insert(b.end() - 8, std::byte(0)); });
  expect_error(ErrorKind::argument, {"does not begin with LSFP"}, [&] { FloorPlan::from_bytes(bytes); });
  expect_error(ErrorKind::argument, {"the stored floor plan", "cut short"}, [&] { FloorPlan::from_bytes({}); });
  expect_error(ErrorKind::argument, {"more than 11 pairs of neighbours"}, [&] { BlockPlan::from_bytes(bytes, 11); });
  EXPECT_EQ(BlockPlan::from_bytes(bytes, 12), halo_exchange(four, Halo(2, 1)));
  wrong({"the stored plan has no good list at byte 5: packed integers: byte 0: scheme 9"},
        [](Bytes& b) { b[5] = std::byte(9); });
  // What no builder makes: a periodic transpose.
  const FloorPlan two = even_floor_plan(Region({0, 0}, {4, 4}), 2);
  auto stored = [&](const Axes& axes, const std::vector<Index>& periodic) {
    WordWriter out({"LSBP", 2, "plan"});
    out.integers({1, 0, -1, 1, 1});
    write(out, two);
    out.integers(std::vector<Index>(axes.begin(), axes.end()));
    out.integers({0, 0}), out.integers({0, 0}), out.integers(periodic);
    const Region domain = periodic.empty() ? Region({0, 0}, {0, 0}) : two.bounding();
    write_regions(out, 2, std::span(&domain, 1));
    for (int empty = 0; empty < 3 + 4 + 4 + 4; ++empty) out.integers({});
    out.integers({0, 0, 0});
    return std::move(out).finish();
  };
  EXPECT_EQ(BlockPlan::from_bytes(stored({1, 0}, {})), transpose(two, two, {1, 0}));
  EXPECT_EQ(BlockPlan::from_bytes(stored({}, {1, 0})), copy_between(two, two, {}, two.bounding(), {true, false}));
  expect_error(ErrorKind::argument, {"the stored plan is a transpose and periodic"}, [&] {
    BlockPlan::from_bytes(stored({1, 0}, {1, 0}));
  });
}

}  // namespace
}  // namespace longshore::test

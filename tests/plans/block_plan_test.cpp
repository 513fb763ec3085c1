#include "longshore/plans/block_plan.hpp"

#include <gtest/gtest.h>

#include "support/expect_error.hpp"

namespace longshore {
namespace {

using test::expect_error;

const FloorPlan four = even_floor_plan(Region({0, 0}, {8, 6}), 4);  // 2 x 2 blocks of 4 x 3

TEST(BlockPlan, by_hand) {
  BlockPlan plan(four, four);
  plan.copy(Region({4, 0}, {5, 3}), 0, Region({4, 0}, {5, 3}), 2);
  plan.copy(Region({0, 3}, {4, 4}), 0, Region({0, 3}, {2, 5}), 1);  // another shape, as many points
  plan.copy(Region({0, 0}, {0, 4}), 1, Region({3, 3}, {3, 9}), 3);  // nothing
  EXPECT_EQ(plan.motions().size(), 2u);
  EXPECT_EQ(plan.receives(0).size(), 2u);
  EXPECT_EQ(plan.sends(2).size(), 1u);
  EXPECT_EQ(plan.to_string(1), "2 motions: block 2 [4:5, 0:3] -> block 0 [4:5, 0:3]; ...");
  EXPECT_EQ(plan.volumes(), (std::vector<BlockPlan::Volume>{{1, 0, 1, 4}, {2, 0, 1, 3}}));
  plan.check_races();
  BlockPlan back = plan.reverse();
  EXPECT_EQ(back.motions()[0].source, 0);
  EXPECT_EQ(back.reverse(), plan);
  EXPECT_NE(back, plan);
  EXPECT_NE(back.digest(), plan.digest());
  // What is copied into a reversed plan is meant as it is said.
  back.copy(Region({0, 0}, {1, 1}), 3, Region({0, 0}, {1, 1}), 1);
  EXPECT_EQ(back.motions()[2], (BlockMotion{1, 3, Region({0, 0}, {1, 1}), Region({0, 0}, {1, 1})}));
  BlockPlan same(four, four);
  for (const auto& motion : back.motions())
    same.copy(motion.destination_region, motion.destination, motion.source_region, motion.source);
  EXPECT_EQ(same, back);
  EXPECT_EQ(same.digest(), back.digest());
  plan.copy(Region({4, 2}, {5, 4}), 0, Region({4, 2}, {5, 4}), 3);
  expect_error(ErrorKind::argument, {"[4:5, 2:3]", "block 0 (rank 0)", "block 2 [4:5, 0:3]", "block 3"},
               [&] { plan.check_races(); });
}

TEST(BlockPlan, halos) {
  const BlockPlan plain = BlockPlan::halo(four, Halo(2, 1));
  EXPECT_EQ(plain.motions().size(), 12u);  // three neighbours each
  EXPECT_EQ(plain.receives(0)[0], (BlockMotion{1, 0, Region({0, 3}, {4, 4}), Region({0, 3}, {4, 4})}));
  Halo cross(2, 1);
  cross.corners = false;
  EXPECT_EQ(BlockPlan::halo(four, cross).motions().size(), 8u);
  const BlockPlan periodic = BlockPlan::halo(four, Halo(2, 1, Region({0, 0}, {8, 6}), {true, true}));
  Index points = 0;
  for (const auto& motion : periodic.receives(0)) points += motion.source_region.size();
  EXPECT_EQ(points, 6 * 5 - 4 * 3);  // all ghost cells
  EXPECT_NE(plain.digest(), periodic.digest());
  EXPECT_NE(plain.digest(), BlockPlan::halo(four, cross).digest());
  EXPECT_EQ(BlockPlan::halo(four, Halo(2, 0)).motions().size(), 0u);
  EXPECT_EQ(BlockPlan::halo(FloorPlan(), Halo(2, 1)).motions().size(), 0u);
  // One block that is its own neighbour, three times around.
  const FloorPlan one(std::vector{Region({0}, {2})}, {0});
  EXPECT_EQ(BlockPlan::halo(one, Halo(1, 5, Region({0}, {2}), {true})).motions().size(), 6u);
}

TEST(BlockPlan, says_what_is_wrong) {
  BlockPlan plan(four, four);
  const Region cell({0, 0}, {1, 1});
  expect_error(ErrorKind::argument, {"no source block 4", "has 4"}, [&] { plan.copy(cell, 0, cell, 4); });
  expect_error(ErrorKind::argument, {"no destination block -1"}, [&] { plan.copy(cell, -1, cell, 0); });
  expect_error(ErrorKind::shape, {"block 1", "block 0", "2 points do not fill 1"},
               [&] { plan.copy(cell, 0, Region({0, 0}, {1, 2}), 1); });
  expect_error(ErrorKind::shape, {"do not go together"}, [&] { plan.copy(Region({0}, {1}), 0, cell, 1); });
  expect_error(ErrorKind::shape, {"do not go together"},
               [&] { BlockPlan(four, even_floor_plan(Region({0}, {4}), 2)); });
  expect_error(ErrorKind::shape, {"ghost widths"}, [] { BlockPlan::halo(four, Halo(3, 1)); });
  expect_error(ErrorKind::argument, {"-1", "negative"}, [] { BlockPlan::halo(four, Halo(2, -1)); });
  expect_error(ErrorKind::argument, {"block 2", "[4:8, 0:3]", "periodic domain [0:6, 0:6]"},
               [] { BlockPlan::halo(four, Halo(2, 1, Region({0, 0}, {6, 6}), {true, false})); });
  expect_error(ErrorKind::shape, {"periodic dimensions"},
               [] { BlockPlan::halo(four, Halo(2, 1, Region({0, 0}, {8, 6}), {true})); });
  expect_error(ErrorKind::argument, {"rank 1's", "rank 0"}, [] { BlockPlan::halo(four, Halo(2, 1), 1).receives(0); });
  expect_error(ErrorKind::memory_limit, {"256 images", "[0:1]"}, [] {
    BlockPlan::halo(FloorPlan(std::vector{Region({0}, {1})}, {0}), Halo(1, 1000, Region({0}, {1}), {true}));
  });
  expect_error(ErrorKind::memory_limit, {"256 images"}, [] {
    BlockPlan::halo(FloorPlan(std::vector{Region({0, 0}, {1, 1})}, {0}), Halo(2, 1 << 30, Region({0, 0}, {1, 1}), {true, true}));
  });
  Halo flat(2, 1);
  flat.periodic = {false};
  expect_error(ErrorKind::shape, {"periodic dimensions"}, [&] { BlockPlan::halo(four, flat); });
  // Sources that overlap race for what both have.
  const FloorPlan twice(std::vector{Region({0}, {4}), Region({2}, {6})}, {0, 1});
  expect_error(ErrorKind::argument, {"[2:4]", "block 0 (rank 5)"}, [&] {
    BlockPlan::copy_between(twice, FloorPlan(std::vector{Region({0}, {6})}, {5})).check_races();
  });
}

TEST(BlockPlan, races_of_many_are_found_fast) {
  const Index n = 20000;
  const auto thin = split_evenly(Region({0, 0}, {1, n}), {1, n});
  const FloorPlan source(thin, Map(thin.size(), 0)), destination(std::vector{Region({0, 0}, {1, n})}, {0});
  BlockPlan plan = BlockPlan::copy_between(source, destination);
  plan.check_races();
  plan.copy(Region({0, 777}, {1, 778}), 0, Region({0, 3}, {1, 4}), 3);
  expect_error(ErrorKind::argument, {"two motions write the points [0:1, 777:778]", "block 777", "block 3 "},
               [&] { plan.check_races(); });
}

TEST(BlockPlan, of_many_boxes_is_small) {
  const auto boxes = split_evenly(Region({0, 0, 0}, {128, 128, 128}), {8, 8, 8});
  const auto plan = balanced_along(boxes, 2);
  const Halo halo(3, 1, Region({0, 0, 0}, {128, 128, 128}), {true, true, true});
  const BlockPlan mine = BlockPlan::halo(plan, halo, 0);
  EXPECT_EQ(mine.receives(0).size(), 26u * 256);
  EXPECT_LT(mine.workspace_bytes(), 26 * 512 * 10);
}

}  // namespace
}  // namespace longshore

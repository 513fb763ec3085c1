#include "longshore/plans/block_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "longshore/layouts/balance.hpp"
#include "longshore/plans/block_algebra.hpp"
#include "longshore/plans/block_builders.hpp"
#include "support/clock.hpp"
#include "support/expect_error.hpp"

namespace longshore {
namespace {

using test::Clock;
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
  EXPECT_EQ(volumes(plan), (std::vector<BlockVolume>{{1, 0, 1, 4}, {2, 0, 1, 3}}));
  check_races(plan);
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
               [&] { check_races(plan); });
}

TEST(BlockPlan, halos) {
  const BlockPlan plain = halo_exchange(four, Halo(2, 1));
  EXPECT_EQ(plain.motions().size(), 12u);  // three neighbours each
  EXPECT_EQ(plain.receives(0)[0], (BlockMotion{1, 0, Region({0, 3}, {4, 4}), Region({0, 3}, {4, 4})}));
  Halo cross(2, 1);
  cross.corners = false;
  EXPECT_EQ(halo_exchange(four, cross).motions().size(), 8u);
  const BlockPlan periodic = halo_exchange(four, Halo(2, 1, Region({0, 0}, {8, 6}), {true, true}));
  Index points = 0;
  for (const auto& motion : periodic.receives(0)) points += motion.source_region.size();
  EXPECT_EQ(points, 6 * 5 - 4 * 3);  // all ghost cells
  EXPECT_NE(plain.digest(), periodic.digest());
  EXPECT_NE(plain.digest(), halo_exchange(four, cross).digest());
  EXPECT_EQ(halo_exchange(four, Halo(2, 0)).motions().size(), 0u);
  EXPECT_EQ(halo_exchange(FloorPlan(), Halo(2, 1)).motions().size(), 0u);
  // One block that is its own neighbour, three times around.
  const FloorPlan one(std::vector{Region({0}, {2})}, {0});
  EXPECT_EQ(halo_exchange(one, Halo(1, 5, Region({0}, {2}), {true})).motions().size(), 6u);
}

TEST(BlockPlan, says_what_is_wrong) {
  BlockPlan plan(four, four);
  const Region cell({0, 0}, {1, 1});
  expect_error(ErrorKind::argument, {"no source block 4", "has 4"}, [&] { plan.copy(cell, 0, cell, 4); });
  expect_error(ErrorKind::argument, {"no destination block -1"}, [&] { plan.copy(cell, -1, cell, 0); });
  expect_error(ErrorKind::shape, {"block 1", "block 0", "2 points do not fill 1"}, [&] {
    plan.copy(cell, 0, Region({0, 0}, {1, 2}), 1);
  });
  expect_error(ErrorKind::shape,
               {"block 1 [0:1, 0:1] -> block 0 [0:1]", "a block and a region of 2 and of 1 dimensions"},
               [&] { plan.copy(Region({0}, {1}), 0, cell, 1); });
  BlockPlan turned(four, four, {1, 0});
  expect_error(ErrorKind::shape, {"block 1 [0:1] -> block 0 [0:1, 0:1], axes 1, 0", "of 2 and of 1 dimensions"},
               [&] { turned.copy(cell, 0, Region({0}, {1}), 1); });
  expect_error(ErrorKind::shape, {"block 1 [5:5] -> block 0 [0:0, 0:1]"}, [&] {
    plan.copy(Region({0, 0}, {0, 1}), 0, Region({5}, {5}), 1);
  });
  expect_error(ErrorKind::shape, {"do not go together"},
               [&] { BlockPlan(four, even_floor_plan(Region({0}, {4}), 2)); });
  expect_error(ErrorKind::shape, {"ghost widths"}, [] { halo_exchange(four, Halo(3, 1)); });
  expect_error(ErrorKind::argument, {"-1", "negative"}, [] { halo_exchange(four, Halo(2, -1)); });
  expect_error(ErrorKind::argument, {"block 2", "[4:8, 0:3]", "periodic domain [0:6, 0:6]"}, [] {
    halo_exchange(four, Halo(2, 1, Region({0, 0}, {6, 6}), {true, false}));
  });
  expect_error(ErrorKind::shape, {"periodic dimensions"}, [] {
    halo_exchange(four, Halo(2, 1, Region({0, 0}, {8, 6}), {true}));
  });
  expect_error(ErrorKind::argument, {"rank 1's", "rank 0"}, [] { halo_exchange(four, Halo(2, 1), 1).receives(0); });
  // Whichever the rank: those that hold nothing say so, too.
  for (const auto rank : {std::optional<Index>(), {0}, {5}})
    expect_error(ErrorKind::memory_limit, {"16384 images", "[0:1]"}, [&] {
      halo_exchange(FloorPlan(std::vector{Region({0}, {1})}, {0}), Halo(1, 10000, Region({0}, {1}), {true}), rank);
    });
  expect_error(ErrorKind::memory_limit, {"16384 images"}, [] {
    halo_exchange(FloorPlan(std::vector{Region({0, 0}, {1, 1})}, {0}),
                  Halo(2, 1 << 30, Region({0, 0}, {1, 1}), {true, true}));
  });
  Halo flat(2, 1);
  flat.periodic = {false};
  expect_error(ErrorKind::shape, {"periodic dimensions"}, [&] { halo_exchange(four, flat); });
  // Ranks are those of the owners.
  for (const Index rank : {-1, -7}) {
    const std::string words = "rank " + std::to_string(rank) + " is negative";
    expect_error(ErrorKind::argument, {words}, [&] { halo_exchange(four, Halo(2, 1), rank); });
    expect_error(ErrorKind::argument, {words}, [&] { copy_between(four, four, rank); });
    expect_error(ErrorKind::argument, {words}, [&] {
      gather_points(even_floor_plan(Region({0}, {4}), 1), std::vector<std::vector<Index>>(1), rank);
    });
  }
  // Sources that overlap race for what both have.
  const FloorPlan twice(std::vector{Region({0}, {4}), Region({2}, {6})}, {0, 1});
  expect_error(ErrorKind::argument, {"[2:4]", "block 0 (rank 5)"},
               [&] { check_races(copy_between(twice, FloorPlan(std::vector{Region({0}, {6})}, {5}))); });
}

TEST(BlockPlan, races_of_many_are_found_fast) {
  const Index n = 20000;
  const auto thin = split_evenly(Region({0, 0}, {1, n}), {1, n});
  const FloorPlan source(thin, Map(thin.size(), 0)), destination(std::vector{Region({0, 0}, {1, n})}, {0});
  BlockPlan plan = copy_between(source, destination);
  check_races(plan);
  plan.copy(Region({0, 777}, {1, 778}), 0, Region({0, 3}, {1, 4}), 3);
  expect_error(ErrorKind::argument, {"two motions write the points [0:1, 777:778]", "block 777", "block 3 "},
               [&] { check_races(plan); });
}

TEST(BlockPlan, races_of_many_lists_are_found_fast) {
  // All within each other's bounding regions, and within those of the boxes.
  const Index n = 5000;
  const FloorPlan root(std::vector{Region({0}, {8 * n})}, {0});
  BlockPlan plan(root, root);
  for (Index k = 0; k < n; ++k) {
    plan.copy_points({1, std::vector<Index>{2 * k, 4 * n - 1 - 2 * k}}, 0, {1, std::vector<Index>{6 * n, 6 * n + k}},
                     0);
    plan.copy(Region({4 * n + k}, {4 * n + k + 1}), 0, Region({7 * n + k}, {7 * n + k + 1}), 0);
  }
  {
    const Clock clock(20);
    check_races(plan);
    check_races(plan, true);
    check_races(plan, true, true);
  }
  auto race = [&](const std::vector<std::string>& words, bool combining, const BlockPlan& racing) {
    const Clock clock(20);
    expect_error(ErrorKind::argument, words, [&] { check_races(racing, true, combining); });
  };
  BlockPlan lists = plan, box = plan, read = plan, reading = plan;
  lists.copy_points({1, std::vector<Index>{78}}, 0, {1, std::vector<Index>{6 * n}}, 0);
  race({"two motions write the points [78:79]", "2 points", "1 point of"}, false, lists);
  box.copy(Region({34}, {35}), 0, Region({7 * n}, {7 * n + 1}), 0);
  race({"two motions write the points [34:35]", "2 points", "[34:35]"}, false, box);
  check_races(box, true, true);
  read.copy(Region({5 * n}, {5 * n + 1}), 0, Region({44}, {45}), 0);
  race({"one motion reads and another writes the points [44:45]", "2 points"}, true, read);
  reading.copy_points({1, std::vector<Index>{5 * n}}, 0, {1, std::vector<Index>{4 * n + 3}}, 0);
  race({"one motion reads and another writes the points [20003:20004]", "1 point of"}, true, reading);
}

TEST(BlockPlan, of_many_boxes_is_small) {
  const auto boxes = split_evenly(Region({0, 0, 0}, {128, 128, 128}), {8, 8, 8});
  const auto plan = balanced_along(boxes, 2);
  const Halo halo(3, 1, Region({0, 0, 0}, {128, 128, 128}), {true, true, true});
  const BlockPlan mine = halo_exchange(plan, halo, 0);
  EXPECT_EQ(mine.receives(0).size(), 26u * 256);
  EXPECT_LT(mine.workspace_bytes(), 26 * 512 * 10);
}

TEST(BlockPlan, between_meshes) {
  const FloorPlan coarse = even_floor_plan(Region({0, 0}, {8, 8}), 4);
  const FloorPlan fine(std::vector{Region({4, 4}, {12, 8}), Region({4, 8}, {12, 12})}, {2, 3});
  const BlockPlan down = coarsen_fine(fine, coarse, {2, 2});
  EXPECT_EQ(down.source(), fine.coarsen({2, 2}));
  EXPECT_EQ(down.destination(), coarse);
  EXPECT_EQ(volumes(down), (std::vector<BlockVolume>{{2, 0, 1, 4}, {2, 2, 1, 4}, {3, 1, 1, 4}, {3, 3, 1, 4}}));
  const BlockPlan up = refine_coarse(coarse, fine, {2, 2}, {1, 1});
  EXPECT_EQ(up.destination(), fine.coarsen({2, 2}).grow({1, 1}));
  EXPECT_EQ(up.receives(2).size(), 4u);  // all four coarse blocks
  EXPECT_EQ(up.rank(), std::nullopt);
  // A coarse cell that two fine blocks share.
  const FloorPlan odd(std::vector{Region({0, 0}, {4, 5}), Region({0, 5}, {4, 8})}, {0, 1});
  expect_error(ErrorKind::argument,
               {"two motions write the points [0:2, 2:3] of block 0", "block 0 [0:2, 0:3]", "block 1 [0:2, 2:4]"}, [&] {
                 check_races(coarsen_fine(odd, coarse, {2, 2}));
               });
  expect_error(ErrorKind::argument, {"width -1 in dimension 1"}, [&] { refine_coarse(coarse, fine, {2, 2}, {0, -1}); });
  expect_error(ErrorKind::argument, {"ratio (2, 0)"}, [&] { coarsen_fine(fine, coarse, {2, 0}); });
  expect_error(ErrorKind::argument, {"block 1 [0:4, 4:8]", "periodic domain [0:8, 0:6]"}, [&] {
    refine_coarse(coarse, fine, {2, 2}, {0, 0}, {}, Region({0, 0}, {8, 6}), {false, true});
  });
  expect_error(ErrorKind::memory_limit, {"16384 images", "[0:8, 0:8]"}, [&] {
    refine_coarse(coarse, fine, {1, 1}, {0, 1 << 20}, {}, Region({0, 0}, {8, 8}), {false, true});
  });
}

TEST(BlockPlan, between_periodic_meshes) {
  const FloorPlan coarse = even_floor_plan(Region({0, 0}, {8, 8}), 4);
  const FloorPlan across(std::vector{Region({-4, 2}, {4, 6})}, {9});  // over the lower side of dimension 0
  const BlockPlan up = refine_coarse(coarse, across, {2, 2}, {0, 0}, {}, Region({0, 0}, {8, 8}), {true, false});
  const BlockPlan down = coarsen_fine(across, coarse, {2, 2}, {}, Region({0, 0}, {8, 8}), {true, false});
  EXPECT_EQ(down, up.reverse());  // what was refined comes back
  EXPECT_EQ(down.source(), across.coarsen({2, 2}));
  EXPECT_EQ(volumes(down), (std::vector<BlockVolume>{{9, 0, 1, 4}, {9, 2, 1, 4}}));
  EXPECT_EQ(volumes(coarsen_fine(across, coarse, {2, 2})), (std::vector<BlockVolume>{{9, 0, 1, 4}}));
  expect_error(ErrorKind::argument, {"block 1 [0:4, 4:8]", "periodic domain [0:8, 0:6]"}, [&] {
    coarsen_fine(across, coarse, {2, 2}, {}, Region({0, 0}, {8, 6}), {true, false});
  });
}

TEST(BlockPlan, broadcasts) {
  const BlockPlan rows = broadcast(four, 0, 3, 5), columns = broadcast(four, 1, 0, 2, 3);
  EXPECT_EQ(rows.destination().regions(), (std::vector{Region({3, 0}, {5, 3}), Region({3, 3}, {5, 6}),
                                                       Region({3, 0}, {5, 3}), Region({3, 3}, {5, 6})}));
  EXPECT_EQ(volumes(rows), (std::vector<BlockVolume>{{0, 0, 1, 3},
                                                     {0, 2, 1, 3},
                                                     {1, 1, 1, 3},
                                                     {1, 3, 1, 3},
                                                     {2, 0, 1, 3},
                                                     {2, 2, 1, 3},
                                                     {3, 1, 1, 3},
                                                     {3, 3, 1, 3}}));
  EXPECT_EQ(columns.motions(), (std::vector{BlockMotion{2, 3, Region({4, 0}, {8, 2}), Region({4, 0}, {8, 2})}}));
  EXPECT_TRUE(broadcast(four, 0, 4, 4).motions().empty());
  expect_error(ErrorKind::argument, {"no dimension 2", "have 2"}, [] { broadcast(four, 2, 0, 1); });
  for (const auto& [first, last] : {std::pair{7, 9}, {-1, 1}, {5, 4}})
    expect_error(ErrorKind::argument,
                 {"[" + std::to_string(first) + ", " + std::to_string(last) + ") of dimension 0", "[0:8, 0:6]"},
                 [&, first = first, last = last] { broadcast(four, 0, first, last); });
  // Between the blocks nobody has a panel, whichever rank asks, and whosever panel it is.
  const FloorPlan holes(std::vector{Region({0, 0}, {4, 4}), Region({6, 0}, {8, 4}), Region({4, 4}, {8, 6})}, {0, 1, 2});
  for (const auto rank : {std::optional<Index>(), {0}, {7}}) {
    expect_error(ErrorKind::argument,
                 {"[4, 6) of dimension 0 is no panel of blocks of [0:8, 0:6]",
                  "no block has [4:6, 0:4] of the panel [4:6, 0:4]"},
                 [&] { broadcast(holes, 0, 4, 6, rank); });
    expect_error(ErrorKind::argument, {"no block has [0:4, 4:5] of the panel [0:4, 3:5]"}, [&] {
      broadcast(FloorPlan(holes.regions(), {0, 0, 0}), 1, 3, 5, rank);
    });
  }
  EXPECT_EQ(broadcast(holes, 0, 6, 8).motions().size(), 3u);
  for (const Index far : {-3, 9, 100})
    expect_error(ErrorKind::argument, {"no panel"}, [&] { broadcast(four, 0, far, far); });
  EXPECT_TRUE(broadcast(FloorPlan(), 0, 3, 5).motions().empty());
}

TEST(BlockPlan, transposes) {
  const FloorPlan tall = even_floor_plan(Region({0, 0}, {6, 8}), 2);
  const BlockPlan plan = transpose(four, tall, {1, 0});
  EXPECT_EQ(plan.axes(), (Axes{1, 0}));
  EXPECT_EQ(plan.motions()[1], (BlockMotion{1, 0, Region({0, 3}, {4, 6}), Region({3, 0}, {6, 4}), {1, 0}}));
  EXPECT_EQ(plan.motions()[1].to_string(), "block 1 [0:4, 3:6] -> block 0 [3:6, 0:4], axes 1, 0");
  EXPECT_NE(plan.digest(), copy_between(four, tall).digest());
  EXPECT_NE(plan, copy_between(four, tall));
  // By hand, the plan's axes say what goes together.
  BlockPlan hand(four, tall, {1, 0});
  hand.copy(Region({3, 0}, {6, 4}), 0, Region({0, 3}, {4, 6}), 1);
  EXPECT_EQ(hand.motions()[0], plan.motions()[1]);
  expect_error(ErrorKind::shape, {"block 1 [0:4, 3:6]", "with axes"}, [&] {
    hand.copy(Region({0, 0}, {4, 3}), 0, Region({0, 3}, {4, 6}), 1);
  });
  expect_error(ErrorKind::argument, {"axes entry 1 is 1, given twice"}, [&] { BlockPlan(four, tall, {1, 1}); });
  expect_error(ErrorKind::argument, {"axes entry 0 is 2, outside [0, 2)"}, [&] { transpose(four, tall, {2, 0}); });
  expect_error(ErrorKind::argument, {"3 entries", "2 dimensions"}, [&] { BlockPlan(four, tall, {0, 1, 2}); });
}

TEST(BlockPlan, of_points) {
  const FloorPlan line = even_floor_plan(Region({0}, {40}), 4);
  BlockPlan plan(line, line);
  plan.copy_points({1, std::vector<Index>{20, 24, 22}}, 2, {1, std::vector<Index>{9, 0, 0}}, 0);
  const BlockMotion motion = plan.motions()[0];
  EXPECT_EQ(motion.to_string(), "3 points of block 0 [0:10] -> block 2 [20:25]");
  EXPECT_EQ(volumes(plan), (std::vector<BlockVolume>{{0, 2, 1, 3}}));
  EXPECT_EQ(plan.reverse().motions()[0].destination_points, motion.source_points);
  EXPECT_EQ(plan.reverse().reverse(), plan);
  // Other points in the same places are another plan.
  for (const auto& [to, from] : {std::pair{std::vector<Index>{20, 24, 22}, std::vector<Index>{0, 9, 0}},
                                 {std::vector<Index>{20, 22, 24}, std::vector<Index>{9, 0, 0}}}) {
    BlockPlan other(line, line);
    other.copy_points({1, to}, 2, {1, from}, 0);
    EXPECT_NE(other, plan);
    EXPECT_NE(other.digest(), plan.digest());
  }
  check_races(plan, true);
  plan.copy_points({}, 0, {}, 1);  // nothing
  EXPECT_EQ(plan.motions().size(), 1u);
  expect_error(ErrorKind::argument, {"writes twice the points [0:1] of block 0", "3 points of block 2"},
               [&] { check_races(plan.reverse()); });
  check_races(plan.reverse(), false, true);
  // Lists in each other's midst: only points that they share are a race.
  plan.copy_points({1, std::vector<Index>{21, 23}}, 2, {1, std::vector<Index>{20, 20}}, 2);
  plan.copy(Region({25}, {27}), 2, Region({0}, {2}), 0);
  check_races(plan);
  expect_error(ErrorKind::argument,
               {"one motion reads and another writes the points [20:21] of block 2 (rank 2)", "3 points", "2 points"},
               [&] { check_races(plan, true, true); });
  plan.copy(Region({23}, {24}), 2, Region({0}, {1}), 0);
  expect_error(ErrorKind::argument, {"two motions write the points [23:24] of block 2 (rank 2)", "2 points", "[0:1]"},
               [&] { check_races(plan); });
  expect_error(ErrorKind::argument, {"no source block 4"}, [&] { plan.copy_points({}, 0, {}, 4); });
  expect_error(ErrorKind::shape, {"1 points of block 1 do not go to 2 points of block 0"}, [&] {
    plan.copy_points({1, std::vector<Index>{1, 2}}, 0, {1, std::vector<Index>{11}}, 1);
  });
  expect_error(ErrorKind::shape, {"1 point of block 1 [11:12] -> block 0 [1:2, 2:3]: a block and a region"}, [&] {
    plan.copy_points({2, std::vector<Index>{1, 2}}, 0, {1, std::vector<Index>{11}}, 1);
  });
  // What is listed is kept packed: a stride takes next to nothing, scattered vertices some bits each.
  std::vector<Index> even, scattered;
  for (Index k = 0; k < 100000; ++k) even.push_back(2 * k), scattered.push_back(k * 7919 % 100003);
  BlockPlan many(line, line);
  many.copy_points({1, even}, 0, {1, scattered}, 1);
  EXPECT_LT(many.workspace_bytes(), 100000 * 3);
  EXPECT_GT(many.workspace_bytes(), 100000 * 2);  // it is counted
}

TEST(BlockPlan, ghosts_of_vertices) {
  const FloorPlan mesh = even_floor_plan(Region({0}, {12}), 3);
  const std::vector<std::vector<Index>> needed{{4, 8, 5}, {3, 11}, {}};
  const BlockPlan plan = gather_points(mesh, needed, 1);
  EXPECT_EQ(plan.source().regions(), (std::vector{Region({0}, {7}), Region({4}, {10}), Region({8}, {12})}));
  EXPECT_EQ(plan.to_string(),
            "3 motions: 2 points of block 1 [4:6] -> block 0 [4:7]; 1 point of block 0 [3:4] -> block 1 [8:9]; "
            "1 point of block 2 [11:12] -> block 1 [9:10]");
  check_races(plan, true);
  expect_error(ErrorKind::argument, {"block 1 (rank 1) needs 12, which no block owns"}, [&] {
    gather_points(mesh, std::vector<std::vector<Index>>{{}, {12}, {}});
  });
  expect_error(ErrorKind::shape, {"2 lists", "3 blocks"},
               [&] { gather_points(mesh, std::vector<std::vector<Index>>(2)); });
  expect_error(ErrorKind::shape, {"ranges of vertices", "of 2 and of 1 dimensions"},
               [&] { gather_points(four, std::vector<std::vector<Index>>(4)); });
  expect_error(ErrorKind::argument, {"blocks 1 and 0 both own 3"}, [&] {
    gather_points(FloorPlan(std::vector{Region({3}, {6}), Region({0}, {4})}, {0, 1}),
                  std::vector<std::vector<Index>>(2));
  });
}

TEST(BlockPlan, one_after_the_other) {
  const Region domain({0, 0}, {8, 6});
  const FloorPlan rows = even_floor_plan(domain, 3), whole(std::vector{domain}, {5});
  const BlockPlan there = copy_between(four, whole), onward = copy_between(whole, rows);
  const BlockPlan straight = compose(there, onward), expected = copy_between(four, rows);
  EXPECT_EQ(volumes(straight), volumes(expected));
  // By hand, hence in the order of the blocks between.
  EXPECT_EQ(straight.motions().size(), expected.motions().size());
  for (const auto& motion : expected.motions()) {
    const auto all = straight.motions();
    EXPECT_NE(std::find(all.begin(), all.end(), motion), all.end()) << motion.to_string();
  }
  expect_error(ErrorKind::argument, {"begins with other blocks", "[0:4, 0:3]", "[0:8, 0:6]"},
               [&] { compose(there, there); });
  expect_error(ErrorKind::argument, {"rank 2's"}, [&] { compose(copy_between(four, whole, 2), onward); });
  expect_error(ErrorKind::argument, {"rank 5's"}, [&] { compose(there, copy_between(whole, rows, 5)); });
  BlockPlan other_shape(four, whole);
  other_shape.copy(Region({0, 0}, {2, 6}), 0, Region({0, 0}, {4, 3}), 0);
  expect_error(ErrorKind::argument, {"block 0 [0:4, 0:3] -> block 0 [0:2, 0:6]", "different shape"},
               [&] { compose(other_shape, onward); });
  // Two points in the far corners of a box go through it without a look at what is between.
  const Clock clock(20);
  const Index n = 4000;
  const FloorPlan cube(std::vector{Region({0, 0, 0}, {n, n, n})}, {0});
  const BlockPlan turning = transpose(cube, cube, {1, 2, 0});
  BlockPlan corners(cube, cube);
  const PointList from(3, std::vector<Index>{4, 4, 4, 0, 1, 2}),
      to(3, std::vector<Index>{1, 2, 3, n - 1, n - 1, n - 1});
  corners.copy_points(to, 0, from, 0);
  const BlockMotion first = compose(corners, turning).motions().at(0),
                    last = compose(turning, corners.reverse()).motions().at(0);
  EXPECT_EQ(first.source_points, from);
  EXPECT_EQ(first.destination_points, PointList(3, std::vector<Index>{2, 3, 1, n - 1, n - 1, n - 1}));
  EXPECT_EQ(last.source_points, PointList(3, std::vector<Index>{3, 1, 2, n - 1, n - 1, n - 1}));
  EXPECT_EQ(last.destination_points, from);
}

TEST(BlockPlan, digests_tell_lists_from_boxes) {
  // The same numbers one after the other, cut another way.
  const FloorPlan two(std::vector{Region({0}, {6}), Region({4}, {8})}, {0, 1});
  BlockPlan list(two, two), boxes(two, two);
  list.copy_points({1, std::vector<Index>{3, 4, 5}}, 0, {1, std::vector<Index>{0, 1, 2}}, 0);
  boxes.copy(Region({3}, {6}), 0, Region({0}, {3}), 0);
  boxes.copy(Region({4}, {5}), 1, Region({2}, {3}), 0);
  EXPECT_NE(list.digest(), boxes.digest());
  // Flags, axes and motions, too.
  EXPECT_NE(BlockPlan(two, two).digest(), BlockPlan(two, two, {0}).digest());
  const Region line({0}, {8});
  EXPECT_NE(halo_exchange(two, Halo(1, 1, line, {true})).digest(), halo_exchange(two, Halo(1, 1)).digest());
}

TEST(BlockPlan, of_a_rank_holds_its_own_motions) {
  const Index ranks = 100, own = 1000;
  const FloorPlan mesh = even_floor_plan(Region({0}, {ranks * own}), ranks);
  std::vector<std::vector<Index>> needed(static_cast<std::size_t>(ranks));
  for (Index k = 0; k < ranks; ++k)
    for (Index i = 0; i < 100; ++i) needed[std::size_t(k)].push_back(((k + 1) * own + 7 * i) % (ranks * own));
  const BlockPlan all = gather_points(mesh, needed), mine = gather_points(mesh, needed, 3);
  EXPECT_LT(mine.workspace_bytes(), all.workspace_bytes() / 10);
  EXPECT_LT(mine.to_bytes().size(), all.to_bytes().size());
  EXPECT_EQ(mine.motions().size(), 2u);
  EXPECT_EQ(mine.digest(), all.digest());
  EXPECT_EQ(mine.reverse().digest(), all.reverse().digest());
  EXPECT_EQ(mine.reverse().reverse(), mine);
  EXPECT_EQ(BlockPlan::from_bytes(mine.to_bytes()), mine);
  EXPECT_EQ(BlockPlan::from_bytes(mine.reverse().to_bytes()), mine.reverse());
  // What others need is another plan, though nothing of it is held here.
  needed[50][7] ^= 1;
  const BlockPlan other = gather_points(mesh, needed, 3);
  EXPECT_EQ(other.motions(), mine.motions());
  EXPECT_NE(other.digest(), mine.digest());
  EXPECT_NE(other, mine);
  EXPECT_NE(other.reverse().digest(), mine.reverse().digest());
  // Copied by hand into a reversed plan of a rank.
  BlockPlan back = halo_exchange(four, Halo(2, 1), 1).reverse(), whole = halo_exchange(four, Halo(2, 1)).reverse();
  for (auto* plan : {&back, &whole})
    for (Index k = 0; k < 4; ++k) plan->copy(Region({0, 0}, {1, 1}), k, Region({9, 9}, {10, 10}), (k + 1) % 4);
  EXPECT_EQ(back.digest(), whole.digest());
  EXPECT_EQ(back.receives(1), whole.receives(1));
  EXPECT_EQ(back.sends(1), whole.sends(1));
  EXPECT_EQ(back.reverse().digest(), whole.reverse().digest());
  EXPECT_EQ(back.motions().size(), back.reverse().motions().size());
}

TEST(BlockPlan, is_put_together_from_what_each_rank_knows) {
  const FloorPlan mesh = even_floor_plan(Region({0}, {12}), 3);
  const BlockPlan all = gather_points(mesh, std::vector<std::vector<Index>>{{4, 8, 5}, {3, 11}, {0}});
  BlockPlan::ByHand sum;
  const auto motions = all.motions();
  for (Index k = Index(motions.size()); k-- > 0;) {  // whoever adds first
    BlockPlan::ByHand one;
    one.add(motions[std::size_t(k)], k);
    sum = {sum.motions + one.motions, sum.digest + one.digest, sum.digest_back + one.digest_back};
  }
  for (Index rank = 0; rank < 3; ++rank) {
    std::vector<BlockMotion> mine;
    for (const auto& motion : motions)
      if (mesh.owner(motion.source) == rank || mesh.owner(motion.destination) == rank) mine.push_back(motion);
    const BlockPlan share = BlockPlan::of_rank(all.source(), all.source(), rank, mine, sum);
    EXPECT_EQ(share, gather_points(mesh, std::vector<std::vector<Index>>{{4, 8, 5}, {3, 11}, {0}}, rank));
    EXPECT_EQ(share.digest(), all.digest());
    EXPECT_EQ(share.reverse().digest(), all.reverse().digest());
    EXPECT_EQ(BlockPlan::from_bytes(share.to_bytes()), share);
  }
  // The order is part of a plan: sender and receiver go through motions in one.
  BlockPlan there(mesh, mesh), back(mesh, mesh);
  there.copy(Region({0}, {1}), 0, Region({4}, {5}), 1), there.copy(Region({1}, {2}), 0, Region({5}, {6}), 1);
  back.copy(Region({1}, {2}), 0, Region({5}, {6}), 1), back.copy(Region({0}, {1}), 0, Region({4}, {5}), 1);
  EXPECT_NE(there.digest(), back.digest());
  expect_error(ErrorKind::argument, {"block 1", "block 0", "rank 2 takes no part"}, [&] {
    BlockPlan::of_rank(all.source(), all.source(), 2, {motions.begin(), motions.begin() + 1}, sum);
  });
  expect_error(ErrorKind::argument, {"there is no source block 7"}, [&] {
    auto wrong = motions[0];
    wrong.source = 7;
    BlockPlan::of_rank(all.source(), all.source(), 0, {wrong}, sum);
  });
  expect_error(ErrorKind::shape, {"as many points on both sides"}, [&] {
    auto wrong = motions[0];
    wrong.source_points = PointList(1, std::vector<Index>{4});
    BlockPlan::of_rank(all.source(), all.source(), 0, {wrong}, sum);
  });
}

TEST(BlockPlan, looks_neighbours_up_where_the_blocks_keep_them) {
  // Each of many ranks plans for itself, from one floor plan:
  // that takes as long as planning for all, not as many times.
  const Index side = 40;
  const FloorPlan blocks = even_floor_plan(Region({0, 0, 0}, {4 * side, 4 * side, 4 * side}), side * side * side);
  const Halo halo(3, 1, blocks.bounding(), {true, true, true});
  const Index before = blocks.workspace_bytes();
  {
    const Clock clock(20);
    std::uint64_t digest = 0;
    for (Index rank = 0; rank < blocks.size(); rank += 8) digest |= halo_exchange(blocks, halo, rank).digest();
    EXPECT_NE(digest, 0u);
  }
  EXPECT_EQ(blocks.workspace_bytes(), before + blocks.index().workspace_bytes());
  const BlockPlan plan = halo_exchange(blocks, halo, 0);
  EXPECT_EQ(&blocks.index(), &plan.destination().index());
}

}  // namespace
}  // namespace longshore

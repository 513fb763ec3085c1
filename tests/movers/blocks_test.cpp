// Plans between blocks on the threads engine, against the motions carried out a point at a time.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>

#include "longshore/movers/mover.hpp"
#include "longshore/plans/block_relation.hpp"
#include "support/expect_error.hpp"

namespace longshore::test {
namespace {

/// Memory for a floor plan's blocks with ghost cells, in either order.
struct Blocks {
  FloorPlan plan;
  Point ghost;
  Order order;
  Index element;
  std::vector<std::vector<std::byte>> memory;

  Blocks(FloorPlan of, Index width, Order order, Index element, bool filled)
      : plan(std::move(of)), ghost(plan.dims(), width), order(order), element(element) {
    for (Index k = 0; k < plan.size(); ++k) {
      auto& bytes = memory.emplace_back(std::size_t(plan.region(k).grow(ghost).size() * element));
      if (filled)
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte((i * 31 + std::size_t(k) * 7) % 251);
    }
  }
  BlockArrays arrays() {
    BlockArrays given{{}, ghost};
    for (Index k = 0; k < plan.size(); ++k) {
      const Region region = plan.region(k).grow(ghost);
      given.arrays.push_back({memory[std::size_t(k)].data(), region.shape().to_vector(),
                              Grid::dense_strides(region, order, element), false, nullptr});
    }
    return given;
  }
  Grid grid(Index k) {
    const Region region = plan.region(k).grow(ghost);
    return {region, memory[std::size_t(k)].data(), Grid::dense_strides(region, order, element), element};
  }
};

void carry_out(const BlockPlan& plan, Blocks& from, Blocks& to, Order visit) {
  for (const auto& motion : plan.motions()) {
    const Grid s = from.grid(motion.source), d = to.grid(motion.destination);
    for (Index k = 0; k < motion.source_region.size(); ++k)
      std::memcpy(d.data + d.offset_of(motion.destination_region.point_at(k, visit)),
                  s.data + s.offset_of(motion.source_region.point_at(k, visit)), std::size_t(s.element_bytes));
  }
}

TEST(BlocksMover, halos_again_and_again) {
  const Region domain({0, 0, 0}, {20, 18, 22});
  const auto plan = balanced_along(split_to_size(domain, {7, 6, 9}), 3);
  const BlockPlan halo = BlockPlan::halo(plan, Halo(3, 2, domain, {true, false, true}));
  for (const Order order : {Order::C, Order::F})
    for (const Index element : {1, 8, 12})
      for (const int threads : {1, 2, 5}) {
        Blocks blocks(plan, 2, order, element, true), expected = blocks;
        const auto mover = bind_threads(halo, element, blocks.arrays(), {}, {{}, threads});
        for (int again = 0; again < 3; ++again) {
          for (std::size_t k = 0; k < blocks.memory.size(); ++k)
            for (std::size_t i = 0; i < blocks.memory[k].size(); ++i)
              expected.memory[k][i] = blocks.memory[k][i] = std::byte((i * 17 + k + std::size_t(again)) % 253);
          carry_out(halo, expected, expected, Order::F);
          mover->start();
          if (again == 1)
            while (!mover->test()) {
            }
          mover->wait();
          EXPECT_EQ(blocks.memory, expected.memory);
        }
      }
}

TEST(BlocksMover, two_in_flight_between_floor_plans) {
  const Region domain({0, 0}, {97, 61});
  const FloorPlan rows = even_floor_plan(domain, 7), tiles = floor_plan_of(Layout::parse("(CYCLIC(5), BLOCK) on 3x2", {97, 61}));
  const BlockPlan there = BlockPlan::copy_between(rows, tiles);
  Blocks a(rows, 0, Order::C, 8, true), b(tiles, 1, Order::F, 8, false), c(rows, 3, Order::F, 8, false), expected = b, back = c;
  Blocks d(tiles, 0, Order::C, 8, true), e(rows, 0, Order::C, 8, false), expected_e = e;
  carry_out(there, a, expected, Order::F);
  carry_out(there.reverse(), expected, back, Order::F);
  carry_out(there.reverse(), d, expected_e, Order::F);
  const auto one = bind_threads(there, 8, a.arrays(), b.arrays(), {{}, 2});
  const auto two = bind_threads(there.reverse(), 8, d.arrays(), e.arrays(), {{}, 2});
  one->start();
  two->start();
  one->wait();
  two->wait();
  EXPECT_EQ(b.memory, expected.memory);
  EXPECT_EQ(e.memory, expected_e.memory);
  bind_threads(there.reverse(), 8, b.arrays(), c.arrays())->start();  // a mover that goes completes its move first
  EXPECT_EQ(c.memory, back.memory);
}

TEST(BlocksMover, other_shapes_by_hand) {
  std::mt19937 random(3);
  const FloorPlan from(std::vector{Region({0, 0, 0}, {12, 10, 8})}, {0}), to(std::vector{Region({-5, 0, 0}, {20, 30, 130})}, {0});
  for (const Order visit : {Order::C, Order::F})
    for (int trial = 0; trial < 60; ++trial) {
      // The same number of points in another shape.
      const Index x = 1 + Index(random() % 4), y = 1 + Index(random() % 4), z = 1 + Index(random() % 4);
      const Region source = Region({0, 0, 0}, {x, y, 2 * z}).shift({Index(random() % 5), Index(random() % 5), 0});
      const std::vector<Region> shapes{Region({0, 0, 0}, {2 * x, y, z}), Region({0, 0, 0}, {z, x, 2 * y}),
                                       Region({0, 0, 0}, {1, 1, 2 * x * y * z}), Region({0, 0, 0}, {x * y, z, 2})};
      BlockPlan plan(from, to);
      plan.copy(shapes[random() % 4].shift({-5, 2, 0}), 0, source, 0);
      Blocks a(from, 0, random() % 2 ? Order::C : Order::F, 4, true), b(to, 0, random() % 2 ? Order::C : Order::F, 4, false);
      Blocks expected = b;
      carry_out(plan, a, expected, visit);
      const auto mover = bind_threads(plan, 4, a.arrays(), b.arrays(), {}, visit);
      mover->start();
      mover->wait();
      ASSERT_EQ(b.memory, expected.memory) << plan.to_string();
    }
}

TEST(BlocksMover, long_motions_are_shared_among_threads) {
  const FloorPlan one(std::vector{Region({0}, {1 << 18})}, {0});
  Blocks a(one, 0, Order::C, 8, true), b(one, 0, Order::C, 8, false);
  const auto mover = bind_threads(BlockPlan::copy_between(one, one), 8, a.arrays(), b.arrays(), {{}, 2});
  EXPECT_NE(mover->describe().find("16 tasks"), std::string::npos) << mover->describe();
  EXPECT_EQ(mover->moved_bytes(), 1 << 21);
  mover->start();
  mover->wait();
  EXPECT_EQ(a.memory, b.memory);
}

TEST(BlocksMover, says_what_is_wrong) {
  const FloorPlan plan = even_floor_plan(Region({0, 0}, {8, 6}), 4);
  const BlockPlan halo = BlockPlan::halo(plan, Halo(2, 1));
  Blocks thin(plan, 0, Order::C, 8, true), good(plan, 1, Order::C, 8, true), other(plan, 1, Order::C, 8, true);
  expect_error(ErrorKind::argument, {"block 0", "not within the storage of destination block 0", "ghost"},
               [&] { bind_threads(halo, 8, thin.arrays(), {}); });
  expect_error(ErrorKind::argument, {"3 source arrays for 4 blocks"}, [&] {
    auto arrays = good.arrays();
    arrays.arrays.pop_back();
    bind_threads(halo, 8, arrays, {});
  });
  expect_error(ErrorKind::shape, {"source array of block 2", "(6, 5)", "(6, 4)"}, [&] {
    auto arrays = good.arrays();
    arrays.arrays[2].shape = {6, 4};
    bind_threads(halo, 8, arrays, {});
  });
  expect_error(ErrorKind::buffer, {"destination array of block 1", "read-only"}, [&] {
    auto arrays = other.arrays();
    arrays.arrays[1].read_only = true;
    bind_threads(halo, 8, good.arrays(), arrays);
  });
  expect_error(ErrorKind::buffer, {"block 3", "no memory"}, [&] {
    auto arrays = good.arrays();
    arrays.arrays[3].data = nullptr;
    bind_threads(halo, 8, arrays, {});
  });
  expect_error(ErrorKind::buffer, {"array of block 0", "array of block 1", "share memory"}, [&] {
    auto arrays = good.arrays();
    arrays.arrays[1].data = arrays.arrays[0].data + 8;
    bind_threads(halo, 8, arrays, {});
  });
  expect_error(ErrorKind::argument, {"rank 1's"},
               [&] { bind_threads(BlockPlan::halo(plan, Halo(2, 1), 1), 8, good.arrays(), {}); });
  expect_error(ErrorKind::argument, {"same floor plan"},
               [&] { bind_threads(BlockPlan(plan, plan.with_owners({0, 0, 0, 0})), 8, good.arrays(), {}); });
  BlockPlan race(plan, plan);
  race.copy(Region({0, 0}, {2, 2}), 0, Region({1, 1}, {3, 3}), 0);
  expect_error(ErrorKind::argument, {"a motion reads and writes the points [1:2, 1:2] of block 0"},
               [&] { bind_threads(race, 8, good.arrays(), {}); });
  bind_threads(race, 8, good.arrays(), other.arrays());  // other arrays do not race
  BlockPlan chain(plan, plan);
  chain.copy(Region({0, 0}, {1, 1}), 0, Region({4, 0}, {5, 1}), 2);
  chain.copy(Region({4, 3}, {5, 4}), 3, Region({0, 0}, {1, 1}), 0);
  expect_error(ErrorKind::argument, {"one motion reads and another writes the points [0:1, 0:1] of block 0 (rank 0)"},
               [&] { bind_threads(chain, 8, good.arrays(), {}); });
  const auto mover = bind_threads(halo, 8, good.arrays(), {});
  mover->start();
  expect_error(ErrorKind::argument, {"start() was called again"}, [&] { mover->start(); });
  mover->wait();
  expect_error(ErrorKind::type, {"elements of 8 and of 4 bytes"}, [&] {
    Grid a = good.grid(0), b = other.grid(0);
    b.element_bytes = 4;
    block_relation({0, 0, Region({0, 0}, {1, 1}), Region({0, 0}, {1, 1})}, a, b);
  });
}

}  // namespace
}  // namespace longshore::test

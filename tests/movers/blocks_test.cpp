// Plans between blocks on the threads engine, against the motions carried out a point at a time.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>
#include <thread>

#include "longshore/layouts/balance.hpp"
#include "longshore/movers/mover.hpp"
#include "longshore/plans/block_builders.hpp"
#include "support/expect_error.hpp"
#include "support/quick.hpp"

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
  XArray array() { return over(grids()); }
  XArray over(std::vector<Grid> grids) const {
    return XArray::over(plan, {}, {element, ghost, order}, std::move(grids));
  }
  std::vector<Grid> grids() {
    std::vector<Grid> grids;
    for (Index k = 0; k < plan.size(); ++k) grids.push_back(grid(k));
    return grids;
  }
  Grid grid(Index k) {
    const Region region = plan.region(k).grow(ghost);
    return {region, memory[std::size_t(k)].data(), dense_strides(region.shape(), order, element), element};
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
  const Region domain({0, 0, 0}, {20, quick() ? 7 : 18, quick() ? 10 : 22});
  const auto plan = balanced_along(split_to_size(domain, {7, 6, 9}), 3);
  const BlockPlan halo = halo_exchange(plan, Halo(3, 2, domain, {true, false, true}));
  for (const Order order : {Order::C, Order::F})
    for (const Index element : {1, 8, 12})
      for (const int threads : {1, 2, 5}) {
        Blocks blocks(plan, 2, order, element, true), expected = blocks;
        MoveOptions options;
        options.threads = threads, options.proxy = threads == 2;
        const XArray array = blocks.array();
        const auto mover = bind_threads(halo, array, array, options);
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
  const FloorPlan rows = even_floor_plan(domain, 7),
                  tiles = floor_plan_of(Layout::parse("(CYCLIC(5), BLOCK) on 3x2", {97, 61}));
  const BlockPlan there = copy_between(rows, tiles);
  Blocks a(rows, 0, Order::C, 8, true), b(tiles, 1, Order::F, 8, false), c(rows, 3, Order::F, 8, false), expected = b,
                                                                                                         back = c;
  Blocks d(tiles, 0, Order::C, 8, true), e(rows, 0, Order::C, 8, false), expected_e = e;
  carry_out(there, a, expected, Order::F);
  carry_out(there.reverse(), expected, back, Order::F);
  carry_out(there.reverse(), d, expected_e, Order::F);
  MoveOptions options;
  options.threads = 2;
  const auto one = bind_threads(there, a.array(), b.array(), options);
  const auto two = bind_threads(there.reverse(), d.array(), e.array(), options);
  one->start();
  two->start();
  one->wait();
  two->wait();
  EXPECT_EQ(b.memory, expected.memory);
  EXPECT_EQ(e.memory, expected_e.memory);
  bind_threads(there.reverse(), b.array(), c.array())->start();  // a mover that goes completes its move first
  EXPECT_EQ(c.memory, back.memory);
}

/// Fields of one plan have what follows from it in common where their arrays lie alike; alone, each finds it out.
TEST(BlocksMover, fields_of_one_plan) {
  const Region domain({0, 0, 0}, {23, 17, 11});
  const auto plan = balanced_along(split_to_size(domain, {7, 6, 5}), 1);
  const BlockPlan halo = halo_exchange(plan, Halo(3, 2, domain, {true, false, true}));
  const BlockPlan back = halo.reverse();
  auto fill = [](const XArray& array, int stamp) {
    for (const auto& grid : array.grids())
      for (Index k = 0; k < grid.region.size() * grid.element_bytes; ++k)
        grid.data[k] = std::byte((k * 13 + stamp * 31) % 241);
  };
  for (const int threads : {1, 3}) {
    std::vector<XArray> together, alone;
    std::vector<Field> fields;
    MoveOptions options;
    options.threads = threads;
    Blocks far_apart(plan, 2, Order::F, 8, true), far_apart_alone = far_apart;
    for (auto* arrays : {&together, &alone}) {
      for (int k = 0; k < 3; ++k)
        arrays->emplace_back(plan, std::optional<Index>(), GridFormat{8, {2, 2, 2}, Order::F});
      arrays->emplace_back(plan, std::optional<Index>(), GridFormat{8, {2, 3, 2}, Order::F});
      arrays->emplace_back(plan, std::optional<Index>(), GridFormat{24, {2, 2, 2}, Order::F});
      arrays->emplace_back(plan, std::optional<Index>(), GridFormat{8, {2, 2, 2}, Order::C});
      arrays->push_back(arrays == &together ? far_apart.array() : far_apart_alone.array());
      for (std::size_t k = 0; k < arrays->size(); ++k) fill((*arrays)[k], int(k));
    }
    auto update = [](std::size_t k) {
      return k == 2 ? Update(Reduction(ElementType::int64, ReduceOp::maximum)) : Update();
    };
    for (std::size_t k = 0; k < together.size(); ++k)
      fields.emplace_back(k == 2 ? back : halo, together[k], together[k], update(k));
    const auto mover = bind_threads(fields, options);
    for (int again = 0; again < 2; ++again) mover->move();
    for (std::size_t k = 0; k < alone.size(); ++k) {
      options.update = update(k);
      const auto one = bind_threads(k == 2 ? back : halo, alone[k], alone[k], options);
      for (int again = 0; again < 2; ++again) one->move();
      for (std::size_t i = 0; i < alone[k].grids().size(); ++i) {
        const Grid &a = together[k].grids()[i], &b = alone[k].grids()[i];
        ASSERT_EQ(std::memcmp(a.data, b.data, std::size_t(a.region.size() * a.element_bytes)), 0) << k << ' ' << i;
      }
    }
  }
}

TEST(BlocksMover, other_shapes_by_hand) {
  std::mt19937 random(3);
  const FloorPlan from(std::vector{Region({0, 0, 0}, {12, 10, 8})}, {0}),
      to(std::vector{Region({-5, 0, 0}, {20, 30, 130})}, {0});
  for (const std::optional<Order> visit : {std::optional(Order::C), {Order::F}, {}})
    for (int trial = 0; trial < 60; ++trial) {
      // The same number of points in another shape.
      const Index x = 1 + Index(random() % 4), y = 1 + Index(random() % 4), z = 1 + Index(random() % 4);
      const Region source = Region({0, 0, 0}, {x, y, 2 * z}).shift({Index(random() % 5), Index(random() % 5), 0});
      const std::vector<Region> shapes{Region({0, 0, 0}, {2 * x, y, z}), Region({0, 0, 0}, {z, x, 2 * y}),
                                       Region({0, 0, 0}, {1, 1, 2 * x * y * z}), Region({0, 0, 0}, {x * y, z, 2})};
      BlockPlan plan(from, to);
      plan.copy(shapes[random() % 4].shift({-5, 2, 0}), 0, source, 0);
      Blocks a(from, 0, random() % 2 ? Order::C : Order::F, 4, true),
          b(to, 0, random() % 2 ? Order::C : Order::F, 4, false);
      Blocks expected = b;
      // Nobody says: that of the arrays, where they have the same one.
      carry_out(plan, a, expected, visit.value_or(a.order == b.order ? a.order : Order::C));
      MoveOptions options;
      options.visit = visit;
      const auto mover = bind_threads(plan, a.array(), b.array(), options);
      mover->start();
      mover->wait();
      ASSERT_EQ(b.memory, expected.memory) << plan.to_string();
    }
}

TEST(BlocksMover, long_motions_are_shared_among_threads) {
  const FloorPlan one(std::vector{Region({0}, {1 << 18})}, {0});
  Blocks a(one, 0, Order::C, 8, true), b(one, 0, Order::C, 8, false);
  MoveOptions options;
  options.threads = 2;
  const auto mover = bind_threads(copy_between(one, one), a.array(), b.array(), options);
  EXPECT_NE(mover->describe().find("16 tasks"), std::string::npos) << mover->describe();
  EXPECT_EQ(mover->moved_bytes(), 1 << 21);
  mover->start();
  mover->wait();
  EXPECT_EQ(a.memory, b.memory);
}

TEST(BlocksMover, combines_what_overlaps) {
  // Ghost cells are added to the cells of their owners: what finite elements do.
  const Region domain({0, 0, 0}, {11, 9, 10});
  const auto plan = balanced_along(split_to_size(domain, {4, 5, 4}), 2);
  const BlockPlan back = halo_exchange(plan, Halo(3, 2, domain, {true, true, false})).reverse();
  for (const Order order : {Order::C, Order::F}) {
    const XArray array(plan, {}, {8, Point(3, 2), order}), expected(plan, {}, {8, Point(3, 2), order});
    for (Index k = 0; k < plan.size(); ++k) {
      auto *a = reinterpret_cast<double*>(array.grid(k).data), *e = reinterpret_cast<double*>(expected.grid(k).data);
      for (Index i = 0; i < array.grid(k).region.size(); ++i) a[i] = e[i] = double((i * 7 + k) % 64);
    }
    MoveOptions options;
    options.update = Reduction(ElementType::float64, ReduceOp::add);
    options.threads = 3;
    const auto mover = bind_threads(back, array, array, options);
    mover->start();
    mover->wait();
    for (const auto& motion : back.motions()) {
      const View<double, 3> from(expected.grid(motion.source)), to(expected.grid(motion.destination));
      for (Index i = 0; i < motion.source_region.size(); ++i) {
        const Point s = motion.source_region.point_at(i, Order::F), d = motion.destination_region.point_at(i, Order::F);
        to(d[0], d[1], d[2]) += from(s[0], s[1], s[2]);
      }
    }
    for (Index k = 0; k < plan.size(); ++k)
      EXPECT_EQ(std::memcmp(array.grid(k).data, expected.grid(k).data, std::size_t(array.grid(k).region.size() * 8)), 0)
          << k;
  }
}

TEST(BlocksMover, combines_by_a_function_of_the_user) {
  const Region domain({0, 0}, {13, 8});
  const FloorPlan rows = even_floor_plan(domain, 3), columns = balanced_along(split_to_size(domain, {13, 3}), 3);
  const XArray from(rows, {}, {4, {}, Order::C}), to(columns, {}, {4, Point{1, 1}, Order::F});
  MoveOptions options;
  options.update =
      Reduction(4, [](std::byte* destination, const std::byte* source, Index n, Index to_step, Index from_step) {
        for (; n-- > 0; destination += to_step, source += from_step)
          *reinterpret_cast<std::int32_t*>(destination) =
              10 * *reinterpret_cast<std::int32_t*>(destination) + *reinterpret_cast<const std::int32_t*>(source);
      });
  for (const Index k : from.owned())
    for (Index i = 0; i < rows.region(k).size(); ++i) {
      const Point p = rows.region(k).point_at(i, Order::C);
      View<std::int32_t, 2>(from.grid(k))(p[0], p[1]) = std::int32_t(p[0] + 20 * p[1]);
    }
  const auto mover = bind_threads(copy_between(rows, columns), from, to, options);
  for (int again = 0; again < 2; ++again) mover->start(), mover->wait();
  for (const Index k : to.owned())
    for (Index i = 0; i < columns.region(k).size(); ++i) {
      const Point p = columns.region(k).point_at(i, Order::C);
      EXPECT_EQ((View<std::int32_t, 2>(to.grid(k))(p[0], p[1])), 11 * (p[0] + 20 * p[1]));
    }
  expect_error(ErrorKind::argument, {"at least one byte"}, [] { Reduction(0, [](auto...) {}); });
  expect_error(ErrorKind::argument, {"no combining operation 'user'"}, [] { reduce_op("user"); });
}

TEST(BlocksMover, says_what_is_wrong) {
  const FloorPlan plan = even_floor_plan(Region({0, 0}, {8, 6}), 4);
  const BlockPlan halo = halo_exchange(plan, Halo(2, 1));
  Blocks thin(plan, 0, Order::C, 8, true), good(plan, 1, Order::C, 8, true), other(plan, 1, Order::C, 8, true);
  const XArray a = good.array(), b = other.array(), none = thin.array();
  expect_error(ErrorKind::argument, {"block 0", "not within the storage of destination block 0", "ghost"},
               [&] { bind_threads(halo, none, none); });
  BlockPlan list(plan, plan);  // whose bounding region reaches beyond the block is not at fault, but a point of it
  list.copy_points({2, std::vector<Index>{5, 0, 3, 3, 7, 2}}, 2, {2, std::vector<Index>{0, 0, 1, 1, 2, 2}}, 0);
  const char* outside = "the destination point 1, (3, 3), is not within the storage of destination block 2";
  expect_error(ErrorKind::argument, {"3 points of block 0", outside, "ghost"}, [&] { bind_threads(list, none, none); });
  expect_error(ErrorKind::buffer, {"array of block 0", "array of block 1", "share memory"}, [&] {
    auto grids = good.grids();
    grids[1].data = grids[0].data + 8;
    const XArray shared = good.over(grids);
    bind_threads(halo, shared, shared);
  });
  expect_error(ErrorKind::argument, {"rank 1's"}, [&] { bind_threads(halo_exchange(plan, Halo(2, 1), 1), a, a); });
  const XArray rank_one(plan, 1, {8, Point(2, 1)});
  expect_error(ErrorKind::argument, {"rank 1 alone"}, [&] { bind_threads(halo, rank_one, rank_one); });
  expect_error(ErrorKind::shape, {"destination array has other blocks", "on 3"}, [&] {
    bind_threads(BlockPlan(plan, plan.with_owners({0, 3, 2, 3})), a, a);
  });
  expect_error(ErrorKind::type, {"elements of 8 bytes", "of 4"}, [&] {
    bind_threads(halo, a, XArray(plan, {}, {4, Point(2, 1)}));
  });
  expect_error(ErrorKind::type, {"add is for elements of 4 bytes", "have 8"}, [&] {
    MoveOptions options;
    options.update = Reduction(ElementType::float32, ReduceOp::add);
    bind_threads(halo, a, a, options);
  });
  BlockPlan race(plan, plan);
  race.copy(Region({0, 0}, {2, 2}), 0, Region({1, 1}, {3, 3}), 0);
  expect_error(ErrorKind::argument, {"a motion reads and writes the points [1:2, 1:2] of block 0"},
               [&] { bind_threads(race, a, a); });
  bind_threads(race, a, b);  // other arrays do not race
  BlockPlan chain(plan, plan);
  chain.copy(Region({0, 0}, {1, 1}), 0, Region({4, 0}, {5, 1}), 2);
  chain.copy(Region({4, 3}, {5, 4}), 3, Region({0, 0}, {1, 1}), 0);
  for (const auto op : {ReduceOp::replace, ReduceOp::add})
    expect_error(ErrorKind::argument, {"one motion reads and another writes the points [0:1, 0:1] of block 0 (rank 0)"},
                 [&] {
                   MoveOptions options;
                   if (op != ReduceOp::replace) options.update = Reduction(ElementType::float64, op);
                   bind_threads(chain, a, a, options);
                 });
  for (const bool proxy : {false, true}) {
    MoveOptions options;
    options.proxy = proxy;
    const auto mover = bind_threads(halo, a, a, options);
    mover->start();
    expect_error(ErrorKind::argument, {"has been started already"}, [&] { mover->start(); });
    mover->wait();
    expect_error(ErrorKind::argument, {"wait() without start()"}, [&] { mover->wait(); });
    expect_error(ErrorKind::argument, {"test() without start()"}, [&] { mover->test(); });
    mover->start();
    while (!mover->test()) std::this_thread::yield();
    mover->start();  // the last one is complete
    mover->wait();
  }
}

// What floor plans keep for look-ups is worked out once, whoever comes first.
TEST(BlocksMover, threads_plan_from_one_floor_plan) {
  const Region domain({0, 0}, {40, 30});
  const FloorPlan blocks = even_floor_plan(domain, 12), others = even_floor_plan(domain, 5);
  const Halo halo(2, 1, domain, {true, false});
  const auto expected = halo_exchange(FloorPlan(blocks.regions(), blocks.owners()), halo);
  std::vector<std::vector<BlockMotion>> received(12), moved(12);
  std::vector<std::uint64_t> digests(12);
  std::vector<std::thread> threads;
  for (Index rank = 0; rank < 12; ++rank)
    threads.emplace_back([&, rank] {
      const auto plan = halo_exchange(blocks, halo, rank);
      const auto k = std::size_t(rank);
      received[k] = plan.receives(rank), digests[k] = plan.digest();
      moved[k] = copy_between(others, blocks, rank).receives(rank);
    });
  for (auto& thread : threads) thread.join();
  for (Index rank = 0; rank < 12; ++rank) {
    EXPECT_EQ(received[std::size_t(rank)], expected.receives(rank));
    EXPECT_EQ(digests[std::size_t(rank)], expected.digest());
    EXPECT_EQ(moved[std::size_t(rank)], copy_between(others, blocks).receives(rank));
  }
}

}  // namespace
}  // namespace longshore::test

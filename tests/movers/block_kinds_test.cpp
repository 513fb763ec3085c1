// Transposes and lists of points, carried out whole and by halves, against the plan's motions a point at a time.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "longshore/layouts/balance.hpp"
#include "longshore/movers/mover.hpp"
#include "longshore/plans/block_builders.hpp"
#include "movers/block_copies.hpp"

namespace longshore::test {
namespace {

using Bytes = std::vector<std::byte>;

std::mt19937 random_numbers(5);
Index draw(Index low, Index high) { return low + Index(random_numbers() % std::uint64_t(high - low + 1)); }

void fill(const XArray& array) {
  for (const Grid& grid : array.grids())
    for (Index k = 0; k < grid.region.size() * grid.element_bytes; ++k) grid.data[k] = std::byte(random_numbers());
}

Bytes bytes_of(const XArray& array) {
  const auto& memory = *array.memory();
  return {memory.data(), memory.data() + memory.bytes()};
}

/// Calls f(source element, destination element) for every point of a motion, in no order that anybody relies on.
template <class F>
void for_each_point(const BlockMotion& motion, const Axes& axes, const XArray& source, const XArray& destination,
                    F&& f) {
  const Grid &from = source.grid(motion.source), &to = destination.grid(motion.destination);
  for (Index k = 0; k < motion.points(); ++k) {
    Point s(from.region.dims()), d(to.region.dims());
    if (motion.is_list()) {
      s = motion.source_points[k], d = motion.destination_points[k];
    } else {
      d = motion.destination_region.point_at(k, Order::C);
      for (std::size_t n = 0; n < d.dims(); ++n)
        s[axes.empty() ? n : axes[n]] =
            motion.source_region.lower()[axes.empty() ? n : axes[n]] + d[n] - motion.destination_region.lower()[n];
    }
    f(from.data + from.offset_of(s), to.data + to.offset_of(d));
  }
}

/// How many motions needed no message of their own: their elements lie as they travel.
struct InOrder {
  int sources = 0, destinations = 0;
};

/// Moves by the threads engine, and by halves through messages as
/// other engines do, all of them at once or a piece at a time.
void expect_moves(const BlockPlan& plan, Index element, Order visit, InOrder& in_order) {
  const Order from_order = draw(0, 1) ? Order::C : Order::F, to_order = draw(0, 1) ? Order::C : Order::F;
  const XArray source(plan.source(), {}, {element, {}, from_order});
  const XArray moved(plan.destination(), {}, {element, {}, to_order}),
      halves(plan.destination(), {}, {element, {}, to_order}),
      expected(plan.destination(), {}, {element, {}, to_order});
  fill(source);
  for (const auto& motion : plan.motions())
    for_each_point(motion, plan.axes(), source, expected,
                   [&](const std::byte* s, std::byte* d) { std::memcpy(d, s, std::size_t(element)); });
  MoveOptions options;
  options.visit = visit, options.threads = int(draw(1, 2));
  const auto mover = bind_threads(plan, source, moved, options);
  mover->start();
  mover->wait();
  ASSERT_EQ(bytes_of(moved), bytes_of(expected)) << plan.to_string();

  BlockCopies copies(visit, source.format().order, {});
  for (const auto& motion : plan.motions()) {
    const auto pack = copies.assembly(motion, source.grid(motion.source));
    const auto unpack = copies.disassembly(motion, halves.grid(motion.destination));
    ASSERT_EQ(pack.last, motion.points());
    ASSERT_EQ(unpack.last, motion.points());
    Bytes message(std::size_t(motion.points() * element));
    const Index cut = draw(0, motion.points());
    for (const auto& [first, last] : {std::pair{cut, motion.points()}, {Index{0}, cut}})
      pack.program->run(first, last, message.data(), pack.source);
    // What lies in order needs no message.
    in_order.sources += pack.in_order, in_order.destinations += unpack.in_order;
    if (pack.in_order) {
      EXPECT_EQ(std::memcmp(pack.source, message.data(), message.size()), 0);
    }
    if (unpack.in_order)
      std::memcpy(unpack.destination, message.data(), message.size());
    else
      unpack.program->run(unpack.destination, message.data());
    Bytes again(message.size());
    const auto repack = copies.arrival(motion, halves.grid(motion.destination));
    repack.program->run(again.data(), repack.source);
    EXPECT_EQ(again, message);
  }
  ASSERT_EQ(bytes_of(halves), bytes_of(expected)) << plan.to_string();
}

TEST(BlockKinds, transposes) {
  InOrder in_order;
  const Axes orders[] = {{1, 0}, {0, 1}, {2, 0, 1}, {1, 2, 0}, {0, 2, 1}, {3, 1, 0, 2}};
  for (const Axes& axes : orders)
    for (const Order visit : {Order::C, Order::F})
      for (const Index element : {1, 4, 8, 16}) {
        Point shape(axes.size());
        for (auto& n : shape) n = draw(3, axes.size() == 2 ? 40 : 9);
        const FloorPlan source = even_floor_plan(Region::of_shape(shape), 5);
        const FloorPlan destination = even_floor_plan(permuted(Region::of_shape(shape), axes), 4);
        const BlockPlan plan = transpose(source, destination, axes);
        expect_moves(plan, element, visit, in_order);
        expect_moves(plan.reverse(), element, visit, in_order);
        BlockPlan hand(destination, destination, axes);  // a box of each block, turned about
        for (Index k = 0; k < destination.size(); ++k) {
          const Region all = destination.region(k);
          Point n(axes.size()), turned(axes.size());
          Index least = all.extent(0);
          for (std::size_t d = 0; d < axes.size(); ++d) least = std::min(least, all.extent(d));
          for (std::size_t d = 0; d < axes.size(); ++d) n[d] = draw(1, least);
          for (std::size_t d = 0; d < axes.size(); ++d) turned[d] = n[axes[d]];
          const Region small = Region::of_shape(n).shift(all.lower());
          hand.copy(Region::of_shape(turned).shift(all.lower()), k, small, k);
        }
        expect_moves(hand, element, visit, in_order);
      }
  EXPECT_GT(in_order.sources, 10);
  EXPECT_GT(in_order.destinations, 10);
}

TEST(BlockKinds, lists_of_points) {
  InOrder in_order;
  for (int trial = 0; trial < 60; ++trial) {
    const auto dims = std::size_t(draw(1, 3));
    Point shape(dims);
    for (auto& n : shape) n = draw(2, dims == 1 ? 400 : 12);
    const FloorPlan blocks = even_floor_plan(Region::of_shape(shape), 3);
    BlockPlan plan(blocks, blocks);
    for (Index i = 0; i < blocks.size(); ++i) {
      // Every point of a block is written once at most, in a random order or as they come; sources as they fall.
      const Region own = blocks.region(i);
      std::vector<Index> places(static_cast<std::size_t>(own.size()));
      for (std::size_t k = 0; k < places.size(); ++k) places[k] = Index(k);
      if (trial % 2) std::shuffle(places.begin(), places.end(), random_numbers);
      for (std::size_t k = 0; k < places.size();) {
        const Index j = draw(0, blocks.size() - 1);
        const Region other = blocks.region(j);
        if (other.empty()) continue;
        std::vector<Index> to, from;
        for (Index n = draw(1, 60); n > 0 && k < places.size(); --n, ++k) {
          if (n % 7 == 0) continue;
          const Point d = own.point_at(places[k], Order::F);
          const Point s = other.point_at(trial % 3 ? draw(0, other.size() - 1) : Index(k) % other.size(), Order::F);
          to.insert(to.end(), d.begin(), d.end()), from.insert(from.end(), s.begin(), s.end());
        }
        plan.copy_points({dims, to}, i, {dims, from}, j);
      }
    }
    for (const Index element : {1, 4, 8, 24}) expect_moves(plan, element, trial % 2 ? Order::C : Order::F, in_order);
  }
  EXPECT_GT(in_order.sources, 10);
  EXPECT_GT(in_order.destinations, 10);
}

TEST(BlockKinds, long_lists_stay_packed) {
  const Index n = 1'100'000;
  const FloorPlan one(std::vector{Region({0}, {n})}, {0});
  std::vector<Index> to, from;
  for (Index k = 0; k < n; ++k) to.push_back(k * 700'001 % n), from.push_back((k ^ 5) % n);
  BlockPlan plan(one, one);
  plan.copy_points({1, to}, 0, {1, from}, 0);
  const XArray source(one, {}, {8, {}, Order::C}), destination(one, {}, {8, {}, Order::C});
  fill(source);
  const auto mover = bind_threads(plan, source, destination);
  EXPECT_LT(mover->workspace_bytes(), n * 7);  // of 8 that two 32-bit indices a point take
  mover->start();
  mover->wait();
  const auto *s = reinterpret_cast<const std::uint64_t*>(source.grid(0).data),
             *d = reinterpret_cast<const std::uint64_t*>(destination.grid(0).data);
  Index wrong = 0;
  for (std::size_t k = 0; k < std::size_t(n); ++k) wrong += d[to[k]] != s[from[k]];
  EXPECT_EQ(wrong, 0);
}

TEST(BlockKinds, ghosts_of_vertices_there_and_back) {
  const Index n = 1000, parts = 4;
  const FloorPlan mesh = even_floor_plan(Region({0}, {n}), parts);
  std::vector<std::vector<Index>> needed(parts);
  for (Index k = 0; k < parts; ++k)
    for (Index i = 0; i < 120; ++i) needed[std::size_t(k)].push_back((k * 250 + 250 + i * 37 % 600) % n);
  const BlockPlan plan = gather_points(mesh, needed);
  const XArray u(plan.source(), {}, {8, {}, Order::C});
  auto value = [&](Index block, Index point) -> double& { return View<double, 1>(u.grid(block))(point); };
  for (Index k = 0; k < parts; ++k)
    for (Index v = mesh.region(k).lower()[0]; v < mesh.region(k).upper()[0]; ++v) value(k, v) = double(v * v);
  const auto gather = bind_threads(plan, u, u);
  gather->start();
  gather->wait();
  for (Index k = 0; k < parts; ++k)
    for (std::size_t i = 0; i < needed[std::size_t(k)].size(); ++i) {
      const double v = double(needed[std::size_t(k)][i]);
      ASSERT_EQ(value(k, mesh.region(k).upper()[0] + Index(i)), v * v);
    }
  // Backwards, what was worked out for ghosts is added to the owner's.
  MoveOptions options;
  options.update = Reduction(ElementType::float64, ReduceOp::add);
  const auto scatter = bind_threads(plan.reverse(), u, u, options);
  scatter->start();
  scatter->wait();
  std::vector<double> times(std::size_t(n), 1);
  for (const auto& list : needed)
    for (const Index v : list) ++times[std::size_t(v)];
  for (Index k = 0; k < parts; ++k)
    for (Index v = mesh.region(k).lower()[0]; v < mesh.region(k).upper()[0]; ++v)
      ASSERT_EQ(value(k, v), double(v * v) * times[std::size_t(v)]);
}

}  // namespace
}  // namespace longshore::test

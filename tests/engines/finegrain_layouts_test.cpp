// Plans between layouts, moved by ranks that take turns, against the threads engine.
#include <cstring>

#include "longshore/layouts/balance.hpp"
#include "longshore/plans/block_builders.hpp"
#include "support/arrays.hpp"
#include "support/expect_error.hpp"
#include "support/finegrain.hpp"

namespace longshore::test {
namespace {

using finegrain::Rank;
using FinegrainLayouts = Finegrain;

/// A plan and memory for both of its sides, twice.
struct Layouts {
  MotionPlan plan;
  Arrays source, destination, expected;

  Layouts(std::string_view from, std::string_view to, std::vector<Index> shape, Index element_bytes,
          std::vector<std::size_t> axes = {})
      : Layouts(MotionPlan(Layout::parse(from, shape), Layout::parse(to, permuted_shape(shape, axes)), element_bytes,
                           axes)) {}
  explicit Layouts(MotionPlan given)
      : plan(std::move(given)),
        source(plan.source(), plan.element_bytes()),
        destination(plan.destination(), plan.element_bytes()),
        expected(destination) {}

  void fill(Index round) {
    for (std::size_t p = 0; p < source.memory.size(); ++p)
      for (std::size_t i = 0; i < source.memory[p].size(); ++i)
        source.memory[p][i] = std::byte((i * 7 + p * 13 + std::size_t(round)) % 251);
  }
  static LocalArray of(Arrays& arrays, Index rank) {
    const auto process = arrays.layout.process_of(rank);
    return process ? arrays.local()[std::size_t(*process)] : LocalArray{};
  }
  static std::vector<Index> permuted_shape(const std::vector<Index>& shape, const std::vector<std::size_t>& axes) {
    std::vector<Index> permuted;
    for (const auto axis : axes) permuted.push_back(shape[axis]);
    return axes.empty() ? shape : permuted;
  }
};

void compare_with_threads(Layouts& layouts, Index ranks, const MoveOptions& options, std::uint64_t seed) {
  const auto twin = bind_threads(layouts.plan, layouts.source.local(), layouts.expected.local(), options);
  const auto sources = layouts.source.local(), destinations = layouts.destination.local();
  auto mine = [](const std::vector<LocalArray>& all, const Layout& layout, Index rank) {
    const auto process = layout.process_of(rank);
    return process ? all[std::size_t(*process)] : LocalArray{};
  };
  Index moved = 0;
  finegrain::run(ranks,
                 [&](Rank& me) {
                   const MotionPlan own = layouts.plan;
                   const auto mover =
                       finegrain::bind(seed % 2 ? own : layouts.plan, me, mine(sources, own.source(), me.rank()),
                                       mine(destinations, own.destination(), me.rank()), options);
                   moved += mover->moved_bytes();
                   for (Index round = 0; round < 3; ++round) {
                     me.barrier();
                     if (me.rank() == 0) layouts.fill(round);
                     me.barrier();
                     mover->start();
                     while (round == 1 && !mover->test()) {
                     }
                     mover->wait();
                     me.barrier();
                     if (me.rank() == 0) {
                       twin->start(), twin->wait();
                       ASSERT_EQ(layouts.destination.memory, layouts.expected.memory);
                     }
                   }
                 },
                 {seed});
  EXPECT_EQ(moved, twin->moved_bytes());
}

TEST_F(FinegrainLayouts, do_what_threads_do) {
  ScalarBytes two{}, one{};
  const double numbers[] = {2, 1};
  std::memcpy(two.data(), &numbers[0], 8), std::memcpy(one.data(), &numbers[1], 8);
  MoveOptions add;
  add.update = Combine(ElementType::float64, two, one, false);
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    Layouts blocks("(BLOCK, *) on 4", "(*, BLOCK) on 3", {13, 17}, 8);
    compare_with_threads(blocks, 4, {}, seed);
    Layouts cyclic("(CYCLIC(3), CYCLIC(2)) on 2x3, order=F", "(CYCLIC(4), BLOCK) on 3x3, ranks=1:10", {31, 22}, 4);
    compare_with_threads(cyclic, 11, {}, seed);
    Layouts turned("(BLOCK, CYCLIC) on 2x2", "(CYCLIC(5), BLOCK) on 3x2", {14, 9}, 3, {1, 0});
    compare_with_threads(turned, 6, {}, seed);
    Layouts replicas("(BLOCK, *) on 3", "(*, *) on REPLICATED(5)", {9, 4}, 8);
    compare_with_threads(replicas, 5, {}, seed);
    Layouts sums("(BLOCK) on 5", "(CYCLIC(2)) on 4", {37}, 8);
    for (auto* arrays : {&sums.destination, &sums.expected})
      for (auto& part : arrays->memory) std::fill(part.begin(), part.end(), std::byte{});
    compare_with_threads(sums, 5, add, seed);
  }
}

TEST_F(FinegrainLayouts, of_thousands_of_ranks) {
  for (const Index ranks : world_sizes()) {
    const std::string on = " on " + std::to_string(ranks);
    Layouts layouts("(BLOCK)" + on, "(CYCLIC(3))" + on, {20 * ranks}, 8);
    compare_with_threads(layouts, ranks, {}, 7);
  }
}

TEST_F(FinegrainLayouts, say_what_is_wrong_to_every_rank) {
  Layouts layouts("(BLOCK, *) on 3", "(*, BLOCK) on 2", {6, 8}, 8);
  auto refuses = [&](ErrorKind kind, const std::vector<std::string>& words, auto&& change, Index ranks = 3) {
    Index told = 0;
    finegrain::run(ranks, [&](Rank& me) {
      LocalArray source = Layouts::of(layouts.source, me.rank()),
                 destination = Layouts::of(layouts.destination, me.rank());
      MotionPlan plan = layouts.plan;
      MoveOptions options;
      change(me.rank(), plan, source, destination, options);
      expect_error(kind, words, [&] { finegrain::bind(plan, me, source, destination, options); });
      ++told;
    });
    EXPECT_EQ(told, ranks);
  };
  refuses(ErrorKind::disagreement,
          {"different things", "\n  destination layout: rank 1 has (BLOCK, *) on 3, ranks 0, 2 have (*, BLOCK) on 2"},
          [](Index rank, auto& plan, auto&...) {
            if (rank == 1) plan = MotionPlan(plan.source(), plan.source(), 8);
          });
  refuses(ErrorKind::disagreement, {"\n  alpha: rank 2 has 0 (float64), ranks 0, 1 have 1"},
          [](Index rank, auto&, auto&, auto&, auto& options) {
            if (rank == 2) options.update = Combine(ElementType::float64, {}, {}, false);
          });
  refuses(
      ErrorKind::argument, {"source layout (BLOCK, *) on 3 needs 3 ranks, the world has 2"}, [](auto&&...) {}, 2);
  refuses(ErrorKind::shape, {"rank 1: the source array has shape (1, 8)"},
          [](Index rank, auto&, auto& source, auto&...) {
            if (rank == 1) source.shape = {1, 8};
          });
  refuses(ErrorKind::shape, {"layout rank 2 takes no part in the destination layout"},
          [](Index rank, auto&, auto& source, auto& destination, auto&) {
            if (rank == 2) destination = source;
          });
  refuses(ErrorKind::buffer, {"source array of rank 2", "destination array of rank 0", "share memory"},
          [&](Index rank, auto&, auto&, auto& destination, auto&) {
            if (rank == 0) destination.data = layouts.source.memory[2].data();
          });
  refuses(
      ErrorKind::type, {"alpha and beta are for float32, the plan's elements have 8 bytes"},
      [](Index, auto&, auto&, auto&, auto& options) { options.update = Combine(ElementType::float32, {}, {}, false); });
  refuses(ErrorKind::memory_limit, {"rank 0 needs", "max_mem allows 10"},
          [](Index, auto&, auto&, auto&, auto& options) { options.max_mem = 10; });
  // Plans of two kinds.
  const auto blocks = even_floor_plan(Region({0}, {4}), 2);
  const XArray array(blocks, {}, {8, Point(1, 1), Order::F});
  expect_error(ErrorKind::disagreement,
               {"different things", "\n  plan: rank 0 has a halo, rank 1 has a redistribution"}, [&] {
                 finegrain::run(2, [&](Rank& me) {
                   if (me.rank() == 0)
                     finegrain::bind(halo_exchange(blocks, Halo(1, 1)), me, array, array);
                   else
                     finegrain::bind(layouts.plan, me, {}, {});
                 });
               });
}

}  // namespace
}  // namespace longshore::test

// Plans between blocks, moved by ranks that take turns, against the threads engine.
#include <array>
#include <cstring>
#include <optional>
#include <random>
#include <stdexcept>

#include "longshore/layouts/balance.hpp"
#include "longshore/plans/block_builders.hpp"
#include "support/expect_error.hpp"
#include "support/finegrain.hpp"

namespace longshore::test {
namespace {

using finegrain::Rank;
using FinegrainMover = Finegrain;

/// A floor plan, a plan and its arrays, filled; ranks may have several blocks, or none.
struct Case {
  BlockPlan plan;
  XArray source, destination;

  /// The same once more, in memory of its own.
  Case again() const {
    Case other{plan, fresh(source), {}};
    other.destination = source.same_storage(destination) ? other.source : fresh(destination);
    return other;
  }
  static XArray fresh(const XArray& of) {
    const XArray array(of.blocks(), {}, of.format());
    fill(array, 0);
    return array;
  }
  static void fill(const XArray& array, Index round) {
    for (std::size_t k = 0; k < array.grids().size(); ++k) {
      const Grid& grid = array.grids()[k];
      const Index bytes = grid.region.size() * grid.element_bytes;
      for (Index i = 0; i < bytes; ++i)
        grid.data[i] = std::byte((std::size_t(i) * 17 + k * 29 + std::size_t(round)) % 61);
    }
  }
};

/// The grids that a rank owns of an array of all blocks.
XArray part_of(const XArray& whole, Index rank) {
  std::vector<Grid> grids;
  for (const Index k : whole.blocks().owned_by(rank)) grids.push_back(whole.grid(k));
  return XArray::over(whole.blocks(), rank, whole.format(), std::move(grids));
}

void expect_equal(const XArray& a, const XArray& b) {
  for (std::size_t k = 0; k < a.grids().size(); ++k)
    EXPECT_EQ(
        std::memcmp(a.grids()[k].data, b.grids()[k].data, std::size_t(a.grids()[k].region.size() * a.element_bytes())),
        0)
        << "block " << k;
}

void move(Mover& mover, Index round) {
  mover.start();
  if (round == 1)
    while (!mover.test()) {
    }
  mover.wait();
}

/// What the threads engine does and what ranks do that take turns, each with its own
/// share of the plan and of the arrays, with everybody's, or some so, are the same.
void compare_with_threads(const Case& threads, Index ranks, std::uint64_t seed, const MoveOptions& options,
                          const std::function<BlockPlan(Index)>& own_plan) {
  const auto twin = bind_threads(threads.plan, threads.source, threads.destination, options);
  const Case turns = threads.again();
  Case::fill(threads.destination, 0);
  const bool endogenous = turns.source.same_storage(turns.destination);
  Index moved = 0;
  finegrain::run(ranks,
                 [&](Rank& me) {
                   const bool own = seed % 2 == 1;
                   const XArray source = own ? part_of(turns.source, me.rank()) : turns.source;
                   const XArray destination = endogenous ? source
                                              : own      ? part_of(turns.destination, me.rank())
                                                         : turns.destination;
                   std::optional<BlockPlan> share;
                   if (seed % 3 == 1 || (seed % 3 == 2 && me.rank() % 2 == 0)) share = own_plan(me.rank());
                   const auto mover = finegrain::bind(share ? *share : turns.plan, me, source, destination, options);
                   moved += mover->moved_bytes();
                   for (Index round = 0; round < 3; ++round) {
                     me.barrier();
                     if (me.rank() == 0)
                       for (const Case* one : {&threads, &turns}) Case::fill(one->source, round);
                     me.barrier();
                     move(*mover, round);
                     me.barrier();
                     if (me.rank() == 0) {
                       twin->start(), twin->wait();
                       expect_equal(threads.destination, turns.destination);
                     }
                   }
                 },
                 {seed});
  EXPECT_EQ(moved, twin->moved_bytes());
}

TEST_F(FinegrainMover, does_what_threads_do) {
  std::mt19937 random(11);
  const int trials = quick() ? 12 : 60;
  for (int trial = 0; trial < trials; ++trial) {
    const std::size_t dims = 1 + random() % 3;
    Point extent(dims), size(dims), other_size(dims);
    for (std::size_t d = 0; d < dims; ++d) {
      extent[d] = 4 + Index(random() % 14);
      size[d] = 2 + Index(random() % 6), other_size[d] = 2 + Index(random() % 6);
    }
    const Region domain = Region::of_shape(extent);
    const Index ranks = 1 + Index(random() % 9);
    const auto blocks = balanced_along(split_to_size(domain, size), ranks),
               others = balanced_along(split_to_size(domain, other_size), ranks);
    const Index width = Index(random() % 3), element = std::array<Index, 3>{1, 8, 12}[random() % 3];
    const Order order = random() % 2 ? Order::C : Order::F;
    const GridFormat format{element, Point(dims, width), order}, bare{element, Point(dims), Order::C};
    const XArray array(blocks, {}, format);
    const auto seed = std::uint64_t(trial);
    const Halo halo(dims, width, domain, std::vector<bool>(dims, random() % 2 == 0));
    compare_with_threads({halo_exchange(blocks, halo), array, array}, ranks + 1, seed, {},
                         [&](Index r) { return halo_exchange(blocks, halo, r); });
    compare_with_threads({copy_between(blocks, others), array, XArray(others, {}, bare)}, ranks, seed + 1, {},
                         [&](Index r) { return copy_between(blocks, others, r); });
    MoveOptions add;
    add.update = Reduction(ElementType::uint64, ReduceOp::add);
    const XArray numbers(blocks, {}, {8, Point(dims, width), order});
    compare_with_threads({halo_exchange(blocks, halo).reverse(), numbers, numbers}, ranks, seed + 2, add,
                         [&](Index r) { return halo_exchange(blocks, halo, r).reverse(); });
  }
}

TEST_F(FinegrainMover, other_shapes_by_hand) {
  const FloorPlan from(std::vector{Region({0, 0}, {6, 4}), Region({6, 0}, {9, 8})}, {1, 0});
  const FloorPlan to(std::vector{Region({-2}, {30})}, {2});
  BlockPlan plan(from, FloorPlan(std::vector{Region({-2, 0}, {30, 1})}, {2}));
  plan.copy(Region({0, 0}, {24, 1}), 0, Region({0, 0}, {6, 4}), 0);
  plan.copy(Region({24, 0}, {28, 1}), 0, Region({6, 6}, {8, 8}), 1);
  for (const Order visit : {Order::C, Order::F})
    for (const std::uint64_t seed : {0, 1, 3}) {
      MoveOptions options;
      options.visit = visit;
      compare_with_threads(
          {plan, XArray(from, {}, {4, Point(2), Order::F}), XArray(plan.destination(), {}, {4, Point(2), Order::C})}, 3,
          seed, options, [&](Index) { return plan; });
    }
}

TEST_F(FinegrainMover, functions_of_ones_own) {
  const auto blocks = even_floor_plan(Region({0}, {30}), 5);
  const BlockPlan halo = halo_exchange(blocks, Halo(1, 1));
  const XArray array(blocks, {}, {8, Point(1, 1), Order::F});
  finegrain::run(5, [&](Rank& me) {
    Index calls = 0;  // on this rank's stack
    MoveOptions options;
    options.update = Reduction(8, [&calls, r = me.rank()](std::byte* to, const std::byte*, Index n, Index step, Index) {
      ++calls;
      for (Index k = 0; k < n; ++k) std::memcpy(to + k * step, &r, sizeof r);
    });
    const auto mover = finegrain::bind(halo, me, array, array, options);
    mover->start(), mover->wait();
    EXPECT_EQ(calls, me.rank() % 4 == 0 ? 1 : 2);
    const View<Index, 1> own(array.grid(me.rank()));
    EXPECT_EQ(own(own.lower(0)), me.rank() == 0 ? 0 : me.rank());
    EXPECT_EQ(own(own.upper(0) - 1), me.rank() == 4 ? 0 : me.rank());
  });
}

TEST_F(FinegrainMover, thousands_of_ranks) {
  for (const Index ranks : world_sizes()) {
    const Region domain({0, 0}, {4 * ranks, 60});
    const auto blocks = even_floor_plan(domain, ranks, {true, true});
    const XArray array(blocks, {}, {8, Point(2, 1), Order::F});
    const Case one{halo_exchange(blocks, Halo(2, 1, domain, {true, true})), array, array};
    for (const std::uint64_t seed : {0, 7})  // with everybody's plan, and each with its own and arrays of its own
      compare_with_threads(one, ranks, seed, {}, [&](Index r) {
        return halo_exchange(blocks, Halo(2, 1, domain, {true, true}), r);
      });
  }
}

TEST_F(FinegrainMover, several_in_flight_and_given_up) {
  const Region domain({0, 0}, {24, 24});
  const auto blocks = even_floor_plan(domain, 6), rows = balanced_along(split_to_size(domain, {1, 24}), 6);
  const BlockPlan there = copy_between(blocks, rows);
  const XArray a(blocks, {}, {8, {}, Order::F}), b(rows, {}, {8, {}, Order::C}), c = Case::fresh(a),
                                                                                 expected_b(rows, {}, b.format());
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    Case::fill(a, Index(seed)), Case::fill(c, 3);
    const auto twin = bind_threads(there, a, expected_b);
    twin->start(), twin->wait();
    XArray d = Case::fresh(b), e = Case::fresh(a);
    finegrain::run(6,
                   [&](Rank& me) {
                     // Ranks start in one order and wait in another one; one move is never waited for, by anybody.
                     const auto one = finegrain::bind(there, me, a, b),
                                two = finegrain::bind(there.reverse(), me, expected_b, c);
                     const auto dropped = finegrain::bind(there, me, a, d);
                     dropped->start();
                     for (int round = 0; round < 2; ++round) {
                       two->start(), one->start();
                       expect_error(ErrorKind::argument, {"started already"}, [&] { one->start(); });
                       me.rank() % 2 ? one->wait() : two->wait();
                       me.rank() % 2 ? two->wait() : one->wait();
                       expect_error(ErrorKind::argument, {"wait() without start()"}, [&] { one->wait(); });
                     }
                   },
                   {seed});
    expect_equal(b, expected_b);
    expect_equal(c, a);
    EXPECT_EQ(std::memcmp(d.memory()->data(), b.memory()->data(), std::size_t(b.memory()->bytes())),
              0);  // all have started it

    // One rank gives a move up, and may or may not have got what it was to get: the others get theirs.
    const BlockPlan back = there.reverse();
    finegrain::run(6,
                   [&](Rank& me) {
                     auto mover = finegrain::bind(back, me, expected_b, e);
                     mover->start();
                     if (me.rank() != 4) mover->wait();
                   },
                   {seed});
    for (Index k = 0; k < blocks.size(); ++k)
      if (k != 4) {
        EXPECT_EQ(std::memcmp(e.grid(k).data, a.grid(k).data, std::size_t(e.grid(k).region.size() * 8)), 0) << k;
      }
  }
}

TEST_F(FinegrainMover, who_gives_up_a_later_move_has_not_finished_the_one_before_for_others) {
  const FloorPlan from(std::vector{Region({0}, {1})}, {0}), to(std::vector{Region({0}, {1}), Region({0}, {1})}, {1, 2});
  BlockPlan plan(from, to);
  for (const Index k : {0, 1}) plan.copy(Region({0}, {1}), k, Region({0}, {1}), 0);
  const XArray source(from, {}, {8, {}, Order::F}), destination(to, {}, {8, {}, Order::F});
  Index &sent = View<Index, 1>(source.grid(0))(0), &received = View<Index, 1>(destination.grid(1))(0);
  sent = 1;
  finegrain::run(3, [&](Rank& me) {
    auto mover = finegrain::bind(plan, me, source, destination);
    if (me.rank() == 1) me.yield();
    if (me.rank() == 2)
      me.receive(1, 0, {});  // has come here by now, and starts when rank 1 has given up the second move
    mover->start(), mover->wait();
    if (me.rank() == 1) {
      mover->start();
      mover.reset();
      me.send(2, 0, {});
      return;
    }
    if (me.rank() == 0)
      sent = 2;
    else
      EXPECT_EQ(received, 1);
    mover->start(), mover->wait();
    EXPECT_EQ(received, 2);  // rank 0 waits for it too
  });
}

TEST_F(FinegrainMover, what_a_function_throws_is_its_ranks) {
  const auto blocks = even_floor_plan(Region({0}, {16}), 4);
  const BlockPlan halo = halo_exchange(blocks, Halo(1, 1));
  const XArray array(blocks, {}, {8, Point(1, 1), Order::F});
  for (const std::uint64_t seed : {0, 1, 2, 3})
    for (const bool asks : {false, true}) {
      Index thrown = 0;
      finegrain::run(4,
                     [&](Rank& me) {
                       int round = 0;
                       MoveOptions options;
                       options.update = Reduction(8, [&](std::byte*, const std::byte*, Index, Index, Index) {
                         if (me.rank() == 2 && round == 1) throw std::range_error("too much");
                         if (me.rank() == 1 && round == 2) me.yield();
                       });
                       const auto mover = finegrain::bind(halo, me, array, array, options);
                       auto finish = [&] {
                         while (asks && !mover->test()) {
                         }
                         mover->wait();
                       };
                       for (; round < 4; ++round) {
                         mover->start();
                         if (me.rank() == 2 && round == 1) {
                           EXPECT_THROW(finish(), std::range_error);
                           ++thrown;
                         } else if (me.rank() == 1 && round == 2) {
                           expect_error(ErrorKind::argument, {"rank 1's part", "nothing may wait"}, finish);
                           ++thrown;
                         } else {
                           finish();
                         }
                         me.barrier();
                       }
                     },
                     {seed});
      EXPECT_EQ(thrown, 2);
    }
}

TEST_F(FinegrainMover, destructors_may_wait_while_the_world_ends) {
  const auto blocks = even_floor_plan(Region({0}, {16}), 4);
  const BlockPlan halo = halo_exchange(blocks, Halo(1, 1));
  const XArray array(blocks, {}, {8, Point(1, 1), Order::F});
  struct Finish {
    Rank& me;
    Mover& mover;
    Index& finished;
    ~Finish() {
      mover.wait();
      if (me.rank() == 3) {  // whose error it is has all of its turns yet
        ++finished;
        return;
      }
      mover.start();
      while (!mover.test()) {
      }
      std::byte number{};
      me.send(3, 0, {});
      me.receive(3, 0, {&number, 1});
      EXPECT_TRUE(me.receive(3, 0).empty());
      me.broadcast(0, {&number, 1});
      me.barrier(), me.yield();
      ++finished;
    }
  };
  for (const bool checked : {false, true})
    for (const std::uint64_t seed : {0, 1, 2}) {
      Index finished = 0;
      auto world = [&] {
        finegrain::run(4,
                       [&](Rank& me) {
                         MoveOptions options;
                         options.checked = checked;
                         const auto mover = finegrain::bind(halo, me, array, array, options);
                         mover->start();
                         const Finish finish{me, *mover, finished};
                         if (me.rank() == 3) throw Error(ErrorKind::buffer, "the last one stops");
                         me.barrier();
                       },
                       {seed});
      };
      expect_error(ErrorKind::buffer, {"rank 3: the last one stops"}, world);
      EXPECT_EQ(finished, 4);
    }
}

TEST_F(FinegrainMover, starts_again_after_test) {
  const auto blocks = even_floor_plan(Region({0, 0}, {12, 9}), 5);
  const BlockPlan halo = halo_exchange(blocks, Halo(2, 1));
  for (const bool checked : {false, true})
    for (const std::uint64_t seed : {0, 1, 2}) {
      const XArray array(blocks, {}, {8, Point(2, 1), Order::F}), expected = Case::fresh(array);
      const auto twin = bind_threads(halo, expected, expected);
      finegrain::run(5,
                     [&](Rank& me) {
                       MoveOptions options;
                       options.checked = checked;
                       const auto mover = finegrain::bind(halo, me, array, array, options);
                       for (Index round = 0; round < 5; ++round) {
                         me.barrier();
                         if (me.rank() == 0) {
                           Case::fill(array, round), Case::fill(expected, round);
                           twin->start(), twin->wait();
                         }
                         me.barrier();
                         mover->start();
                         if (round % 2)
                           mover->wait();
                         else
                           while (!mover->test()) {
                           }
                         me.barrier();
                         if (me.rank() == 0) expect_equal(array, expected);
                       }
                     },
                     {seed});
    }
}

TEST_F(FinegrainMover, checked_moves_find_what_was_written_too_early) {
  const auto blocks = even_floor_plan(Region({0, 0}, {12, 9}), 5);
  const BlockPlan halo = halo_exchange(blocks, Halo(2, 1));
  for (const bool own : {false, true})
    for (const bool early : {false, true}) {
      const XArray array(blocks, {}, {8, Point(2, 1), Order::F});
      Case::fill(array, 1);
      auto world = [&] {
        finegrain::run(5, [&](Rank& me) {
          MoveOptions options;
          options.checked = true;
          const BlockPlan share = halo_exchange(blocks, Halo(2, 1), me.rank());
          const auto mover = finegrain::bind(own ? share : halo, me, array, array, options);
          for (int round = 0; round < 2; ++round) {
            mover->start();
            const Grid& mine = array.grid(me.rank());
            if (early && me.rank() == 3 && round == 1)
              mine.data[mine.offset_of(blocks.region(3).lower())] ^= std::byte(1);
            mover->wait();
          }
        });
      };
      if (early)
        expect_error(ErrorKind::buffer, {"rank 3: the source of block 3", "was written between start() and wait()"},
                     world);
      else
        world();
    }
}

TEST_F(FinegrainMover, deadlocks_name_who_does_not_move) {
  const auto blocks = even_floor_plan(Region({0}, {12}), 4);
  const BlockPlan halo = halo_exchange(blocks, Halo(1, 1));
  const XArray array(blocks, {}, {8, Point(1, 1), Order::F});
  auto world = [&](auto&& program) {
    finegrain::run(4, [&](Rank& me) {
      auto mover = finegrain::bind(halo, me, array, array);
      program(me, mover);
    });
  };
  expect_error(ErrorKind::deadlock,
               {"rank 0 waits in wait() of a move for rank 1, which has not started it\n  rank 1 waits in barrier()"},
               [&] {
                 world([](Rank& me, auto& mover) {
                   if (me.rank() == 1) me.barrier();
                   mover->start(), mover->wait();
                 });
               });
  // Rank 0 waits for what rank 1 is to get, and that for rank 2; it is not in the circle.
  expect_error(ErrorKind::deadlock,
               {"4 of 4 ranks wait and none can go on\n  rank 2 waits for a message of rank 3 (tag 0)\n  rank 3 waits "
                "in wait() of a move for rank 2, which has not started it"},
               [&] {
                 world([](Rank& me, auto& mover) {
                   if (me.rank() == 2) me.receive(3, 0, {});
                   mover->start(), mover->wait();
                   if (me.rank() == 3) me.send(2, 0, {});
                 });
               });
  expect_error(ErrorKind::deadlock, {"for rank 2, which has destroyed its mover\n  rank 2 has returned"}, [&] {
    world([](Rank& me, auto& mover) {
      for (int round = 0; round < (me.rank() == 2 ? 1 : 2); ++round) mover->start(), mover->wait();
    });
  });
  // Ranks that ask and ask are in a deadlock where they say so: rank
  // 2 does not start, and in the second world yields all the time.
  for (const bool yields : {false, true})
    expect_error(
        ErrorKind::deadlock,
        {yields ? "4 of 4 ranks ask or yield" : "3 of 4 ranks ask or yield",
         "in 50 turns of each nobody has come any further",
         " asks in test() of a move for rank 2, which has not started it",
         yields ? "rank 2 has its turns, but comes no further" : "rank 2 waits for a message of rank 0 (tag 1)"},
        [&] {
          finegrain::run(4,
                         [&](Rank& me) {
                           const auto mover = finegrain::bind(halo, me, array, array);
                           while (yields && me.rank() == 2) me.yield();
                           if (me.rank() == 2) me.receive(0, 1, {});
                           mover->start();
                           while (!mover->test()) {
                           }
                         },
                         {.seed = 5, .idle_turns = 50});
        });
  // Somebody who only asks is in no deadlock otherwise; a mover is of no use when its world is over.
  std::unique_ptr<Mover> kept;
  expect_error(ErrorKind::argument, {"rank 1: asked often enough"}, [&] {
    world([&](Rank& me, auto& mover) {
      if (me.rank() == 2) return;
      mover->start();
      if (me.rank() == 0) return kept = std::move(mover), void();
      for (int k = 0; me.rank() == 3 || k < 100; ++k) EXPECT_FALSE(mover->test());
      throw Error(ErrorKind::argument, "asked often enough");
    });
  });
  kept->wait();  // all others have given up
  expect_error(ErrorKind::argument, {"rank 0's part of a world is used when that world is over"},
               [&] { kept->start(); });
}

TEST_F(FinegrainMover, says_what_is_wrong_to_every_rank) {
  const auto blocks = even_floor_plan(Region({0, 0}, {8, 6}), 4);
  const BlockPlan halo = halo_exchange(blocks, Halo(2, 1)), wide = halo_exchange(blocks, Halo(2, 2));
  const XArray array(blocks, {}, {8, Point(2, 1), Order::F}), other = Case::fresh(array),
                                                              bare(blocks, {}, {8, {}, Order::F});
  auto refuses = [&](ErrorKind kind, const std::vector<std::string>& words, auto&& bind, Index ranks = 4) {
    Index told = 0;
    finegrain::run(ranks, [&](Rank& me) { expect_error(kind, words, [&] { bind(me); }), ++told; });
    EXPECT_EQ(told, ranks);
  };
  refuses(ErrorKind::disagreement, {"different things", "\n  halo: rank 2 has width 2, ranks 0, 1, 3 have width 1"},
          [&](Rank& me) { finegrain::bind(me.rank() == 2 ? wide : halo, me, array, array); });
  refuses(ErrorKind::disagreement, {"\n  reduce: rank 3 has add of float64, ranks 0-2 have none"}, [&](Rank& me) {
    MoveOptions options;
    if (me.rank() == 3) options.update = Reduction(ElementType::float64, ReduceOp::add);
    finegrain::bind(halo, me, array, array, options);
  });
  refuses(ErrorKind::disagreement,
          {"\n  arrays: rank 1 has one, moved within itself, ranks 0, 2, 3 have a source and a destination"},
          [&](Rank& me) { finegrain::bind(halo, me, array, me.rank() == 1 ? array : other); });
  refuses(ErrorKind::argument, {"proxy"}, [&](Rank& me) {
    MoveOptions options;
    options.proxy = me.rank() == 2;
    finegrain::bind(halo, me, array, array, options);
  });
  refuses(ErrorKind::argument, {"phases"}, [&](Rank& me) {
    MoveOptions options;
    options.phases = me.rank() == 2 ? Phases::always : Phases::automatic;
    finegrain::bind(halo, me, array, array, options);
  });
  refuses(
      ErrorKind::argument, {"blocks on rank 3, the world has 3 ranks"},
      [&](Rank& me) { finegrain::bind(halo, me, array, array); }, 3);
  refuses(ErrorKind::argument, {"rank 0: the plan is rank 3's, this is rank 0"},
          [&](Rank& me) { finegrain::bind(halo_exchange(blocks, Halo(2, 1), 3 - me.rank()), me, array, array); });
  refuses(ErrorKind::argument, {"rank 1: the source array is rank 2's"}, [&](Rank& me) {
    const XArray mine = part_of(array, me.rank() == 1 ? 2 : me.rank());
    finegrain::bind(halo, me, mine, mine);
  });
  refuses(ErrorKind::argument, {"not within the storage of destination block", "ghost"},
          [&](Rank& me) { finegrain::bind(halo, me, bare, bare); });
  refuses(ErrorKind::shape, {"source array has other blocks"}, [&](Rank& me) {
    const XArray elsewhere(blocks.with_owners({3, 2, 1, 0}), {}, array.format());
    finegrain::bind(halo, me, elsewhere, elsewhere);
  });
  BlockPlan race(blocks, blocks);
  race.copy(Region({0, 0}, {2, 2}), 0, Region({1, 1}, {3, 3}), 0);
  refuses(ErrorKind::argument, {"a motion reads and writes"},
          [&](Rank& me) { finegrain::bind(race, me, array, array); });
  refuses(ErrorKind::buffer, {"share memory"}, [&](Rank& me) {
    auto grids = array.grids();
    grids[1].data = grids[0].data + 8;
    const XArray overlapping = XArray::over(blocks, {}, array.format(), std::move(grids));
    finegrain::bind(halo, me, overlapping, overlapping);
  });
  refuses(ErrorKind::buffer, {"the array of block 0 (rank 0) and the array of block 1 (rank 1) share memory"},
          [&](Rank& me) {
            std::vector<Grid> mine{array.grid(me.rank())};
            if (me.rank() == 1) mine[0].data = array.grid(0).data + 8;
            const XArray own = XArray::over(blocks, me.rank(), array.format(), mine);
            finegrain::bind(halo, me, own, own);
          });
  refuses(ErrorKind::memory_limit, {"needs", "max_mem allows 100"}, [&](Rank& me) {
    MoveOptions options;
    options.max_mem = 100;
    finegrain::bind(halo, me, array, array, options);
  });
  finegrain::run(4, [&](Rank& me) {
    const auto mover = finegrain::bind(halo, me, array, array);
    EXPECT_NE(mover->describe().find("3 motions"), std::string::npos) << mover->describe();
    EXPECT_GT(mover->workspace_bytes(), 0);
  });
}

}  // namespace
}  // namespace longshore::test

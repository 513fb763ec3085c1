// Worlds of ranks that take turns: their messages, collectives, deadlocks and ends.
#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include "engines/finegrain/fibers.hpp"
#include "support/expect_error.hpp"
#include "support/finegrain.hpp"

namespace longshore::test {
namespace {

using finegrain::Rank;
using FinegrainWorld = Finegrain;
using FinegrainDeadlock = Finegrain;

TEST(FinegrainBuild, says_what_it_lacks) {
  auto world = [] { finegrain::run(1, [](Rank&) {}); };
  if (finegrain::available())
    EXPECT_NO_THROW(world());
  else
    expect_error(ErrorKind::argument, {"Boost.Context"}, world);
}

TEST_F(FinegrainWorld, messages_and_collectives) {
  for (const Index ranks : world_sizes())
    for (const std::uint64_t seed : {0, 1, 2}) {
      Index turns = 0;
      std::vector<Index> gathered(std::size_t(ranks), -1);
      double harmonic = 0;
      for (Index k = 1; k <= ranks; ++k) harmonic += 1.0 / double(k);
      const auto statistics = finegrain::run(
          ranks,
          [&](Rank& me) {
            const Index r = me.rank(), next = (r + 1) % ranks, before = (r + ranks - 1) % ranks;
            ASSERT_EQ(me.size(), ranks);
            for (Index round = 0; round < 3; ++round) me.send(next, 7, bytes_of(r * 10 + round));
            for (Index round = 0; round < 3; ++round) ASSERT_EQ(receive(me, before, 7), before * 10 + round);
            const Index square = r * r, root = ranks / 2;
            me.gather(root, bytes_of(square),
                      r == root ? std::as_writable_bytes(std::span(gathered)) : std::span<std::byte>());
            ++turns;
            me.barrier();
            ASSERT_EQ(turns, ranks);
            std::array<double, 2> numbers{1.0 / double(r + 1), double(r)};
            me.all_reduce(bytes_of(numbers), Reduction(ElementType::float64, ReduceOp::add));
            ASSERT_EQ(numbers[0], harmonic);  // in order of ranks, whatever the order of turns
            ASSERT_EQ(numbers[1], double(ranks * (ranks - 1) / 2));
            Index largest = r;
            const Reduction own(sizeof largest, [r](std::byte* to, const std::byte* from, Index n, Index, Index) {
              Index a = 0, b = 0;
              std::memcpy(&a, to, sizeof a), std::memcpy(&b, from, sizeof b);
              a = std::max(a, b);
              std::memcpy(to, &a, sizeof a);
              ASSERT_EQ(n, 1);
              ASSERT_EQ(r, 0);
            });
            me.all_reduce(bytes_of(largest), own);
            ASSERT_EQ(largest, ranks - 1);
            Index told = r == root ? 12345 : r;
            me.broadcast(root, bytes_of(told));
            ASSERT_EQ(told, 12345);
            if (ranks > 1000) return;  // everybody's of everybody
            std::vector<Index> everybody(std::size_t(ranks), -1);
            me.all_gather(bytes_of(square), std::as_writable_bytes(std::span(everybody)));
            for (Index k = 0; k < ranks; ++k) ASSERT_EQ(everybody[std::size_t(k)], k * k);
          },
          {seed});
      for (Index r = 0; r < ranks; ++r) ASSERT_EQ(gathered[std::size_t(r)], r * r);
      EXPECT_EQ(statistics.messages, 3 * ranks);
      EXPECT_EQ(statistics.stacks, ranks);
    }
}

TEST_F(FinegrainWorld, order_of_turns_is_the_seeds) {
  for (const Index ranks : {40, 400}) {
    auto events = [&](std::uint64_t seed) {
      std::vector<Index> order;
      auto program = [&](Rank& me) {
        for (int round = 0; round < 5; ++round) order.push_back(me.rank()), me.yield();
        me.send((me.rank() + 7) % ranks, 0, {});
        me.receive((me.rank() + ranks - 7) % ranks, 0, {});
        order.push_back(me.rank());
        me.barrier();
        order.push_back(me.rank());
      };
      finegrain::run(ranks, program, {seed});
      return order;
    };
    const auto in_turn = events(0);
    EXPECT_EQ(in_turn, events(0));
    for (Index k = 0; k < 5 * ranks; ++k) EXPECT_EQ(in_turn[std::size_t(k)], k % ranks);
    EXPECT_EQ(events(1), events(1));
    EXPECT_EQ(events(99), events(99));
    EXPECT_NE(events(1), events(99));
    EXPECT_NE(events(1), in_turn);
    // On all machines.
    const auto first = events(1);
    const std::vector<Index> expected = ranks == 40 ? std::vector<Index>{8, 23, 12, 9, 28, 14, 34, 32}
                                                    : std::vector<Index>{328, 346, 40, 90, 28, 282, 269, 7};
    EXPECT_EQ(std::vector(first.begin(), first.begin() + 8), expected);
  }
}

TEST_F(FinegrainWorld, messages_go_by_sender_and_tag) {
  finegrain::run(3, [](Rank& me) {
    if (me.rank() == 0) {
      for (Index k = 0; k < 4; ++k) me.send(2, k % 2, bytes_of(k));
      me.send(0, 5, bytes_of(Index{42}));
      EXPECT_EQ(receive(me, 0, 5), 42);
    } else if (me.rank() == 1) {
      me.send(2, 0, bytes_of(Index{100}));
    } else {
      EXPECT_EQ(receive(me, 0, 1), 1);
      EXPECT_EQ(receive(me, 1, 0), 100);
      for (const Index k : {0, 2}) EXPECT_EQ(receive(me, 0, 0), k);
      EXPECT_EQ(receive(me, 0, 1), 3);
      me.send(2, 0, {});
      me.receive(2, 0, {});  // of itself, of no bytes
    }
    if (me.rank() == 1) {
      for (const Index n : {5, 0, 70000}) me.send(2, 1, std::vector(std::size_t(n), std::byte(n % 251)));
    } else if (me.rank() == 2) {
      for (const Index n : {5, 0, 70000}) EXPECT_EQ(me.receive(1, 1), std::vector(std::size_t(n), std::byte(n % 251)));
    }
    me.barrier();
  });
}

TEST_F(FinegrainWorld, ranks_that_return_give_their_stacks_to_others) {
  EXPECT_EQ(finegrain::run(1000, [](Rank&) {}).stacks, 1);
  EXPECT_EQ(finegrain::run(0, [](Rank&) {}).stacks, 0);
  const auto chain = finegrain::run(1000, [](Rank& me) {
    if (me.rank() % 2 == 0)
      me.send(me.rank() + 1, 0, {});
    else
      me.receive(me.rank() - 1, 0, {});
  });
  EXPECT_EQ(chain.stacks, 1);
  EXPECT_EQ(chain.switches, 1000);
}

TEST_F(FinegrainWorld, exceptions_end_the_world_and_unwind_the_others) {
  struct Counted {
    explicit Counted(Index& n) : n(n) { ++n; }
    ~Counted() { --n; }
    Index& n;
  };
  Index alive = 0, most = 0;
  auto failing = [&](auto&& fail) {
    finegrain::run(50,
                   [&](Rank& me) {
                     const Counted counted(alive);
                     most = std::max(most, alive);
                     if (me.rank() == 17) me.receive(16, 1, {}), fail();
                     if (me.rank() == 16) me.yield(), me.send(17, 1, {});
                     me.barrier();
                     ADD_FAILURE() << "rank " << me.rank() << " goes on";
                   },
                   {3});
  };
  expect_error(ErrorKind::buffer, {"rank 17: too small"},
               [&] { failing([] { throw Error(ErrorKind::buffer, "too small"); }); });
  EXPECT_EQ(alive, 0);
  EXPECT_GT(most, 16);
  try {
    failing([] { throw std::out_of_range("far away"); });
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "rank 17: far away");
    EXPECT_THROW(std::rethrow_if_nested(error), std::out_of_range);
  }
  expect_error(ErrorKind::argument, {"rank 17: an exception that is no std::exception"},
               [&] { failing([] { throw 1; }); });
  EXPECT_EQ(alive, 0);
}

TEST_F(FinegrainWorld, exceptions_belong_to_their_rank) {
  // Everybody handles an exception of its own while others have their turns.
  finegrain::run(20,
                 [](Rank& me) {
                   struct Unwound {
                     Rank& me;
                     ~Unwound() {
                       EXPECT_EQ(std::uncaught_exceptions(), 1);
                       me.yield();
                       EXPECT_EQ(std::uncaught_exceptions(), 1);
                     }
                   };
                   try {
                     EXPECT_EQ(std::uncaught_exceptions(), 0);
                     const Unwound unwound{me};
                     throw me.rank();
                   } catch (Index) {
                     me.yield();
                     try {
                       throw;
                     } catch (Index rank) {
                       EXPECT_EQ(rank, me.rank());
                     }
                   }
                 },
                 {5});
}

TEST_F(FinegrainWorld, names_a_rank_once) {
  const auto said = [](const std::string& words) -> std::string {
    try {
      finegrain::run(2, [&](Rank& me) {
        if (me.rank() == 1) throw Error(ErrorKind::argument, words);
      });
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_EQ(said("rank 1 is wrong"), "rank 1 is wrong");
  EXPECT_EQ(said("rank 1"), "rank 1");
  EXPECT_EQ(said("rank 12 is wrong"), "rank 1: rank 12 is wrong");
  EXPECT_EQ(said("it is wrong"), "rank 1: it is wrong");
}

TEST_F(FinegrainWorld, says_what_is_wrong) {
  auto both = [](auto&& one, auto&& two) {
    return [one, two] { finegrain::run(2, [&](Rank& me) { me.rank() == 0 ? one(me) : two(me); }); };
  };
  auto nothing = [](Rank&) {};
  expect_error(ErrorKind::argument, {"a world of -1 ranks"}, [&] { finegrain::run(-1, nothing); });
  expect_error(ErrorKind::argument, {"stacks of 100 bytes"}, [&] { finegrain::run(1, nothing, {0, 100}); });
  expect_error(ErrorKind::memory_limit, {"3 stacks", "smaller"}, [&] {
    finegrain::run(3, nothing, {0, Index{1} << 50});
  });
  expect_error(ErrorKind::argument, {"rank 1: there is no rank 2; the world has 2"},
               both(nothing, [](Rank& me) { me.send(2, 0, {}); }));
  expect_error(ErrorKind::argument, {"there is no rank -1"}, both([](Rank& me) { me.receive(-1, 0, {}); }, nothing));
  expect_error(ErrorKind::argument, {"there is no rank 5 to gather at"},
               both([](Rank& me) { me.gather(5, {}, {}); }, nothing));
  expect_error(ErrorKind::argument, {"tag -1 is negative"}, both(nothing, [](Rank& me) { me.send(0, -1, {}); }));
  const std::vector<std::byte> eight(8);
  for (const bool early : {true, false})
    expect_error(ErrorKind::shape, {"rank 1 receives 8 bytes of rank 0 (tag 3), which has sent 0"},
                 both(
                     [&](Rank& me) {
                       if (!early) me.yield();
                       me.send(1, 3, {});
                     },
                     [](Rank& me) { receive(me, 0, 3); }));
  expect_error(ErrorKind::disagreement,
               {"rank 0 has returned without receiving a message of rank 1 (tag 4, 8 bytes)", "and 1 more"},
               both(nothing, [&](Rank& me) { me.send(0, 4, eight), me.send(0, 4, {}); }));
  expect_error(ErrorKind::disagreement, {"rank 1: this rank has called gather() where rank 0 has called barrier()"},
               both([](Rank& me) { me.barrier(); }, [](Rank& me) { me.gather(0, {}, {}); }));
  expect_error(ErrorKind::disagreement, {"rank 1 gathers at rank 1, rank 0 at rank 0"},
               both([](Rank& me) { me.gather(0, {}, {}); }, [](Rank& me) { me.gather(1, {}, {}); }));
  expect_error(ErrorKind::disagreement, {"rank 1 brings 8 bytes to gather(), rank 0 0"},
               both([](Rank& me) { me.gather(0, {}, {}); }, [&](Rank& me) { me.gather(0, eight, {}); }));
  expect_error(ErrorKind::shape, {"rank 1 gathers 16 bytes into 0"},
               both([&](Rank& me) { me.gather(1, eight, {}); }, [&](Rank& me) { me.gather(1, eight, {}); }));
  // Whoever differs is named, and nothing has been written.
  std::array<std::byte, 24> room{};
  const std::vector<std::byte> ones(8, std::byte(1));
  expect_error(ErrorKind::disagreement, {"rank 2 brings 4 bytes to gather(), rank 0 8"}, [&] {
    finegrain::run(3, [&](Rank& me) { me.gather(2, std::span(ones).first(me.rank() == 2 ? 4 : 8), room); });
  });
  expect_error(ErrorKind::disagreement, {"rank 2 brings 4 bytes to all_gather(), rank 0 8"}, [&] {
    finegrain::run(3, [&](Rank& me) { me.all_gather(std::span(ones).first(me.rank() == 2 ? 4 : 8), room); });
  });
  EXPECT_EQ(std::count(room.begin(), room.end(), std::byte{}), 24);
  expect_error(ErrorKind::shape, {"rank 1 gathers 16 bytes into 24"},
               both([&](Rank& me) { me.all_gather(eight, std::span(room).first(16)); },
                    [&](Rank& me) { me.all_gather(eight, room); }));
  expect_error(ErrorKind::disagreement, {"rank 1 brings 0 bytes to broadcast(), rank 0 24"},
               both([&](Rank& me) { me.broadcast(0, room); }, [&](Rank& me) { me.broadcast(0, {}); }));
  expect_error(ErrorKind::disagreement, {"rank 1 expects the message of rank 1, rank 0 that of rank 0"},
               both([&](Rank& me) { me.broadcast(0, room); }, [&](Rank& me) { me.broadcast(1, room); }));
  expect_error(ErrorKind::argument, {"-1 idle turns"}, [&] { finegrain::run(1, nothing, {.idle_turns = -1}); });
  auto reduce = [](ReduceOp op, Index numbers) {
    return [=](Rank& me) {
      std::vector<std::byte> memory(std::size_t(8 * numbers));
      me.all_reduce(memory, Reduction(ElementType::int64, op));
    };
  };
  expect_error(ErrorKind::disagreement, {"rank 1 reduces otherwise"},
               both(reduce(ReduceOp::add, 1), reduce(ReduceOp::maximum, 1)));
  expect_error(ErrorKind::disagreement, {"rank 1 brings 16 bytes to all_reduce(), rank 0 8"},
               both(reduce(ReduceOp::add, 1), reduce(ReduceOp::add, 2)));
  expect_error(ErrorKind::argument, {"all_reduce() of 0 bytes needs an operation"},
               both([](Rank& me) { me.all_reduce({}, Reduction()); }, nothing));

  // An error of a collective is everybody's, and the world goes on if everybody bears it.
  Index caught = 0;
  finegrain::run(5, [&](Rank& me) {
    expect_error(ErrorKind::disagreement, {"rank 3 brings"}, [&] {
      me.gather(0, {eight.data(), me.rank() == 3 ? 4u : 0u}, {});
    });
    ++caught;
    me.barrier();
  });
  EXPECT_EQ(caught, 5);

  Rank* first = nullptr;
  expect_error(ErrorKind::argument, {"rank 1: rank 0's part of a world is used by rank 1"},
               both(
                   [&](Rank& me) {
                     first = &me;
                     me.barrier();
                   },
                   [&](Rank&) { first->yield(); }));
}

TEST_F(FinegrainWorld, catches_stacks_that_overflow) {
  struct Deep {
    /// Writes to so many bytes of stack, and a little more.
    static int down(std::ptrdiff_t bytes, volatile const char* top) {
      volatile char frame[256];
      for (auto& byte : frame) byte = 1;
      return top - frame > bytes ? 0 : down(bytes, top) + frame[0];
    }
  };
  // Rank 1, whose stack lies above that of rank 0, goes a little
  // too far; or far over a page at once, as kernels' frames might.
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  for (const std::uintptr_t too_far : {2 << 10, 40 << 10})
    EXPECT_DEATH(finegrain::run(2,
                                [&](Rank& me) {
                                  volatile char top = 0;
                                  if (me.rank() == 0) return me.receive(1, 0, {});
                                  const auto below = reinterpret_cast<std::uintptr_t>(&top) - (64 << 10) - too_far;
                                  *reinterpret_cast<volatile char*>(below) = 1;
                                  me.send(0, 0, {});
                                }),
                 "");
#if !defined(__SANITIZE_ADDRESS__)  // would not let it
  finegrain::Fibers* fibers = nullptr;
  std::ptrdiff_t depth = 8 << 10;
  finegrain::Fibers unguarded(
      2, 16 << 10,
      [&] {
        volatile char top = 0;
        Deep::down(depth, &top);
        fibers->suspend();
      },
      false);
  fibers = &unguarded;
  const auto below = unguarded.add(), above = unguarded.add();
  EXPECT_TRUE(unguarded.resume(below));
  depth = 17 << 10;
  EXPECT_TRUE(unguarded.resume(above));
  EXPECT_TRUE(unguarded.intact(below));
  EXPECT_FALSE(unguarded.intact(above));
  EXPECT_FALSE(unguarded.resume(below));
  EXPECT_FALSE(unguarded.resume(above));
#endif
}

TEST_F(FinegrainDeadlock, says_who_waits_for_whom) {
  expect_error(ErrorKind::deadlock,
               {"2 of 2 ranks wait", "rank 0 waits for a message of rank 1 (tag 7)",
                "rank 1 waits for a message of rank 0 (tag 3)"},
               [] { finegrain::run(2, [](Rank& me) { me.receive(1 - me.rank(), me.rank() ? 3 : 7, {}); }); });
  // A chain, whose end has gone: 1 waits for 2, 2 for 3, 3 for 0.
  expect_error(ErrorKind::deadlock,
               {"3 of 4 ranks wait",
                "rank 1 waits for a message of rank 2 (tag 1)\n  rank 2 waits for a message of rank 3 (tag 2)\n  rank "
                "3 waits for a message of rank 0 (tag 3)\n  rank 0 has returned"},
               [] {
                 finegrain::run(4, [](Rank& me) {
                   if (me.rank() > 0) me.receive((me.rank() + 1) % 4, me.rank(), {});
                 });
               });
  // A circle that others wait for: only the circle is shown.
  try {
    finegrain::run(5, [](Rank& me) { me.receive(me.rank() < 3 ? me.rank() + 1 : 7 - me.rank(), 0, {}); });
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "deadlock: 5 of 5 ranks wait and none can go on\n  rank 3 waits for a message of rank 4 (tag 0)\n  "
                 "rank 4 waits for a message of rank 3 (tag 0)");
  }
  for (const Index ranks : world_sizes())
    if (ranks > 100)
      expect_error(ErrorKind::deadlock,
                   {"\n  rank 2 waits for a message of rank 3", std::to_string(ranks - 5) + " more ranks wait",
                    "\n  rank " + std::to_string(ranks - 1) + " waits for a message of rank 0"},
                   [=] { finegrain::run(ranks, [=](Rank& me) { me.receive((me.rank() + 1) % ranks, 0, {}); }, {1}); });
  expect_error(ErrorKind::deadlock, {"rank 1 waits for a message of rank 1 (tag 2)"},
               [] { finegrain::run(2, [](Rank& me) { me.rank() == 1 ? me.receive(1, 2, {}) : me.barrier(); }); });
}

TEST_F(FinegrainDeadlock, turns_that_are_given_away_count_where_asked_to) {
  // Everybody gives away nearly as many turns as are allowed, over and over; then nothing happens any more.
  for (const std::uint64_t seed : {0, 1}) {
    Index rounds = 0;
    expect_error(ErrorKind::deadlock,
                 {"5 of 5 ranks ask or yield, and in 10 turns of each", " has its turns, but comes no further"}, [&] {
                   finegrain::run(5,
                                  [&](Rank& me) {
                                    for (int k = 0; k < 40; ++k) {
                                      for (int turn = 0; turn < 9; ++turn) me.yield();
                                      me.send(me.rank(), 0, {}), me.receive(me.rank(), 0, {}), ++rounds;
                                    }
                                    me.barrier();
                                    for (;;) me.yield();
                                  },
                                  {.seed = seed, .idle_turns = 10});
                 });
    EXPECT_EQ(rounds, 5 * 40);
  }
  EXPECT_EQ(finegrain::run(3,
                           [](Rank& me) {
                             for (int k = 0; k < 1000; ++k) me.yield();
                           })
                .switches,
            3003);
}

TEST_F(FinegrainDeadlock, names_those_who_miss_a_collective) {
  expect_error(ErrorKind::deadlock, {"rank 0 waits in barrier() for rank 2\n  rank 2 has returned"}, [] {
    finegrain::run(4, [](Rank& me) {
      if (me.rank() != 2) me.barrier();
    });
  });
  expect_error(ErrorKind::deadlock,
               {"rank 0 waits in gather() for rank 1 and 1 more\n  rank 1 waits for a message of rank 0 (tag 9)"}, [] {
                 finegrain::run(4, [](Rank& me) {
                   if (me.rank() % 2)
                     me.receive(0, 9, {});
                   else
                     me.gather(0, {}, {});
                 });
               });
}

}  // namespace
}  // namespace longshore::test

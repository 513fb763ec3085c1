// The threads engine: what it refuses, and how it behaves when started, polled and waited for. That it moves right is a
// property (tests/properties/movers_test.cpp).
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <future>
#include <numeric>
#include <thread>

#include "engines/threads/tasks_mover.hpp"
#include "longshore/movers/mover.hpp"
#include "support/arrays.hpp"
#include "support/expect_error.hpp"

namespace longshore::test {
namespace {

using Shape = std::vector<Index>;

MotionPlan plan(const char* source, const char* destination, Shape shape, Index element_bytes = 8) {
  return MotionPlan(Layout::parse(source, shape), Layout::parse(destination, shape), element_bytes);
}

/// A plan with memory for both of its sides, numbered and cleared.
struct Bound {
  MotionPlan plan;
  Arrays source, destination;

  explicit Bound(MotionPlan given)
      : plan(std::move(given)),
        source(plan.source(), plan.element_bytes()),
        destination(plan.destination(), plan.element_bytes()) {
    for (auto& part : source.memory)
      for (std::size_t i = 0; i < part.size(); ++i)
        part[i] = element_byte(Index(i), Index(&part - source.memory.data()));
  }
  std::unique_ptr<Mover> mover(const MoveOptions& options = {}) {
    return bind_threads(plan, source.local(), destination.local(), options);
  }
  std::vector<Bytes> expected() const {
    auto result = destination.memory;
    for (Index rank = 0; rank < plan.world_size(); ++rank)
      plan.for_each_send(rank, [&](const Motion& motion) {
        plan.relation(motion).move_plain(result[std::size_t(*plan.destination().process_of(motion.destination))].data(),
                                         source.memory[std::size_t(*plan.source().process_of(motion.source))].data());
      });
    return result;
  }
};

Bound small() { return Bound(plan("(BLOCK, *) on 4", "(*, BLOCK) on 3", {13, 17})); }
Bound large() {
  return Bound(plan("(BLOCK, *) on 4", "(CYCLIC(8), CYCLIC(8)) on 2x2", {512, 512}));
}  // 2 MiB: threads help

TEST(Threads, moves_again_and_again) {
  for (auto make : {small, large}) {
    auto bound = make();
    const auto expected = bound.expected();
    const auto mover = bound.mover();
    for (int round = 0; round < 3; ++round) {
      bound.destination.clear();
      mover->start();
      mover->wait();
      EXPECT_EQ(bound.destination.memory, expected);
    }
  }
}

TEST(Threads, polling_completes_a_move) {
  for (const int threads : {1, 2, 5}) {
    auto bound = large();
    const auto expected = bound.expected();
    MoveOptions options;
    options.threads = threads;
    const auto mover = bound.mover(options);
    mover->start();
    while (!mover->test()) std::this_thread::yield();
    EXPECT_TRUE(mover->test());
    EXPECT_EQ(bound.destination.memory, expected) << threads;
    mover->start();  // the last one is complete
    mover->wait();
    mover->move();
    EXPECT_EQ(bound.destination.memory, expected) << threads;
  }
}

TEST(Threads, two_movers_in_flight) {
  auto one = large(), other = large();
  const auto a = one.mover(), b = other.mover();
  a->start();
  b->start();
  b->wait();
  a->wait();
  EXPECT_EQ(one.destination.memory, one.expected());
  EXPECT_EQ(other.destination.memory, other.expected());
}

TEST(Threads, two_movers_are_used_by_two_threads_at_once) {
  auto again = [] {
    auto bound = large();
    const auto expected = bound.expected();
    MoveOptions options;
    options.threads = 3;
    const auto mover = bound.mover(options);
    for (int round = 0; round < 5; ++round) {
      bound.destination.clear();
      mover->move();
      if (bound.destination.memory != expected) return false;
    }
    return true;
  };
  auto other = std::async(std::launch::async, again);
  EXPECT_TRUE(again());
  EXPECT_TRUE(other.get());
}

TEST(Threads, the_child_of_a_fork_moves_by_itself) {
  auto bound = large();
  const auto expected = bound.expected();
  MoveOptions options;
  options.threads = 3;
  const auto mover = bound.mover(options);
  mover->move();
  bound.destination.clear();
  const pid_t child = fork();
  if (child == 0) {
    mover->move();
    _exit(bound.destination.memory == expected ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  mover->move();
  EXPECT_EQ(bound.destination.memory, expected);
}

// On two nodes of memory, which are told of and not had.
TEST(Threads, tasks_of_several_nodes_move_all_the_same) {
  for (const int node : {0, 1, -1}) {
    auto bound = large();
    const auto expected = bound.expected();
    const MemoryNodes nodes{2, [] { return int(std::hash<std::thread::id>()(std::this_thread::get_id()) % 2); },
                            [node](std::span<const std::byte* const> addresses) {
                              std::vector<int> where(addresses.size(), node);
                              for (std::size_t k = 0; k < where.size(); k += 3) where[k] = 0;
                              return where;
                            }};
    std::vector<VisiblePart> from, to;
    for (const auto rank : {0, 1, 2, 3}) {
      from.push_back({rank, bound.source.memory[std::size_t(rank)].data()});
      to.push_back({rank, bound.destination.memory[std::size_t(rank)].data()});
    }
    StagesOfTasks stages(1);
    stages[0].push_back(copy_tasks(bound.plan, from, to, Direction::pull, {{}, 1 << 17}));
    MoveOptions options;
    options.threads = 3;
    const auto mover = make_tasks_mover(std::move(stages), options.threads, options, {}, 0, nodes);
    for (int round = 0; round < 3; ++round) {
      bound.destination.clear();
      mover->move();
      EXPECT_EQ(bound.destination.memory, expected) << node;
    }
  }
}

TEST(Threads, a_mover_may_change_threads_between_uses) {
  auto bound = large();
  const auto mover = bound.mover();
  std::thread([&] { mover->start(); }).join();
  std::thread([&] { mover->wait(); }).join();
  EXPECT_EQ(bound.destination.memory, bound.expected());
}

TEST(Threads, a_mover_that_is_dropped_in_flight_finishes) {
  auto bound = large();
  bound.mover()->start();
  EXPECT_EQ(bound.destination.memory, bound.expected());
}

TEST(Threads, many_short_rounds) {
  auto bound = large();
  MoveOptions options;
  options.threads = 4;
  const auto mover = bound.mover(options);
  for (int round = 0; round < 50; ++round) mover->start(), mover->wait();
  EXPECT_EQ(bound.destination.memory, bound.expected());
}

TEST(Threads, that_write_to_the_same_lines_write_what_one_does) {
  Bound bound(plan("(*, CYCLIC) on 8", "(BLOCK, *) on 8", {3200, 48}));
  for (const int threads : {1, 2, 3}) {
    MoveOptions options;
    options.threads = threads;
    const auto mover = bound.mover(options);
    for (int round = 0; round < 3; ++round) {
      bound.destination.clear();
      mover->start(), mover->wait();
      EXPECT_EQ(bound.destination.memory, bound.expected());
    }
  }
}

TEST(Threads, says_what_it_does) {
  auto bound = small();
  const auto mover = bound.mover();
  EXPECT_EQ(mover->moved_bytes(), 13 * 17 * 8);
  EXPECT_GT(mover->workspace_bytes(), 0);
  EXPECT_NE(mover->describe().find("threads engine, 1 threads, 12 tasks"), std::string::npos) << mover->describe();
}

TEST(Threads, replicas_each_receive_their_copy) {
  Bound bound(plan("(BLOCK, *) on 2", "(*, *) on REPLICATED(3)", {4, 6}));
  const auto mover = bound.mover();
  EXPECT_EQ(mover->moved_bytes(), 3 * 4 * 6 * 8);
  mover->start(), mover->wait();
  EXPECT_EQ(bound.destination.memory, bound.expected());
}

TEST(Threads, an_empty_array_needs_no_memory) {
  Bound bound(plan("(BLOCK, *) on 4", "(*, BLOCK) on 3", {0, 17}));
  const auto mover = bound.mover();
  mover->start(), mover->wait();
  EXPECT_EQ(mover->moved_bytes(), 0);
}

TEST(Threads, refuses_calls_out_of_order) {
  auto bound = small();
  const auto mover = bound.mover();
  expect_error(ErrorKind::argument, {"wait() without start()"}, [&] { mover->wait(); });
  expect_error(ErrorKind::argument, {"test() without start()"}, [&] { mover->test(); });
  mover->start();
  expect_error(ErrorKind::argument, {"started already"}, [&] { mover->start(); });
  expect_error(ErrorKind::argument, {"started already"}, [&] { mover->move(); });
  mover->wait();
}

TEST(Threads, refuses_options_outside_their_range) {
  auto bound = small();
  MoveOptions options;
  options.threads = -1;
  expect_error(ErrorKind::argument, {"threads is -1"}, [&] { bound.mover(options); });
  options = {};
  options.max_mem = -1;
  expect_error(ErrorKind::argument, {"max_mem is -1"}, [&] { bound.mover(options); });
  options.max_mem = 1;
  expect_error(ErrorKind::memory_limit, {"max_mem allows 1", "needs"}, [&] { bound.mover(options); });
  options.max_mem = bound.mover()->workspace_bytes();
  EXPECT_NO_THROW(bound.mover(options));
}

/// Binds after breaking something.
void refused(
    ErrorKind kind, const std::vector<std::string>& words,
    const std::function<void(std::vector<LocalArray>& sources, std::vector<LocalArray>& destinations)>& breaking) {
  auto bound = small();
  auto sources = bound.source.local(), destinations = bound.destination.local();
  breaking(sources, destinations);
  expect_error(kind, words, [&] { bind_threads(bound.plan, sources, destinations); });
  for (const auto& part : bound.destination.memory) EXPECT_EQ(part, Bytes(part.size(), untouched));
}

TEST(Threads, refuses_arrays_that_are_not_the_layouts) {
  refused(ErrorKind::argument, {"3 source arrays", "has 4 ranks"}, [](auto& s, auto&) { s.pop_back(); });
  refused(ErrorKind::argument, {"4 destination arrays", "has 3 ranks"}, [](auto&, auto& d) { d.push_back(d[0]); });
  refused(ErrorKind::shape, {"rank 2", "source", "(4, 16)", "(4, 17)", "dimension 1 has 16 instead of 17"},
          [](auto& s, auto&) {
            s[2].shape = {4, 16};
          });
  refused(ErrorKind::shape, {"rank 0", "source", "(68,)"}, [](auto& s, auto&) { s[0].shape = {68}; });
  refused(ErrorKind::buffer, {"rank 1", "destination", "stride of 8", "dimension 0", "wants 48"}, [](auto&, auto& d) {
    d[1].strides = {8, 8};
  });
  refused(ErrorKind::buffer, {"rank 1", "1 strides for 2"}, [](auto&, auto& d) { d[1].strides = {8}; });
  refused(ErrorKind::buffer, {"rank 2", "destination", "read-only"}, [](auto&, auto& d) { d[2].read_only = true; });
  refused(ErrorKind::buffer, {"rank 2", "no memory"}, [](auto&, auto& d) { d[2].data = nullptr; });
}

TEST(Threads, refuses_memory_that_overlaps) {
  refused(ErrorKind::buffer, {"source array of rank 3", "destination array of rank 1", "share memory"},
          [](auto& s, auto& d) { d[1].data = s[3].data; });
  refused(ErrorKind::buffer, {"destination array of rank 0", "destination array of rank 1"},
          [](auto&, auto& d) { d[1].data = d[0].data; });
  refused(ErrorKind::buffer, {"share memory"}, [](auto& s, auto& d) { d[0].data = s[0].data + 500; });
}

TEST(Threads, sources_may_be_read_only_and_share) {
  Bound bound(plan("(*, *) on REPLICATED(2)", "(BLOCK, *) on 2", {4, 6}));
  bound.source.memory[1] = bound.source.memory[0];
  const auto expected = bound.expected();
  auto sources = bound.source.local();
  sources[0].read_only = sources[1].read_only = true;
  sources[1].data = sources[0].data;
  const auto mover = bind_threads(bound.plan, sources, bound.destination.local());
  mover->start(), mover->wait();
  EXPECT_EQ(bound.destination.memory, expected);
}

}  // namespace
}  // namespace longshore::test

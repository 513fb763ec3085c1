// Tasks that several threads take, each once, and the threads that help with them. A machine with several nodes of
// memory is told of, not had.
#include "movers/helpers.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <future>

#include "movers/task_queue.hpp"

namespace longshore::test {
namespace {

const std::vector<std::size_t> counts = {0, 1, 2, 3, 5, 7, 31, 97, 211};

/// Threads with odd numbers are on the second node, the others on the first.
thread_local int node_here = 0;
MemoryNodes two_nodes(std::vector<int> where = {}) {
  return {2, [] { return node_here; }, [where](std::span<const std::byte* const>) { return where; }};
}

/// How often each task has been run, by a queue's owner and helpers, round after round; of stages that end at `ends`
/// each begins when all before are done.
struct Rounds {
  std::vector<std::size_t> ends;
  MemoryNodes memory;
  TaskQueue queue;
  std::vector<std::atomic<int>> runs;
  std::atomic<std::size_t> open = 0, left = 0;
  std::atomic<int> early = 0;
  Helpers helpers{[this] { return run_one(); }};

  Rounds(std::size_t tasks, std::vector<std::size_t> stages, int helping, bool nodes = false)
      : ends(std::move(stages)),
        memory(nodes ? two_nodes() : MemoryNodes()),
        queue(nodes_of_tasks(tasks, nodes), memory),
        runs(tasks) {
    helpers.start(helping);
  }
  static std::vector<int> nodes_of_tasks(std::size_t tasks, bool nodes) {
    std::vector<int> result(tasks);
    for (std::size_t task = 0; nodes && task < tasks; ++task) result[task] = task % 3 == 0;
    return result;
  }
  bool run_one() {
    const auto task = queue.take();
    if (!task) return false;
    if (*task >= open) ++early;
    ++runs[*task];
    queue.complete(*task);
    --left;
    helpers.tell();
    return true;
  }
  void round() {
    queue.restart();
    std::size_t first = 0;
    for (const std::size_t end : ends) {
      left = end - first, open = end;
      for (; first < end; ++first) queue.add(first);
      helpers.call();
      while (run_one()) {
      }
      EXPECT_TRUE(helpers.wait([this] { return left == 0; }));
    }
  }
};

TEST(TaskQueue, each_task_is_run_once_a_round) {
  for (const std::size_t tasks : counts)
    for (const int helping : {0, 1, 3})
      for (const bool nodes : {false, true})
        for (const bool staged : {false, true}) {
          std::vector<std::size_t> ends;
          for (std::size_t end = 1; staged && end < tasks; end = 2 * end + 1) ends.push_back(end);
          ends.push_back(tasks);
          Rounds rounds(tasks, ends, helping, nodes);
          for (int round = 1; round <= 5; ++round) {
            rounds.round();
            for (const auto& runs : rounds.runs) ASSERT_EQ(runs, round) << tasks << " tasks, " << helping << " helpers";
          }
          EXPECT_EQ(rounds.early, 0);
        }
}

TEST(TaskQueue, threads_take_what_their_own_node_has_first) {
  const auto memory = two_nodes();
  const std::vector<int> nodes = {1, 0, 1, 0, 0};
  TaskQueue queue(nodes, memory);
  for (int round = 0; round < 2; ++round) {
    queue.restart();
    for (std::size_t task = 0; task < nodes.size(); ++task) queue.add(task);
    std::vector<std::size_t> order;
    for (const int node : {1, 0, 1, 1, 1}) {
      node_here = node;
      order.push_back(*queue.take());
      queue.complete(order.back());
    }
    EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
    EXPECT_FALSE(queue.take());
  }
  node_here = 0;
}

TEST(TaskQueue, closed_nothing_is_taken_and_what_was_is_awaited) {
  const MemoryNodes memory;
  TaskQueue queue({0, 0}, memory);
  queue.close();
  queue.restart();
  queue.add(0), queue.add(1);
  const auto task = queue.take();
  auto closing = std::async(std::launch::async, [&] { queue.close(); });
  EXPECT_EQ(closing.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  queue.complete(*task);
  closing.get();
  EXPECT_FALSE(queue.take());
  EXPECT_FALSE(queue.any());
  queue.restart();
  queue.add(1);
  EXPECT_EQ(queue.take(), 1u);
}

TEST(TaskQueue, what_nobody_has_touched_is_dealt_out_by_bytes) {
  std::vector<CopyTask> tasks;
  for (const Index bytes : {60, 10, 10, 20, 5, 100}) {
    CopyTask task{CopyTask::Single{}};
    task.bytes = bytes;
    tasks.push_back(std::move(task));
  }
  std::vector<const CopyTask*> all;
  for (const auto& task : tasks) all.push_back(&task);
  EXPECT_EQ(nodes_of(all, MemoryNodes()), (std::vector<int>{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(nodes_of(all, two_nodes({1, 0, 1, 0, 0, 1})), (std::vector<int>{1, 0, 1, 0, 0, 1}));
  // Unknown are 60, 10 and 20 bytes, and 7 is no node.
  EXPECT_EQ(nodes_of(all, two_nodes({-1, -1, 1, 7, 0, 1})), (std::vector<int>{0, 1, 1, 1, 0, 1}));
}

TEST(MemoryNodes, this_machine_tells_of_its_own) {
  const auto& nodes = memory_nodes();
  ASSERT_GE(nodes.count, 1);
  EXPECT_LT(nodes.here(), nodes.count);
  const std::vector<std::byte> touched(1 << 16, std::byte{1});
  const std::vector<const std::byte*> addresses = {touched.data(), touched.data() + touched.size() / 2};
  const auto of = nodes.of(addresses);
  ASSERT_EQ(of.size(), 2u);
  for (const int node : of) EXPECT_LT(node, nodes.count);  // less than 0 where the system does not tell
}

TEST(Helpers, come_again_when_they_have_gone_to_sleep) {
  std::atomic<int> offered = 0, taken = 0;
  const auto owner = std::this_thread::get_id();
  Helpers helpers([&] {
    EXPECT_NE(std::this_thread::get_id(), owner);
    int n = offered;
    while (n > 0 && !offered.compare_exchange_weak(n, n - 1)) {
    }
    if (n > 0) ++taken, helpers.tell();
    return n > 0;
  });
  helpers.start(2);
  for (int round = 1; round <= 20; ++round) {
    std::this_thread::sleep_for(std::chrono::microseconds(round % 2 == 0 ? 0 : 500));
    offered = 3;
    helpers.call();
    ASSERT_TRUE(helpers.wait([&] { return taken == 3 * round; }));
  }
}

TEST(Helpers, an_idle_process_takes_no_time) {
  Helpers helpers([] { return false; });
  helpers.start(3);
  auto used = [] {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  helpers.call();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // sanitizers are slow
  const auto before = used();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LT(used() - before, std::chrono::milliseconds(5));
}

/// They may be sent away at any moment of theirs; more threads than processors, so that they are interrupted anywhere.
TEST(Helpers, are_gone_whenever_their_owner_goes) {
  std::vector<std::future<void>> owners;
  for (int owner = 0; owner < 4; ++owner)
    owners.push_back(std::async(std::launch::async, [owner] {
      for (int i = 0; i < 5000; ++i) {
        Helpers helpers([] { return false; });
        helpers.start(1);
        helpers.call();
        for (int moments = (i * 7919 + owner * 97) % 1500; moments > 0; --moments) relax();
      }
    }));
  for (auto& owner : owners) owner.get();
}

TEST(Helpers, the_child_of_a_fork_has_none) {
  auto here = std::make_unique<Rounds>(31, std::vector<std::size_t>{5, 31}, 2);
  auto& rounds = *here;
  rounds.round();
  const pid_t child = fork();
  if (child == 0) {
    bool good = rounds.helpers.gone();
    rounds.round();  // by the caller alone
    for (const auto& runs : rounds.runs) good &= runs == 2;
    good &= !rounds.helpers.wait([] { return false; });
    here.reset();  // joins nobody
    _exit(good ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  rounds.round();
  for (const auto& runs : rounds.runs) EXPECT_EQ(runs, 2);
}

}  // namespace
}  // namespace longshore::test

// Which motions go together, and that together they move what each would alone.
#include "longshore/movers/local_moves.hpp"

#include <algorithm>
#include <numeric>

#include "support/arrays.hpp"
#include "support/expect_error.hpp"
#include "support/quick.hpp"

namespace longshore::test {
namespace {

using Shape = std::vector<Index>;

MotionPlan plan(const std::string& source, const std::string& destination, Shape shape, Index element_bytes = 8) {
  return MotionPlan(Layout::parse(source, shape), Layout::parse(destination, shape), element_bytes);
}

TEST(Direction, follows_the_side_whose_cache_lines_are_shared) {
  EXPECT_EQ(preferred_direction(plan("(*, CYCLIC) on 4", "(*, BLOCK) on 4", {64, 4096})), Direction::pull);
  EXPECT_EQ(preferred_direction(plan("(*, BLOCK) on 4", "(*, CYCLIC) on 4", {64, 4096})), Direction::push);
  EXPECT_EQ(preferred_direction(plan("(BLOCK, *) on 4", "(*, BLOCK) on 4", {64, 4096})), Direction::pull);
}

/// Runs the tasks between these processes and the motions one by one, and compares.
void expect_tasks_deliver(const MotionPlan& p, const std::vector<Index>& senders, Index task_bytes = INT64_MAX) {
  Arrays source(p.source(), p.element_bytes()), destination(p.destination(), p.element_bytes());
  std::vector<VisiblePart> from, to;
  for (const Index s : senders) {
    auto& part = source.memory[std::size_t(s)];
    for (std::size_t i = 0; i < part.size(); ++i) part[i] = element_byte(Index(i), s);
    from.push_back({source.rank(s), part.data()});
  }
  for (Index d = 0; d < p.destination().processes(); ++d)
    to.push_back({destination.rank(d), destination.memory[std::size_t(d)].data()});
  for (const auto& sender : from)
    for (const auto& motion : p.sends(sender.rank))
      p.relation(motion).move_plain(to[std::size_t(*p.destination().process_of(motion.destination))].data, sender.data);
  const auto expected = destination.memory;
  const auto all = available_kernels();
  for (const auto* table : quick() ? std::vector{all.front(), all.back()} : all)
    for (const auto& [far, stores] : {std::pair{far_bytes, Stores::cached}, std::pair{Index{0}, Stores::streaming},
                                      std::pair{Index{0}, Stores::packing}}) {
      destination.clear();
      const CopyTaskOptions options{{}, task_bytes, far, stores, table};
      for (const auto& task : copy_tasks(p, from, to, preferred_direction(p), options)) task.run();
      EXPECT_TRUE(destination.memory == expected) << p.to_string() << ", " << table->name << " kernels";
    }
}

TEST(CopyTasks, interleaved_parts_go_together) {
  const auto p = plan("(*, CYCLIC) on 4", "(*, BLOCK) on 2", {8, 4096});
  Arrays source(p.source(), 8), destination(p.destination(), 8);
  std::vector<VisiblePart> from, to;
  for (Index s = 0; s < 4; ++s) from.push_back({s, source.memory[std::size_t(s)].data()});
  for (Index d = 0; d < 2; ++d) to.push_back({d, destination.memory[std::size_t(d)].data()});
  CopyTaskOptions options;
  EXPECT_EQ(copy_tasks(p, from, to, Direction::pull, options).size(), 8u) << "parts that fit in cache";
  const auto larger = plan("(*, CYCLIC) on 4", "(*, BLOCK) on 2", {16, 4096});
  EXPECT_EQ(copy_tasks(larger, from, to, Direction::pull, options).size(), 2u);
  options.far = 1000, options.stores = Stores::streaming;
  options.table = &plain_kernels();
  const auto together = copy_tasks(p, from, to, Direction::pull, options);
  ASSERT_EQ(together.size(), 2u);
  EXPECT_EQ(std::get<CopyTask::Joint>(together[0].work).members.size(), 4u);
  EXPECT_EQ(together[0].written(), to[0].data);
  EXPECT_EQ(together[0].describe(), "4 parts together along a destination row, merged line by line, streaming");
  EXPECT_EQ(copy_tasks(p, from, to, Direction::push, options).size(), 8u);
  options.task_bytes = 32 * 1024;
  EXPECT_GE(copy_tasks(p, from, to, Direction::pull, options).size(), 8u);
}

TEST(CopyTasks, far_parts_are_written_as_the_profile_says) {
  KernelTable table = plain_kernels();
  table.profile.cached_bytes = Index{8} << 20;
  const auto stores = [&](const char* source, const char* destination, Index rows) {
    return stores_of_far_parts(plan(source, destination, {rows, 1024}), &table);
  };
  EXPECT_EQ(stores("(BLOCK, *) on 2", "(*, BLOCK) on 2", 1024), Stores::packing);
  EXPECT_EQ(stores("(BLOCK, *) on 2", "(*, BLOCK) on 2", 1025), Stores::streaming);
  EXPECT_EQ(stores("(BLOCK, *) on 2", "(BLOCK, *) on 2, order=F", 1024), Stores::streaming) << "turned";
  EXPECT_EQ(stores("(*, CYCLIC) on 2", "(*, BLOCK) on 2", 1024), Stores::streaming) << "put together line by line";
  EXPECT_EQ(stores("(BLOCK, *) on 2", "(*, *) on REPLICATED(2)", 1024), Stores::streaming) << "two of it";
  const auto p = plan("(BLOCK, *) on 2", "(*, BLOCK) on 2", {1024, 1024});
  Arrays source(p.source(), 8), destination(p.destination(), 8);
  CopyTaskOptions options;
  options.table = &table;
  for (const bool cached : {true, false}) {
    for (const auto& task :
         copy_tasks(p, {{0, source.memory[0].data()}}, {{1, destination.memory[1].data()}}, Direction::pull, options))
      EXPECT_EQ(task.describe().find("streaming") == std::string::npos, cached) << task.describe();
    table.profile.cached_bytes = 0;
  }
}

TEST(CopyTasks, are_spread_out_for_threads) {
  const auto p = plan("(*, CYCLIC(2)) on 4", "(BLOCK, *) on 4", {400, 8});
  Arrays source(p.source(), 8), destination(p.destination(), 8);
  std::vector<VisiblePart> from, to;
  for (Index r = 0; r < 4; ++r) {
    from.push_back({r, source.memory[std::size_t(r)].data()});
    to.push_back({r, destination.memory[std::size_t(r)].data()});
  }
  for (const int threads : {1, 2, 3, 100}) {
    auto tasks = copy_tasks(p, from, to, preferred_direction(p));
    ASSERT_EQ(tasks.size(), 16u);
    spread_out(tasks, threads);
    ASSERT_EQ(tasks.size(), 16u);
    std::vector<const std::byte*> written;
    for (const auto& task : tasks) written.push_back(task.written());
    auto part_of = [&](std::size_t k) {
      return std::count_if(to.begin(), to.end(), [&](const auto& part) { return part.data <= written[k]; });
    };
    std::sort(to.begin(), to.end(), [](const auto& a, const auto& b) { return a.data < b.data; });
    if (threads == 2) {  // who take one after the other never write to one part at the same time
      for (std::size_t k = 0; k + 1 < 16; ++k) EXPECT_NE(part_of(k), part_of(k + 1)) << k;
    }
    std::sort(written.begin(), written.end());
    EXPECT_EQ(std::unique(written.begin(), written.end()), written.end()) << "each task is there once";
  }
  std::vector<CopyTask> none;
  spread_out(none, 2);
  EXPECT_TRUE(none.empty());
}

TEST(CopyTasks, long_rows_of_few_and_of_many_periods) {
  for (const char* source : {"(*, CYCLIC) on 3", "(*, CYCLIC(5)) on 4", "(*, CYCLIC(7)) on 2, origin=0x3",
                             "(*, CYCLIC(12)) on 2, origin=0x29"})
    for (const char* destination :
         {"(*, BLOCK) on 2", "(*, *) on 1", "(*, CYCLIC(104)) on 2", "(*, CYCLIC(64)) on 3, source=1"})
      for (const Index task_bytes : {INT64_MAX, Index{10000}}) {
        const Index row = quick() ? 1501 : 9001;
        expect_tasks_deliver(plan(source, destination, {3, row}), {0, 1}, task_bytes);
        expect_tasks_deliver(plan(destination, source, {3, row}), {0}, task_bytes);
        expect_tasks_deliver(plan(source, destination, {2, quick() ? 220 : 700}, 1024), {0, 1}, task_bytes);
      }
}

TEST(CopyTasks, lines_are_merged_wherever_rows_begin) {
  for (const char* row : {"(*, *) on 1", "(*, *) on 1, ld=4503", "(*, *) on 1, ld=4504", "(*, *) on 1, ld=4512"})
    for (const Index element : quick() ? std::vector<Index>{8, 12, 6} : std::vector<Index>{4, 8, 12, 16, 24, 6})
      for (const char* source : {"(*, CYCLIC) on 2", "(*, CYCLIC(3)) on 2", "(*, CYCLIC(20)) on 3",
                                 "(*, CYCLIC(45)) on 2", "(*, CYCLIC(2100)) on 2"})
        expect_tasks_deliver(plan(source, row, {quick() ? 5 : 23, 4501}, element), {0, 1});
}

TEST(CopyTasks, elements_by_turns_of_many) {
  for (const Index ranks :
       quick() ? std::vector<Index>{6, 9, 17} : std::vector<Index>{3, 5, 6, 7, 8, 12, 16, 31, 64, 65})
    for (const Index element : {1, 2, 4, 8, 12, 16})
      for (const char* row : {"(*, *) on 1", "(*, BLOCK) on 2", "(*, *) on 1, ld=1040"}) {
        std::vector<Index> senders(static_cast<std::size_t>(ranks));
        std::iota(senders.begin(), senders.end(), 0);
        const auto dealt = "(*, CYCLIC) on " + std::to_string(ranks);
        expect_tasks_deliver(plan(dealt, row, {quick() ? 5 : 11, 1037}, element), senders);
        expect_tasks_deliver(plan(row, dealt, {3, 1037}, element), {0});
      }
}

TEST(JointCopy, planned_for_one_place_moves_to_others_too) {
  const auto p = plan("(*, CYCLIC) on 8", "(*, *) on 1", {7, 259});
  Arrays source(p.source(), 8);
  std::vector<LoopNest> members;
  std::vector<std::byte*> from;
  for (Index s = 0; s < 8; ++s) {
    auto& part = source.memory[std::size_t(s)];
    for (std::size_t i = 0; i < part.size(); ++i) part[i] = element_byte(Index(i), s);
    for (const auto& motion : p.sends(s)) members.push_back(p.relation_by_dimension(motion));
    from.push_back(part.data());
  }
  alignas(64) std::byte there[7 * 259 * 8 + 64], expected[sizeof there];
  const JointCopy joint(members, JointCopy::Shared::destination, {}, there);
  for (const std::size_t shift : {0, 8, 40, 5}) {
    std::fill(std::begin(there), std::end(there), std::byte{0xA5});
    std::copy(std::begin(there), std::end(there), expected);
    for (std::size_t k = 0; k < members.size(); ++k) AddressRelation(members[k]).move_plain(expected + shift, from[k]);
    joint.run(there + shift, from);
    EXPECT_TRUE(std::equal(std::begin(there), std::end(there), expected)) << shift;
  }
}

TEST(CopyTasks, many_short_rows) {
  for (const Index columns :
       quick() ? std::vector<Index>{3, 7, 36} : std::vector<Index>{1, 2, 3, 6, 7, 16, 36, 63, 64, 65})
    for (const Index element : {Index{2}, Index{8}, Index{12}})
      for (const char* dealt : {"(*, CYCLIC) on 2", "(*, CYCLIC(2)) on 8", "(*, CYCLIC(3)) on 2, origin=0x2"})
        for (const char* whole : {"(*, *) on 1", "(BLOCK, *) on 3", "(*, *) on 1, ld=67"}) {
          const auto gathers = plan(dealt, whole, {quick() ? 211 : 997, columns}, element);
          const auto deals = plan(whole, dealt, {quick() ? 211 : 997, columns}, element);
          expect_tasks_deliver(gathers, {0, 1});
          expect_tasks_deliver(deals, {0});
          expect_tasks_deliver(gathers, {1, 0}, 5000);
          expect_tasks_deliver(deals, {0}, 5000);
        }
  for (const Index columns : {5, 36}) {
    expect_tasks_deliver(plan("(BLOCK, *, *) on 2", "(*, *, CYCLIC(2)) on 3", {31, 11, columns}), {0, 1});
    expect_tasks_deliver(plan("(*, *, CYCLIC(2)) on 3", "(BLOCK, *, *) on 2", {31, 11, columns}), {0, 1, 2});
  }
}

TEST(CopyTasks, what_follows_a_periodic_stretch_is_not_taken_for_a_part_of_it) {
  // Only two of three interleaved sources are visible: the second's next run begins in the gap that the third leaves.
  expect_tasks_deliver(plan("(CYCLIC) on 3", "(CYCLIC(104)) on 2", {600}, 1024), {0, 1});
}

TEST(CopyTasks, are_small_however_long_the_rows) {
  for (const char* source :
       {"(CYCLIC) on 2", "(CYCLIC(7)) on 3", "(CYCLIC(7)) on 2, origin=3", "(CYCLIC(5)) on 2, origin=29"})
    for (const char* destination : {"(BLOCK) on 2", "(CYCLIC(12)) on 2", "(CYCLIC(11)) on 1, origin=10"}) {
      const auto p = plan(source, destination, {Index{1} << 40});
      std::vector<VisiblePart> from, to;
      for (Index r = 0; r < p.source().processes(); ++r) from.push_back({r, nullptr});
      for (Index r = 0; r < p.destination().processes(); ++r) to.push_back({r, nullptr});
      for (const auto& task : copy_tasks(p, from, to, preferred_direction(p)))
        EXPECT_LT(task.workspace_bytes(), 600'000) << p.to_string() << ", " << task.describe();
    }
}

TEST(CopyTasks, larger_than_the_cache_is_streamed) {
  const Index rows = quick() ? 96 : 512;
  expect_tasks_deliver(plan("(*, CYCLIC(3)) on 2", "(BLOCK, *) on 1", {rows, 4500}), {0, 1}, Index{1} << 20);
  expect_tasks_deliver(plan("(*, CYCLIC(3)) on 2", "(*, *) on 1, ld=4503", {rows, 4500}), {1, 0});
}

TEST(CopyTasks, parts_of_a_transpose_have_whole_source_rows_and_whole_destination_lines) {
  const MotionPlan p(Layout::parse("(*, *) on 1", {296, 136}), Layout::parse("(*, *) on 1", {136, 296}), 8, {1, 0});
  const std::size_t bytes = 296 * 136 * 8;
  Bytes source(bytes), expected(bytes), found(bytes + 128);
  for (std::size_t i = 0; i < bytes; ++i) source[i] = element_byte(Index(i), 0);
  p.relation(p.sends(0)[0]).move_plain(expected.data(), source.data());
  for (const std::size_t phase : {0, 8, 16, 56, 4}) {
    std::fill(found.begin(), found.end(), std::byte{0xA5});
    std::byte* const to = found.data() + (64 - std::size_t(found.data()) % 64) + phase;
    const auto tasks = copy_tasks(p, {{0, source.data()}}, {{0, to}}, Direction::pull, {{}, 20'000});
    // 296 columns are five times 64 at most and some; 136 rows are cut into as many parts as have 20,000 bytes.
    EXPECT_EQ(tasks.size(), phase == 4 ? 17u : 5u);
    for (const auto& task : tasks) {
      const bool begins_with_a_line = std::size_t(task.written()) % 64 == 0;
      EXPECT_TRUE(phase == 4 || begins_with_a_line || &task == &tasks.front()) << phase;
      task.run();
    }
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), to)) << phase;
  }
}

TEST(CopyTasks, only_a_transpose_is_cut_along_its_rows) {
  alignas(64) static std::byte source[256 * 150 * 8], destination[256 * 150 * 8];
  const auto tasks = [&](const MotionPlan& p) {
    return copy_tasks(p, {{0, source}}, {{0, destination}}, Direction::pull, {{}, 16 * 1024}).size();
  };
  const auto turned = [&](const char* to) {
    return tasks(MotionPlan(Layout::parse("(*, *) on 1", {128, 256}), Layout::parse(to, {256, 128}), 8, {1, 0}));
  };
  EXPECT_EQ(turned("(*, *) on 1"), 2u) << "parts of 64 doubles of each row";
  EXPECT_EQ(turned("(*, *) on 1, ld=131"), 16u) << "rows that do not all begin with a line";
  EXPECT_EQ(tasks(plan("(*, *) on 1, ld=144", "(*, *) on 1", {256, 128})), 16u);
  EXPECT_EQ(tasks(plan("(*, *, *) on 1, ld=144", "(*, *, *) on 1", {1, 256, 128})), 16u);
}

TEST(JointCopy, refuses_members_that_do_not_belong_together) {
  auto make = [](std::vector<LoopNest> members) { JointCopy(std::move(members), JointCopy::Shared::destination, {}); };
  const LoopNest row(8, {{PairedRuns::run(4), 800, 400}, {PairedRuns::run(10), 8, 8}});
  const LoopNest other_rows(8, {{PairedRuns::run(5), 800, 400}, {PairedRuns::run(10, 0, 10), 8, 8}});
  const LoopNest strided(8, {{PairedRuns::run(4), 800, 400}, {PairedRuns::run(10, 0, 10), 16, 8}});
  const LoopNest flat(8, {{PairedRuns::run(10), 8, 8}});
  const LoopNest none(8, {{PairedRuns(), 8, 8}});
  expect_error(ErrorKind::argument, {"needs members"}, [&] { make({}); });
  expect_error(ErrorKind::argument, {"move something"}, [&] { make({none}); });
  expect_error(ErrorKind::argument, {"same axes"}, [&] { make({row, flat}); });
  expect_error(ErrorKind::argument, {"differ in the innermost axis only"}, [&] { make({row, other_rows}); });
  expect_error(ErrorKind::argument, {"contiguous on both sides"}, [&] { make({row, strided}); });
  const LoopNest elsewhere(8, {{PairedRuns::run(4), 800, 400}, {PairedRuns::run(10), 8, 8}}, 0, 80);
  expect_error(ErrorKind::argument, {"begins at the same place"}, [&] { make({row, elsewhere}); });
  const JointCopy one({row}, JointCopy::Shared::destination, {});
  expect_error(ErrorKind::argument, {"of 1 members", "arrays of 2"}, [&] { one.run(nullptr, {nullptr, nullptr}); });
  CopyProgram::Options combining;
  ScalarBytes two{std::byte{2}};
  combining.combine = Combine(ElementType::uint8, two, ScalarBytes{}, false);
  expect_error(ErrorKind::argument, {"can only copy"}, [&] {
    JointCopy({row, row}, JointCopy::Shared::destination, combining);
  });
}

}  // namespace
}  // namespace longshore::test

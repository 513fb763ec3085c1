#include "longshore/model/placement.hpp"

#include "longshore/model/predict.hpp"
#include "support/expect_error.hpp"
#include "support/profiles.hpp"

namespace longshore::test {
namespace {

const Rates one_rate{{"1C1", 1000.0}};

/// The same layout with one process on another rank, which nobody of it has.
Layout with(const Layout& layout, Index process, Index rank) {
  auto grid = layout.grid();
  auto ranks = grid.ranks.to_vector();
  for (auto& other : ranks) other += 100;
  ranks[std::size_t(process)] = rank;
  grid.ranks = process_ranks(ranks);
  return Layout(layout.dimensions(), std::move(grid), layout.order(), layout.ld());
}

TEST(Placement, bytes_are_those_that_the_plan_would_have) {
  const std::vector<Index> ranks{3, 0, 7, 5, 1};
  for (const char* from : {"(BLOCK, *) on 4", "(CYCLIC, BLOCK) on 2x3", "(BLOCK, *) on 2xREPLICATED(3)"})
    for (const char* to : {"(CYCLIC(3), *) on 3", "(*, BLOCK) on 5", "(BLOCK, *) on REPLICATED(2)x2"}) {
      const MotionPlan plan(Layout::parse(from, {12, 10}), Layout::parse(to, {12, 10}), 4);
      const auto costs = placement_bytes(plan, ranks);
      const Index processes = plan.destination().processes();
      ASSERT_EQ(Index(costs.size()), processes * Index(ranks.size()));
      for (Index p = 0; p < processes; ++p)
        for (std::size_t c = 0; c < ranks.size(); ++c) {
          const MotionPlan moved(plan.source(), with(plan.destination(), p, ranks[c]), 4);
          EXPECT_EQ(costs[std::size_t(p) * ranks.size() + c], Traffic::bytes(traffic(moved, ranks[c]).incoming))
              << from << " to " << to << ", process " << p << " on rank " << ranks[c];
        }
    }
}

TEST(Placement, time_is_that_of_messages_within_and_between_nodes) {
  // Process 1 of the destination needs a byte each of ranks 0 to 3.
  const MotionPlan plan(Layout::parse("(CYCLIC) on 4", {8}), Layout::parse("(BLOCK) on 2", {8}), 1);
  const ExchangeTimes ring{"ring", "same node", {{1, 3e-6}}, 0}, direct{"direct", "same node", {{1, 1e-6}}, 0};
  const ExchangeTimes far{"messages", "other node", {{1, 2e-5}}, 0};
  const std::vector<Index> ranks{2, 9};
  const auto all = profile_of({copies_at(one_rate)}, {ring, direct, far});
  const auto costs = placement_nanoseconds(plan, ranks, all, 2);
  EXPECT_EQ(costs, (std::vector<Index>{41'000, 80'000, 41'000, 80'000}));
  const auto near = profile_of({copies_at(one_rate)}, {ring, direct});
  EXPECT_EQ(placement_nanoseconds(plan, ranks, near, 0), (std::vector<Index>{3'000, 4'000, 3'000, 4'000}));
  EXPECT_EQ(placement_nanoseconds(plan, ranks, near, 10), (std::vector<Index>{3'000, 4'000, 3'000, 4'000}));
  expect_error(ErrorKind::argument, {"other node"}, [&] { placement_nanoseconds(plan, ranks, near, 2); });
  const auto apart = profile_of({copies_at(one_rate)}, {far});
  EXPECT_EQ(placement_nanoseconds(plan, ranks, apart, 1), (std::vector<Index>{60'000, 80'000, 60'000, 80'000}));
  expect_error(ErrorKind::argument, {"same node"}, [&] { placement_nanoseconds(plan, ranks, apart, 2); });
}

}  // namespace
}  // namespace longshore::test

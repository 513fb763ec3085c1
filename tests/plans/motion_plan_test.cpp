#include "longshore/plans/motion_plan.hpp"

#include "longshore/copies/packets.hpp"
#include "support/expect_error.hpp"
#include "support/pairs.hpp"

namespace longshore {
namespace {

using test::expect_error;
using Shape = std::vector<Index>;

MotionPlan plan(const std::string& source, const std::string& destination, Shape shape, Index element_bytes = 8) {
  return MotionPlan(Layout::parse(source, shape), Layout::parse(destination, shape), element_bytes);
}

TEST(MotionPlan, rows_to_columns) {
  const auto p = plan("(BLOCK, *) on 2", "(*, BLOCK) on 2", {4, 6});
  const auto sends = p.sends(0);
  ASSERT_EQ(sends.size(), 2u);
  EXPECT_EQ(sends[0].destination, 0);
  EXPECT_EQ(sends[1].destination, 1);
  EXPECT_EQ(sends[1].elements, 6);
  const auto relation = p.relation(sends[1]);
  EXPECT_EQ(relation.at(0), (LoopNest::Pair{24, 0}));
  EXPECT_EQ(relation.at(3), (LoopNest::Pair{72, 24}));
  EXPECT_FALSE(relation.contiguous_source());
  EXPECT_EQ(relation.contiguous_destination(), 0);
}

TEST(MotionPlan, the_same_layout_moves_one_block) {
  for (const auto* text :
       {"(BLOCK, *) on 2", "(*, BLOCK) on 2", "(CYCLIC, CYCLIC(3)) on 2x2", "(*, CYCLIC(2)) on 4, order=F"}) {
    const auto p = plan(text, text, {12, 18});
    const auto sends = p.sends(1);
    ASSERT_EQ(sends.size(), 1u) << text;
    EXPECT_EQ(sends[0].destination, 1) << text;
    EXPECT_EQ(CopyProgram(p.relation(sends[0])).describe(),
              "one block of " + std::to_string(p.source().local_size(1) * 8) + "-byte blocks")
        << text;
  }
}

TEST(MotionPlan, disjoint_ranks) {
  const auto p = plan("(BLOCK) on 2", "(BLOCK) on 3, ranks=2:5", {6});
  EXPECT_EQ(p.world_size(), 5);
  EXPECT_TRUE(p.receives(0).empty());
  EXPECT_TRUE(p.sends(3).empty());
  ASSERT_EQ(p.receives(3).size(), 2u);
  EXPECT_EQ(p.receives(3)[0].source, 0);
  EXPECT_EQ(p.receives(3)[1].source, 1);
  EXPECT_TRUE(p.sends(99).empty());
}

TEST(MotionPlan, replicas_take_turns) {
  const auto p = plan("(*) on REPLICATED(2)", "(BLOCK) on 4, ranks=2:6", {8});
  EXPECT_EQ(p.sends(0).size(), 2u);
  EXPECT_EQ(p.sends(1).size(), 2u);
  const auto own = plan("(*) on REPLICATED(4)", "(BLOCK) on 4", {8});
  for (Index rank = 0; rank < 4; ++rank) {
    ASSERT_EQ(own.receives(rank).size(), 1u);
    EXPECT_EQ(own.receives(rank)[0].source, rank);
  }
}

TEST(MotionPlan, a_transpose_permutes_the_axes) {
  const MotionPlan p(Layout::parse("(BLOCK, *) on 2", {4, 6}), Layout::parse("(BLOCK, *) on 2", {6, 4}), 8, {1, 0});
  const auto sends = p.sends(0);
  ASSERT_EQ(sends.size(), 2u);
  EXPECT_EQ(sends[0].elements, 6);
  EXPECT_EQ(test::pairs_of(p.relation(sends[0])),
            (std::vector<LoopNest::Pair>{{0, 0}, {48, 8}, {8, 32}, {56, 40}, {16, 64}, {64, 72}}));
}

TEST(MotionPlan, plans_are_values) {
  const auto a = plan("(BLOCK, *) on 2", "(*, BLOCK) on 2", {4, 6}),
             b = plan("(BLOCK, *) on 2", "(*, BLOCK) on 2", {4, 6});
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.digest(), b.digest());
  EXPECT_EQ(a.to_string(), "move 4x6 elements of 8 bytes from (BLOCK, *) on 2 to (*, BLOCK) on 2");
  EXPECT_NE(a.digest(), plan("(BLOCK, *) on 2", "(*, BLOCK) on 2", {4, 6}, 4).digest());
  // Ranks that move the other way, or stay as they are in another shape, have other plans.
  EXPECT_NE(a.digest(), plan("(*, BLOCK) on 2", "(BLOCK, *) on 2", {4, 6}).digest());
  const char* rows = "(BLOCK, *) on 2";
  EXPECT_NE(plan(rows, rows, {4, 6}).digest(), plan(rows, rows, {6, 4}).digest());
}

TEST(MotionPlan, says_where_the_layouts_disagree) {
  auto make = [](Shape source, Shape destination, Index element_bytes, std::vector<std::size_t> axes) {
    auto stars = [](std::size_t n) { return n == 1 ? "(*) on 1" : n == 2 ? "(*, *) on 1" : "(*, *, *) on 1"; };
    return MotionPlan(Layout::parse(stars(source.size()), source),
                      Layout::parse(stars(destination.size()), destination), element_bytes, std::move(axes));
  };
  expect_error(ErrorKind::type, {"0 bytes"}, [&] { make({4}, {4}, 0, {}); });
  expect_error(ErrorKind::shape, {"2 dimensions", "destination 1"}, [&] { make({4, 6}, {24}, 8, {}); });
  expect_error(ErrorKind::shape, {"destination dimension 1 has extent 5", "source dimension 1 has 6", "4x6", "4x5"},
               [&] {
                 make({4, 6}, {4, 5}, 8, {});
               });
  expect_error(ErrorKind::shape, {"destination dimension 0 has extent 4", "source dimension 1 has 6"}, [&] {
    make({4, 6}, {4, 6}, 8, {1, 0});
  });
  expect_error(ErrorKind::argument, {"axes has 1 entries", "2 dimensions"}, [&] { make({4, 6}, {4, 6}, 8, {0}); });
  expect_error(ErrorKind::argument, {"axes entry 1 is 2", "[0, 2)"}, [&] { make({4, 6}, {4, 6}, 8, {0, 2}); });
  expect_error(ErrorKind::argument, {"axes entry 1 is 0", "twice"}, [&] { make({4, 6}, {4, 6}, 8, {0, 0}); });
  expect_error(ErrorKind::overflow, {"product"}, [&] { make({Index{1} << 61}, {Index{1} << 61}, 8, {}); });
}

}  // namespace
}  // namespace longshore

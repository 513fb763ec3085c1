#include "longshore/layouts/layout.hpp"

#include "support/expect_error.hpp"

namespace longshore {
namespace {

using test::expect_error;
using Shape = std::vector<Index>;
using Ranks = std::vector<Index>;

TEST(Layout, ranks_number_the_grid_row_major_unless_told_otherwise) {
  const auto rows = Layout::parse("(BLOCK, BLOCK) on 2x3", {2, 3}),
             columns = Layout::parse("(BLOCK, BLOCK) on 2x3, rank_order=F", {2, 3});
  EXPECT_EQ(rows.owners({0, 2}), Ranks{2});
  EXPECT_EQ(rows.owners({1, 0}), Ranks{3});
  EXPECT_EQ(columns.owners({0, 2}), Ranks{4});
  EXPECT_EQ(columns.owners({1, 0}), Ranks{1});
}

TEST(Layout, replicas_own_the_same) {
  const auto layout = Layout::parse("(BLOCK, *) on REPLICATED(2)x2", {4, 5});
  EXPECT_EQ(layout.owners({0, 0}), (Ranks{0, 2}));
  EXPECT_EQ(layout.owners({3, 0}), (Ranks{1, 3}));
  EXPECT_EQ(Layout::parse("(BLOCK, *) on 2xREPLICATED(2)", {4, 5}).owners({3, 0}), (Ranks{2, 3}));
  EXPECT_EQ(Layout::parse("(*, *) on REPLICATED(3)", {4, 5}).owners({3, 0}), (Ranks{0, 1, 2}));
  EXPECT_EQ(layout.replicas(), 2);
  EXPECT_EQ(layout.owned(1), layout.owned(3));
}

TEST(Layout, memory_order_and_leading_dimension) {
  const auto c = Layout::parse("(BLOCK, *) on 2, ld=12", {6, 10}),
             f = Layout::parse("(BLOCK, *) on 2, order=F, ld=5", {6, 10});
  EXPECT_EQ(c.local_strides(0, 8), (Shape{96, 8}));
  EXPECT_EQ(c.allocated_size(0), 36);
  EXPECT_EQ(f.local_strides(0, 8), (Shape{8, 40}));
  EXPECT_EQ(f.allocated_size(0), 50);
  EXPECT_EQ(f.local_size(0), 30);
}

TEST(Layout, copies_share_what_they_say) {
  auto layout = Layout::parse("(BLOCK, *) on 2", {6, 10});
  const Layout copy = layout, other = Layout::parse("(BLOCK, *) on 2", {6, 10});
  EXPECT_EQ(&copy.shape(), &layout.shape());
  EXPECT_NE(&other.shape(), &layout.shape());
  EXPECT_EQ(copy, layout);
  EXPECT_EQ(other, layout);
  const Layout taken = std::move(layout);
  EXPECT_EQ(layout, taken) << "what was given away is still a layout";
}

TEST(Layout, a_rank_that_takes_no_part_owns_nothing) {
  const auto layout = Layout::parse("(BLOCK, *) on 2, ranks=[5,3]", {6, 10});
  EXPECT_EQ(layout.world_size(), 6);
  EXPECT_EQ(layout.local_shape(5), (Shape{3, 10}));
  for (const Index rank : {-1, 0, 4, 6}) {
    EXPECT_EQ(layout.local_shape(rank), (Shape{0, 0})) << rank;
    EXPECT_EQ(layout.local_size(rank), 0);
    EXPECT_EQ(layout.allocated_size(rank), 0);
    EXPECT_EQ(layout.owned(rank), std::vector<Runs>(2));
  }
  expect_error(ErrorKind::argument, {"rank 4", "not among the 2 ranks"}, [&] { layout.local_to_global(4, {0, 0}); });
}

TEST(Layout, indices_are_checked) {
  const auto layout = Layout::parse("(BLOCK, *) on 2", {6, 10});
  expect_error(ErrorKind::argument, {"global index 10", "dimension 1", "[0, 10)"}, [&] { layout.owners({5, 10}); });
  expect_error(ErrorKind::argument, {"global index -1", "dimension 0", "[0, 6)"}, [&] {
    layout.global_to_local({-1, 0});
  });
  expect_error(ErrorKind::shape, {"1 dimensions", "has 2"}, [&] { layout.global_to_local({1}); });
  expect_error(ErrorKind::argument, {"rank 1", "local index 3", "dimension 0", "[0, 3)"}, [&] {
    layout.local_to_global(1, {3, 0});
  });
  expect_error(ErrorKind::argument, {"corner 7", "dimension 0", "[0, 6]"}, [&] { layout.local_start(0, {7, 0}); });
  expect_error(ErrorKind::shape, {"corner has 1"}, [&] { layout.local_start(0, {7}); });
  expect_error(ErrorKind::shape, {"2 bounds"}, [&] { layout.window({0}, {1}); });
  expect_error(ErrorKind::argument, {"window [0, 7)", "[0, 6)"}, [&] { layout.window({0, 0}, {7, 1}); });
}

TEST(Layout, an_empty_array_with_huge_dimensions_owns_nothing) {
  const Index huge = Index{1} << 40;
  const auto layout = Layout::parse("(*, *, BLOCK) on 2", {huge, huge, 0});
  EXPECT_EQ(layout.size(), 0);
  EXPECT_EQ(layout.local_size(0), 0);
  EXPECT_EQ(layout.allocated_size(0), 0);
  EXPECT_TRUE(layout.owned(0)[2].empty());
}

TEST(Layout, consecutive_ranks_are_a_range_however_written) {
  EXPECT_EQ(Layout::parse("(BLOCK) on 3, ranks=[4,5,6]", {9}), Layout::parse("(BLOCK) on 3, ranks=4:7", {9}));
  EXPECT_EQ(Layout::parse("(BLOCK) on 3, ranks=0:3", {9}), Layout::parse("(BLOCK) on 3", {9}));
  EXPECT_EQ(Layout::parse("(BLOCK) on 1, ranks=[2]", {9}).to_string(), "(BLOCK) on 1, ranks=2:3");
  EXPECT_EQ(Layout::parse("(BLOCK) on 3, ranks=[1,4,7]", {9}).to_string(), "(BLOCK) on 3, ranks=1:8:3");
  EXPECT_EQ(Layout::parse("(BLOCK) on 3, ranks=1:8:3", {9}), Layout::parse("(BLOCK) on 3, ranks=1:10:3", {9}));
  EXPECT_EQ(Layout::parse("(BLOCK) on 1, ranks=0:5:7", {9}).to_string(), "(BLOCK) on 1");
  const auto far = Layout::parse("(BLOCK) on 2, ranks=[0,1099511627775]", {9});
  EXPECT_EQ(Layout::parse(far.to_string(), {9}), far);
  EXPECT_NE(Layout::parse("(BLOCK) on 3, ranks=[2,0,1]", {9}).digest(),
            Layout::parse("(BLOCK) on 3, ranks=[1,0,2]", {9}).digest());
  expect_error(ErrorKind::layout, {"2000000000000 processes"}, [] { Layout::parse("(BLOCK) on 2000000000000", {9}); });
}

TEST(Layout, digests_see_what_matters) {
  const auto base = Layout::parse("(BLOCK, *) on 4", {8, 8});
  for (const auto* other : {"(*, BLOCK) on 4", "(BLOCK, *) on 2", "(CYCLIC, *) on 4", "(BLOCK, *) on 4, order=F",
                            "(BLOCK, *) on 4, ranks=1:5", "(BLOCK, *) on 4, source=1", "(BLOCK, *) on 4, ld=9"})
    EXPECT_NE(Layout::parse(other, {8, 8}).digest(), base.digest()) << other;
  EXPECT_NE(Layout::parse("(BLOCK, *) on 4", {8, 9}).digest(), base.digest());
  EXPECT_EQ(Layout::parse("(BLOCK(2), *) on 4", {8, 8}).digest(), base.digest());
}

TEST(Layout, the_constructor_checks_what_the_parser_cannot_reach) {
  const auto block = Distribution::block(8, 4);
  const auto layout = ErrorKind::layout;
  auto grid = [](Shape extents) {
    return ProcessGrid{extents, std::vector<bool>(extents.size(), false), Order::C, {}};
  };
  expect_error(layout, {"at least one dimension"}, [&] { Layout({}, grid({1})); });
  expect_error(layout, {"at least one extent"}, [&] { Layout({block}, {}); });
  expect_error(layout, {"grid extent 0"}, [&] { Layout({block}, grid({0})); });
  expect_error(layout, {"dimension 0", "4 coordinates", "grid extent is 2"}, [&] { Layout({block}, grid({2})); });
  expect_error(layout, {"1 distributed dimension,", "2 extents"}, [&] { Layout({block}, grid({4, 2})); });
  expect_error(layout, {"3 ranks", "4 processes"}, [&] {
    Layout({block}, ProcessGrid{{4}, {false}, Order::C, RankMap::whole(3)});
  });
  expect_error(layout, {"rank -1 at position 3"}, [] { process_ranks(std::vector<Index>{3, 1, 0, -1}); });
  expect_error(layout, {"rank 1099511627776 at position 1"}, [] {
    process_ranks(std::vector<Index>{3, Index{1} << 40});
  });
  expect_error(layout, {"ld -1"}, [&] { Layout({block}, grid({4}), Order::C, -1); });
}

}  // namespace
}  // namespace longshore

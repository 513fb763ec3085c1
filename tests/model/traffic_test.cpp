#include "longshore/model/predict.hpp"
#include "support/clock.hpp"
#include "support/expect_error.hpp"
#include "support/plans.hpp"

namespace longshore::test {
namespace {

using Counts = std::map<Index, std::pair<Index, Index>>;  // transfers and bytes by peer

Counts counts(const std::vector<Traffic::Item>& items) {
  Counts found;
  for (const auto& item : items) found[item.peer].first += item.transfers, found[item.peer].second += item.bytes;
  return found;
}

TEST(Traffic, of_blocks_is_what_the_plan_counts) {
  const GridFormat format{8, {Point{12, 12}, Point{12, 12}}, Order::C};
  for (const auto& plan : every_kind_of_plan()) {
    if (plan.source().dims() != 2) continue;
    for (Index rank = 0; rank < plan.world_size(); ++rank) {
      if (plan.rank() && plan.rank() != rank) continue;
      Counts out, in, local;
      for (const auto& motion : plan.sends(rank)) {
        const Index peer = plan.destination().owner(motion.destination);
        auto& [transfers, bytes] = (peer == rank ? local : out)[peer];
        ++transfers, bytes += 8 * motion.points();
      }
      for (const auto& motion : plan.receives(rank)) {
        const Index peer = plan.source().owner(motion.source);
        if (peer == rank) continue;
        auto& [transfers, bytes] = in[peer];
        ++transfers, bytes += 8 * motion.points();
      }
      const auto found = traffic(plan, rank, format);
      EXPECT_EQ(found.rank, rank);
      EXPECT_EQ(counts(found.outgoing), out) << plan.digest() << " of rank " << rank;
      EXPECT_EQ(counts(found.incoming), in) << plan.digest() << " of rank " << rank;
      EXPECT_EQ(counts(found.local), local) << plan.digest() << " of rank " << rank;
    }
  }
}

TEST(Traffic, of_a_halo_is_what_its_faces_have) {
  const auto plan = halo_exchange(even_floor_plan(Region({0, 0}, {20, 30}), 2), Halo(2, 1));
  for (const Order order : {Order::C, Order::F}) {
    const auto found = traffic(plan, 0, {4, {}, order});
    ASSERT_EQ(found.outgoing.size(), 1u);
    EXPECT_EQ(found.outgoing[0].peer, 1);
    EXPECT_EQ(found.outgoing[0].transfers, 1);
    EXPECT_EQ(found.outgoing[0].bytes, found.incoming[0].bytes);
    EXPECT_TRUE(found.local.empty());
    // Half the domain is 20 x 15 or 10 x 30: a face lies along one dimension.
    const Index face = even_floor_plan(Region({0, 0}, {20, 30}), 2).region(0).extent(0) == 20 ? 20 : 30;
    EXPECT_EQ(found.outgoing[0].bytes, 4 * face);
  }
}

TEST(Traffic, of_a_halo_touches_no_more_than_its_blocks_have) {
  const auto plan = halo_exchange(even_floor_plan(Region({0, 0}, {8, 8}), 2), Halo(2, 3));
  const auto found = traffic(plan, 0, {8, {}, Order::C});
  EXPECT_TRUE(found.halo);
  EXPECT_GT(found.touched_bytes, 0);
  EXPECT_LE(found.touched_bytes, 8 * (4 + 6) * (8 + 6));
}

TEST(Traffic, of_lists_in_order_is_strided_on_that_side) {
  const auto blocks = even_floor_plan(Region({0}, {8000}), 2);
  std::vector<Index> ascending, any;
  for (Index k = 0; k < 1000; ++k) ascending.push_back(4000 + 4 * k), any.push_back(k * 617 % 1000);
  auto shape = [&](const std::vector<Index>& from, const std::vector<Index>& to) {
    BlockPlan plan(blocks, blocks);
    plan.copy_points(PointList(1, to), 0, PointList(1, from), 1);
    return traffic(plan, 0, {8, {}, Order::C}).incoming.at(0).shape;
  };
  const auto gathered = shape(ascending, any);
  EXPECT_EQ(gathered.read.stride, 2);  // 3,997 for 1,000: as far apart as the next lower power of two
  EXPECT_EQ(gathered.write, ReferencePattern(ReferencePattern::by_index));
  std::vector<Index> in_turn;
  for (Index k = 0; k < 1000; ++k) in_turn.push_back(k);
  std::vector<Index> shifted = any;
  for (auto& k : shifted) k += 4000;
  const auto dealt = shape(shifted, in_turn);
  EXPECT_EQ(dealt.read, ReferencePattern(ReferencePattern::by_index));
  EXPECT_EQ(dealt.write, ReferencePattern());
  EXPECT_EQ(shape(ascending, in_turn).read, ReferencePattern(ReferencePattern::by_index))
      << "somebody follows the list";
}

TEST(Traffic, of_a_rank_that_takes_no_part_is_an_error) {
  const MotionPlan plan(Layout::parse("(BLOCK) on 2", {8}), Layout::parse("(BLOCK) on 3", {8}), 8);
  EXPECT_EQ(Traffic::bytes(traffic(plan, 2).incoming), 2 * 8);
  expect_error(ErrorKind::argument, {"rank 3", "[0, 3)"}, [&] { traffic(plan, 3); });
  expect_error(ErrorKind::argument, {"rank -1"}, [&] { traffic(plan, -1); });
  expect_error(ErrorKind::argument, {"rank 7"}, [] { traffic(every_kind_of_plan()[3], 7, {8, {}, Order::C}); });
}

TEST(Traffic, in_one_process_everything_stays) {
  const MotionPlan plan(Layout::parse("(BLOCK, *) on 3", {9, 9}), Layout::parse("(*, BLOCK) on 3", {9, 9}), 8);
  std::vector<Traffic> ranks;
  for (Index rank = 0; rank < 3; ++rank) ranks.push_back(traffic(plan, rank));
  const auto all = in_one_process(ranks);
  EXPECT_TRUE(all.outgoing.empty() && all.incoming.empty());
  EXPECT_EQ(Traffic::bytes(all.local), 9 * 9 * 8);
}

TEST(Traffic, of_more_than_any_cache_has_a_bound) {
  const MotionPlan plan(Layout::parse("(BLOCK) on 1", {Index{1} << 61}),
                        Layout::parse("(BLOCK) on 1", {Index{1} << 61}), 2);
  const auto found = traffic(plan, 0);
  EXPECT_EQ(found.touched_bytes, Index{1} << 62);
  EXPECT_EQ(in_one_process({found, found}).touched_bytes, Index{1} << 62);
}

TEST(NodeVolume, of_a_node_of_a_million_ranks_takes_as_long_as_its_own_ranks) {
  const Clock clock(30);  // with a look at all ranks for each of its own, it would be minutes
  const auto dealt = Layout::parse("(CYCLIC(3), *) on 1000000", {10'000'000, 100});
  const auto blocks = Layout::parse("(BLOCK, *) on 1000000", {10'000'000, 100});
  const MotionPlan plan(dealt, blocks, 8);
  for (Index node = 1; node < 15'000; node += 15) {  // which have nothing of what they want
    const auto volume = node_volume(plan, node, 64);
    EXPECT_EQ(volume.bytes_in, 64 * 10 * 100 * 8);
    EXPECT_GE(volume.bytes_out, 64 * 9 * 100 * 8);
  }
}

TEST(NodeVolume, of_no_node_is_an_error) {
  const MotionPlan plan(Layout::parse("(BLOCK) on 4", {8}), Layout::parse("(CYCLIC) on 4", {8}), 8);
  EXPECT_EQ(node_volume(plan, 1, 3).messages_in, 1);  // rank 3 alone, which gets from rank 1
  expect_error(ErrorKind::argument, {"node 2", "rank 6", "[0, 4)"}, [&] { node_volume(plan, 2, 3); });
  expect_error(ErrorKind::argument, {"node -1"}, [&] { node_volume(plan, -1, 3); });
  expect_error(ErrorKind::argument, {"0 ranks a node"}, [&] { node_volume(plan, 0, 0); });
}

}  // namespace
}  // namespace longshore::test

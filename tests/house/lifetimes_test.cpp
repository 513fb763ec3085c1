// What a temporary gives is not a reference into it: the types say so, and AddressSanitizer sees the uses.
#include <gtest/gtest.h>

#include <span>
#include <string_view>
#include <type_traits>

#include "longshore/encodings/message_models.hpp"
#include "longshore/encodings/relation_cache.hpp"
#include "longshore/engines/finegrain_communicator.hpp"
#include "longshore/layouts/balance.hpp"
#include "longshore/layouts/floor_plan.hpp"
#include "longshore/layouts/xarray.hpp"
#include "longshore/model/throughput.hpp"
#include "longshore/plans/block_algebra.hpp"
#include "longshore/plans/block_builders.hpp"
#include "longshore/plans/motion_plan.hpp"
#include "longshore/regions/point_list.hpp"
#include "longshore/relations/address_relation.hpp"
#include "longshore/relations/loop_nest.hpp"
#include "longshore/relations/packed_list.hpp"
#include "longshore/relations/paired_runs.hpp"
#include "longshore/sequences/elias_fano.hpp"

namespace longshore::test {
namespace {

template <class T>
constexpr bool is_span = false;
template <class T, std::size_t N>
constexpr bool is_span<std::span<T, N>> = true;

/// Something else has to live for it.
template <class T>
constexpr bool refers =
    std::is_reference_v<T> || std::is_pointer_v<T> || is_span<T> || std::is_same_v<T, std::string_view>;

/// A temporary of the type gives a value, where one with a name may give a reference.
#define GIVES_A_VALUE(Type, call) static_assert(!refers<decltype(std::declval<Type>().call)>, #Type "::" #call)
/// A temporary of the type has no such function.
#define MUST_NOT_COMPILE(Type, call)                 \
  static_assert(                                     \
      ![]<class T>(T*) {                             \
        return requires(T t) { std::move(t).call; }; \
      }(static_cast<Type*>(nullptr)),                \
      #Type "::" #call)

GIVES_A_VALUE(Region, lower());
GIVES_A_VALUE(Region, upper());
GIVES_A_VALUE(PointList, bounding());
GIVES_A_VALUE(Distribution, sizes());
GIVES_A_VALUE(OwnerMap, ranks());
GIVES_A_VALUE(Layout, shape());
GIVES_A_VALUE(Layout, dimensions());
GIVES_A_VALUE(Layout, grid());
GIVES_A_VALUE(FloorPlan, owning_ranks());
GIVES_A_VALUE(FloorPlan, regions()[0]);
GIVES_A_VALUE(FloorPlan, regions().front());
GIVES_A_VALUE(FloorPlan, regions().back());
GIVES_A_VALUE(FloorPlan, regions().at(0));
GIVES_A_VALUE(FloorPlan, region(0).lower());
GIVES_A_VALUE(FloorPlan, bounds());
GIVES_A_VALUE(FloorPlan, index());
GIVES_A_VALUE(XArray, blocks());
GIVES_A_VALUE(XArray, format());
GIVES_A_VALUE(XArray, owned());
GIVES_A_VALUE(XArray, memory());
GIVES_A_VALUE(XArray, memory_owners());
MUST_NOT_COMPILE(XArray, grid(0));
MUST_NOT_COMPILE(XArray, grids());
GIVES_A_VALUE(MotionPlan, source());
GIVES_A_VALUE(MotionPlan, destination());
GIVES_A_VALUE(MotionPlan, axes());
GIVES_A_VALUE(MotionPlan, sends(0)[0]);
GIVES_A_VALUE(MotionPlan, receives(0)[0]);
GIVES_A_VALUE(BlockPlan, source());
GIVES_A_VALUE(BlockPlan, destination());
GIVES_A_VALUE(BlockPlan, axes());
GIVES_A_VALUE(BlockPlan, motions()[0]);
GIVES_A_VALUE(BlockPlan, sends(0)[0]);
GIVES_A_VALUE(BlockPlan, receives(0)[0]);
GIVES_A_VALUE(BlockPlan, halo());
static_assert(!refers<decltype(volumes(std::declval<BlockPlan>())[0])>, "volumes(BlockPlan)");
GIVES_A_VALUE(AddressRelation, parts());
GIVES_A_VALUE(AddressRelation, reduction());
GIVES_A_VALUE(LoopNest, axes());
GIVES_A_VALUE(PairedRuns, periods());
GIVES_A_VALUE(Runs, runs());
GIVES_A_VALUE(Combine, alpha());
GIVES_A_VALUE(PackedList, source());
GIVES_A_VALUE(PackedList, destination());
GIVES_A_VALUE(Assembler, program());
GIVES_A_VALUE(Disassembler, program());
GIVES_A_VALUE(Encoding, reduction());
GIVES_A_VALUE(CachedRelation, encoding());
GIVES_A_VALUE(PutSender, assembler());
GIVES_A_VALUE(PutMessage, addresses());
GIVES_A_VALUE(GetRequest, addresses());
GIVES_A_VALUE(EliasFano, low());
GIVES_A_VALUE(finegrain::Communicator, members());
GIVES_A_VALUE(TransferExpression, parts());
GIVES_A_VALUE(TransferExpression, transfer());
GIVES_A_VALUE(ThroughputTable, machine());
GIVES_A_VALUE(ThroughputTable, transfers());
GIVES_A_VALUE(ThroughputTable, constraints());

FloorPlan blocks() { return even_floor_plan(Region::of_shape({6, 7, 8, 9, 10}), 4); }  // points that need memory

TEST(Lifetimes, elements_of_lists_that_are_returned) {
  const FloorPlan plan = blocks();
  const Region& region = plan.regions()[1];
  EXPECT_EQ(region, plan.region(1));
  const Region& last = blocks().regions().back();
  EXPECT_EQ(last, plan.region(3));
  const BlockMotion& motion = halo_exchange(blocks(), Halo(5, 1)).motions()[0];
  EXPECT_EQ(motion.destination, 0);
}

TEST(Lifetimes, corners_of_regions_that_are_returned) {
  const FloorPlan plan = blocks();
  const Point& lower = plan.region(2).lower();
  EXPECT_EQ(lower, Point(plan.region(2).lower()));
  Index sum = 0, expected = 0;
  for (const Index x : plan.region(3).upper()) sum += x;
  for (std::size_t d = 0; d < plan.dims(); ++d) expected += plan.region(3).upper()[d];
  EXPECT_EQ(sum, expected);
}

TEST(Lifetimes, loops_over_parts_of_temporaries) {
  Index blocks_seen = 0, shape = 0;
  for (const Region& region : halo_exchange(blocks(), Halo(5, 1)).source().regions()) blocks_seen += region.size() > 0;
  EXPECT_EQ(blocks_seen, 4);
  for (const Index extent : Layout::parse("(BLOCK, *) on 2", {40, 30}).shape()) shape += extent;
  EXPECT_EQ(shape, 70);
  Index owned = 0;
  for (const Index k : XArray(blocks(), {}, {8, {}, Order::F}).owned()) owned += k;
  EXPECT_EQ(owned, 6);
}

}  // namespace
}  // namespace longshore::test

// With which stores packets are written into slots follows how fast they go, also when that changes.
#include "mpi/slot_stores.hpp"

#include <gtest/gtest.h>

namespace longshore::mpi {
namespace {

/// How many of the last thousand of so many packets are streamed, where one takes so many microseconds.
int streamed(SlotStores& stores, int cached, int streaming, int packets = 4000, int pause_after = 0) {
  static SlotStores::Time now;
  int count = 0;
  for (int k = 0; k < packets; ++k) {
    if (pause_after > 0 && k % pause_after == 0) stores.pause(), now += std::chrono::seconds(1);
    const bool streams = stores.choose(1000, now) == Stores::streaming;
    now += std::chrono::microseconds(streams ? streaming : cached);
    count += k >= packets - 1000 && streams;
  }
  return count;
}

TEST(SlotStores, the_faster_ones_are_taken_and_taken_again_when_cores_move) {
  SlotStores stores;
  EXPECT_LT(streamed(stores, 10, 30), 50);
  EXPECT_GT(streamed(stores, 80, 20), 950);
  EXPECT_LT(streamed(stores, 10, 20), 50);
}

TEST(SlotStores, soon) {
  SlotStores stores;
  EXPECT_LT(streamed(stores, 10, 30, 1000), 50);
  SlotStores others;
  EXPECT_GT(streamed(others, 80, 20, 1000), 950);
}

TEST(SlotStores, what_is_nearly_as_fast_stays_in_cache) {
  SlotStores stores;
  EXPECT_LT(streamed(stores, 20, 19), 50);
}

TEST(SlotStores, time_between_moves_does_not_count) {
  SlotStores stores;
  EXPECT_GT(streamed(stores, 80, 20, 4000, 5), 900);
}

TEST(MeasuredStores, a_mover_begins_where_the_last_one_was) {
  const auto measured = std::make_shared<MeasuredStores>();
  const auto first = [&](int peer, Index bytes) { return MeasuredStores::lend(measured, peer, bytes)->stores(); };
  EXPECT_EQ(first(1, 1000), Stores::cached);
  for (int k = 0; k < 3; ++k) {  // none of them alone comes to its second trial
    const auto stores = MeasuredStores::lend(measured, 1, 1000);
    EXPECT_EQ(stores->stores(), k == 0 ? Stores::cached : Stores::streaming);
    streamed(*stores, 80, 20, 17);
  }
  EXPECT_EQ(first(1, 1000), Stores::streaming);
  EXPECT_EQ(first(1, 10), Stores::streaming);
  EXPECT_EQ(first(1, 100000), Stores::streaming);
  EXPECT_EQ(first(0, 1000), Stores::cached);
  EXPECT_EQ(first(2, 1000), Stores::cached);
}

TEST(MeasuredStores, an_idle_mover_that_goes_takes_nothing_back) {
  const auto measured = std::make_shared<MeasuredStores>();
  auto idle = MeasuredStores::lend(measured, 1, 1000);
  streamed(*MeasuredStores::lend(measured, 1, 1000), 80, 20);
  idle = nullptr;
  EXPECT_EQ(MeasuredStores::lend(measured, 1, 1000)->stores(), Stores::streaming);
}

TEST(MeasuredStores, each_length_has_measurements_of_its_own) {
  const auto measured = std::make_shared<MeasuredStores>();
  streamed(*MeasuredStores::lend(measured, 1, 1000), 80, 20);
  EXPECT_LT(streamed(*MeasuredStores::lend(measured, 1, 2000), 10, 30, 1000), 50);
  EXPECT_EQ(MeasuredStores::lend(measured, 1, 1000)->stores(), Stores::streaming);
  EXPECT_EQ(MeasuredStores::lend(measured, 1, 2000)->stores(), Stores::cached);
}

}  // namespace
}  // namespace longshore::mpi

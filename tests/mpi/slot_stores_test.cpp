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

}  // namespace
}  // namespace longshore::mpi

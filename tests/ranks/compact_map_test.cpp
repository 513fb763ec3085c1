// The thesis's C interface, used as an MPI library written in C would use it.
#include "longshore/ranks/compact_map.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace {

std::vector<int64_t> members(const CMMap* map) {
  std::vector<int64_t> list;
  CMIterator* iterator = CMIteratorCreate(map);
  for (int64_t rank; CMIteratorNext(iterator, &rank) == 0;) list.push_back(rank);
  CMIteratorRewind(iterator);
  int64_t first = -1;
  EXPECT_EQ(CMIteratorNext(iterator, &first), list.empty() ? 1 : 0);
  EXPECT_EQ(first, list.empty() ? -1 : list[0]);
  CMIteratorFree(iterator);
  return list;
}

TEST(CompactMap, inserts_and_finds) {
  CMMap* map = CMCreate(1 << 20);
  ASSERT_NE(map, nullptr);
  EXPECT_EQ(CMSize(map), 0);
  EXPECT_EQ(CMInsert(map, 77), 0);
  const int64_t block[] = {5, 3, 900000};
  EXPECT_EQ(CMBlockInsert(map, block, 3), 0);
  EXPECT_EQ(CMRangeInsert(map, 1000, 3000, 2), 0);
  std::vector<int64_t> expected{77, 5, 3, 900000};
  for (int64_t w = 1000; w <= 3000; w += 2) expected.push_back(w);
  EXPECT_EQ(members(map), expected);
  EXPECT_EQ(CMSize(map), int64_t(expected.size()));
  int64_t rank = 0;
  EXPECT_EQ(CMFind(map, 2, &rank), 0);
  EXPECT_EQ(rank, 3);
  EXPECT_EQ(CMRank(map, 1004), 6);
  EXPECT_EQ(CMRank(map, 1005), CM_NOBODY);
  const int64_t positions[] = {4, 0};
  int64_t found[4] = {};
  EXPECT_EQ(CMBlockFind(map, positions, 2, found), 0);
  EXPECT_EQ(found[0], 1000);
  EXPECT_EQ(found[1], 77);
  EXPECT_EQ(CMRangeFind(map, 6, 0, -2, found), 0);
  EXPECT_EQ((std::vector<int64_t>(found, found + 4)), (std::vector<int64_t>{1004, 1000, 3, 77}));
  CMKill(map);
}

TEST(CompactMap, mistakes_change_nothing_and_say_what) {
  CMMap* map = CMWorldCreate(10);
  EXPECT_STREQ(CMError(map), "");
  EXPECT_EQ(CMInsert(map, 3), 1);
  EXPECT_NE(std::string(CMError(map)).find("rank 3 is a member already, at position 3"), std::string::npos)
      << CMError(map);
  EXPECT_EQ(CMInsert(map, 10), 1);
  EXPECT_NE(std::string(CMError(map)).find("rank 10"), std::string::npos) << CMError(map);
  int64_t rank = -5;
  EXPECT_EQ(CMFind(map, 10, &rank), 1);
  EXPECT_NE(std::string(CMError(map)).find("position 10"), std::string::npos) << CMError(map);
  EXPECT_EQ(CMBlockInsert(map, nullptr, 3), 1);
  EXPECT_EQ(CMBlockInsert(map, nullptr, 0), 0);
  EXPECT_EQ(CMSize(map), 10);
  // Another thread's mistakes are its own.
  std::thread([&] { EXPECT_STREQ(CMError(map), ""); }).join();
  CMKill(map);
  EXPECT_EQ(CMCreate(-1), nullptr);
  EXPECT_EQ(CMWorldCreate((int64_t(1) << 40) + 1), nullptr);
  CMKill(nullptr);
}

TEST(CompactMap, strategies_change_the_representation_not_the_map) {
  CMMap* map = CMCreate(1 << 20);
  std::vector<int64_t> ranks;
  for (int64_t w = 0; w < 200000; w += 1 + (w * w) % 7) ranks.push_back(w);
  ASSERT_EQ(CMBlockInsert(map, ranks.data(), int64_t(ranks.size())), 0);
  EXPECT_EQ(CMSetStrategy(map, CM_SPACE, 0), 0);
  const int64_t small = CMBytes(map);
  EXPECT_EQ(members(map), ranks);
  EXPECT_EQ(CMSetStrategy(map, CM_TIME, 0), 0);
  EXPECT_GE(CMBytes(map), small);
  EXPECT_NE(std::string(CMRepresentation(map)), "");
  EXPECT_EQ(members(map), ranks);
  EXPECT_EQ(CMSetStrategy(map, CM_HYBRID, 7), 1);
  CMKill(map);
  CMMap* everybody = CMWorldCreate(100);  // whatever the map
  EXPECT_EQ(CMSetStrategy(everybody, CM_HYBRID, 7), 1);
  EXPECT_NE(std::string(CMError(everybody)).find("alpha is 7"), std::string::npos) << CMError(everybody);
  CMKill(everybody);
}

}  // namespace

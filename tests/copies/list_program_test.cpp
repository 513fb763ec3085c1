// Lists of blocks whose size is no power of two, in any order.
#include "copies/list_program.hpp"

#include <gtest/gtest.h>

#include <random>

namespace longshore {
namespace {

TEST(ListProgram, KeepsOffsetsThatAreNoMultiplesOfTheBlock) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round)
    for (const Index block : {3, 5, 6, 7, 12, 24}) {
      const Index n = 1 + Index(random() % 4);
      std::vector<OffsetPair> pairs;
      for (Index k = 0; k < n; ++k) pairs.push_back({Index(random() % 4000) - 2000, k * block});
      const ListProgram program(block, pairs);
      for (std::size_t k = 0; k < pairs.size(); ++k)
        EXPECT_EQ(program.at(Index(k)), pairs[k]) << "block " << block << ", pair " << k;
    }
}

}  // namespace
}  // namespace longshore

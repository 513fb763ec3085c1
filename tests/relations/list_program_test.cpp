// Lists of blocks whose size is no power of two, in any order.
#include "relations/list_program.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace longshore {
namespace {

TEST(ListProgram, KeepsOffsetsThatAreNoMultiplesOfTheBlock) {
  std::mt19937 random(1);
  for (const Index block : {3, 5, 6, 7, 12, 24})
    for (const Index unit : {Index{1}, Index{3}, block}) {
      std::vector<OffsetPair> pairs;
      for (Index k = 0; k < 50; ++k) pairs.push_back({Index(random() % 4000) * unit - 2000, k * block});
      std::shuffle(pairs.begin(), pairs.end(), random);
      const ListProgram program(block, pairs);
      for (std::size_t k = 0; k < pairs.size(); ++k)
        EXPECT_EQ(program.at(Index(k)), pairs[k]) << "block " << block << ", unit " << unit << ", pair " << k;
    }
}

}  // namespace
}  // namespace longshore

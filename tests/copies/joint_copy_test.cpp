// How several relations that share lines are carried out; that it is right is a property (tests/properties).
#include "longshore/copies/joint_copy.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace longshore {
namespace {

/// A destination row of blocks of eight elements, each made of two of every member: those four apart.
std::vector<LoopNest> members_of_blocks(Index element, Index blocks) {
  std::vector<LoopNest> members;
  for (Index m = 0; m < 4; ++m) {
    const PairedRuns runs({PairedPeriod{{PairedRun{m, 0, m, 1, 2, 4, 1, 4}}, blocks, 8, 2, 8}});
    members.push_back(LoopNest(element, {{runs, element, element}}));
  }
  return members;
}

TEST(JointCopy, runs_of_few_bytes_go_by_blocks_and_longer_ones_line_by_line) {
  for (const Index element : {1, 2, 4, 8})
    for (const Index blocks : {1, 7, 3000}) {
      CopyProgram::Options options;
      options.stores = Stores::streaming;
      const JointCopy copy(members_of_blocks(element, blocks), JointCopy::Shared::destination, options);
      if (element <= 2 && blocks == 3000)
        EXPECT_EQ(copy.describe(), "4 parts together along a destination row, staged in cache, streaming") << element;
      if (element == 8)
        EXPECT_EQ(copy.describe(), "4 parts together along a destination row, merged line by line, streaming");
      const std::size_t each = std::size_t(element * blocks * 2);
      std::vector<std::byte> source(4 * each), destination(4 * each), expected(4 * each);
      for (std::size_t k = 0; k < source.size(); ++k) source[k] = std::byte(k * 7 + k / 251);
      std::vector<std::byte*> at;
      for (std::size_t m = 0; m < 4; ++m) {
        at.push_back(source.data() + m * each);
        for (std::size_t i = 0; i < std::size_t(blocks) * 2; ++i)
          std::memcpy(expected.data() + (i / 2 * 8 + m + i % 2 * 4) * std::size_t(element),
                      at.back() + i * std::size_t(element), std::size_t(element));
      }
      copy.run(destination.data(), at);
      EXPECT_TRUE(destination == expected) << element << " bytes, " << blocks << " blocks";
    }
}

}  // namespace
}  // namespace longshore

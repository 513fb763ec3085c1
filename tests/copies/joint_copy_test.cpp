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

/// What is packed of a row whose gaps are not of whole words.
TEST(JointCopy, what_is_taken_of_a_single_source_may_lie_any_bytes_apart) {
  for (const Index element : {1, 2, 4})
    for (const Index gap : {1, 2, 3, 5}) {
      constexpr Index length = 24, blocks = 40, rows = 5;
      const Index row = length * blocks, source_row = (length + gap) * blocks;
      const PairedRuns runs({PairedPeriod{{PairedRun{0, 0, 0, length, blocks, length + gap, length + gap, length}}}});
      const LoopNest nest(element,
                          {{PairedRuns::run(rows), source_row * element, row * element}, {runs, element, element}});
      std::vector<std::byte> source(std::size_t(source_row * rows * element)), expected(std::size_t(nest.bytes()));
      for (std::size_t k = 0; k < source.size(); ++k) source[k] = std::byte(k * 7 + k / 251);
      nest.move_plain(expected.data(), source.data());
      for (const auto* table : available_kernels())
        for (const auto stores : {Stores::cached, Stores::streaming}) {
          CopyProgram::Options options;
          options.stores = stores, options.table = table;
          std::vector<std::byte> copied(expected.size());
          JointCopy({nest}, JointCopy::Shared::destination, options).run(copied.data(), {source.data()});
          EXPECT_TRUE(copied == expected) << table->name << ", " << element << " bytes, " << gap << " apart";
        }
    }
}

}  // namespace
}  // namespace longshore

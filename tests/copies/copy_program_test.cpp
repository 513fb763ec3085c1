// Which leaf runs where; that it runs right is a property (tests/properties).
#include <gtest/gtest.h>

#include "longshore/copies/copy_program.hpp"

namespace longshore {
namespace {

constexpr Index n = 64;

std::string leaf(std::vector<RelationAxis> axes) { return CopyProgram(LoopNest(8, std::move(axes))).describe(); }

TEST(CopyProgram, chooses_the_leaf_by_strides) {
  const auto line = PairedRuns::run(n);
  EXPECT_EQ(leaf({{line, n * 8, n * 8}, {line, 8, 8}}), "one block of 32768-byte blocks");
  EXPECT_EQ(leaf({{line, 2 * n * 8, n * 8}, {line, 8, 8}}), "rows of 512-byte blocks in 64");
  EXPECT_EQ(leaf({{line, 16, 8}}), "rows of 8-byte blocks in 64");
  EXPECT_EQ(leaf({{line, 8 * n * 3, 8 * n * 2}, {line, 24, 16}}), "rows of 8-byte blocks in 4096");  // one long loop
  EXPECT_EQ(leaf({{line, 8 * n * 5, 8 * n * 2}, {line, 24, 16}}), "fused rows of 8-byte blocks in 64 x 64");
  EXPECT_EQ(leaf({{line, 8, n * 8}, {line, n * 8, 8}}), "tiles of 8-byte blocks in 64 x 64");
}

TEST(CopyProgram, visits_in_the_destinations_order_whatever_the_messages) {
  const auto line = PairedRuns::run(n);
  // A message in the other order copies the same block.
  EXPECT_EQ(leaf({{line, 8, 8}, {line, n * 8, n * 8}}), "one block of 32768-byte blocks");
}

TEST(CopyProgram, block_cyclic_neighbours_are_one_block) {
  const PairedRuns blocks({PairedPeriod{{PairedRun{0, 0, 0, 4, 8, 12, 4, 4}}}});
  EXPECT_EQ(leaf({{blocks, 8, 8}}), "one block of 256-byte blocks");
}

TEST(CopyProgram, its_memory_follows_the_runs_not_the_elements) {
  const PairedRuns few(
      {PairedPeriod{{PairedRun{0, 0, 0, 1, 2, 3, 1, 2}, PairedRun{7, 2, 5, 2}}, Index{1} << 40, 10, 4, 8}});
  EXPECT_LT(CopyProgram(LoopNest(8, {{few, 8, 8}})).workspace_bytes(), 1000);
}

TEST(CopyProgram, runs_of_a_period_that_comes_often_are_repeated_together_and_what_is_left_of_them) {
  for (const Index repeats : {1, 2, 127, 128, 129, 5003}) {
    const PairedRuns few({PairedPeriod{{PairedRun{0, 0, 0, 1, 2, 3, 1, 2}, PairedRun{7, 2, 5, 2}}, repeats, 10, 4, 8}});
    const LoopNest nest(8, {{few, 8, 8}});
    const std::size_t bytes = 8 * 8 * std::size_t(repeats);
    std::vector<std::byte> source(bytes), copied(bytes), expected(bytes);
    for (std::size_t k = 0; k < bytes; ++k) source[k] = std::byte(k * 7 + k / 251);
    CopyProgram(nest).run(copied.data(), source.data());
    nest.move_plain(expected.data(), source.data());
    EXPECT_EQ(copied, expected) << repeats;
  }
}

TEST(CopyProgram, says_when_it_streams) {
  CopyProgram::Options options;
  options.stores = Stores::streaming;
  const CopyProgram program(LoopNest(8, {{PairedRuns::run(4), 8, 8}}), options);
  EXPECT_EQ(program.describe(), "one block of 32-byte blocks, streaming");
}

}  // namespace
}  // namespace longshore

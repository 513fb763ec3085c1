// Which leaf runs where; that it runs right is a property (tests/properties).
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <random>

#include "longshore/copies/copy_program.hpp"
#include "support/quick.hpp"

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

TEST(CopyProgram, short_loops_of_a_transpose_go_together) {
  const auto run = [](Index n) { return PairedRuns::run(n); };
  // Three short loops are a destination row of 30 elements, and the source is one loop.
  EXPECT_EQ(leaf({{run(500), 8, 240}, {run(5), 16000, 48}, {run(3), 80000, 16}, {run(2), 240000, 8}}),
            "gathered tiles of 8-byte blocks in 500 x 30");
  // What is long enough by itself stays outside.
  EXPECT_EQ(leaf({{run(50), 9600, 24000}, {run(100), 8, 240}, {run(10), 800, 24}, {run(3), 8000, 8}}),
            "gathered tiles of 8-byte blocks in 50 x 100 x 30");
}

TEST(CopyProgram, leaves_of_a_few_blocks_are_lists) {
  const auto run = [](Index n) { return PairedRuns::run(n); };
  EXPECT_EQ(leaf({{run(5000), 96, 96}, {run(4), 24, 8}, {run(3), 8, 32}}), "lists of 8-byte blocks in 5000 x 12");
  EXPECT_EQ(leaf({{run(300), 96, 96}, {run(4), 24, 8}, {run(3), 8, 32}}), "tiles of 8-byte blocks in 300 x 3 x 4")
      << "the list would be as long as what it is for";
  // The shorter of two runs tells how long blocks are.
  const PairedRuns uneven({PairedPeriod{{PairedRun{0, 0, 0, 3}, PairedRun{6, 3, 6, 2}}}});
  EXPECT_EQ(leaf({{run(40000), 40, 80}, {uneven, 8, 8}}), "lists of 8-byte blocks in 40000 x 5");
}

/// Axes in any order on both sides, some of which leave gaps.
TEST(CopyProgram, moves_what_a_plain_loop_moves_whatever_the_order_of_axes) {
  std::mt19937_64 random(20261129);
  const auto any = [&](Index low, Index high) { return std::uniform_int_distribution<Index>(low, high)(random); };
  for (int trial = 0; trial < (test::quick() ? 120 : 600); ++trial) {
    const Index element = std::array<Index, 8>{1, 2, 4, 8, 16, 3, 12, 40}[std::size_t(any(0, 7))];
    std::vector<RelationAxis> axes(std::size_t(any(2, 6)));
    std::vector<Index> sizes, order(axes.size());
    Index elements = 1;
    for (std::size_t k = 0; k < axes.size(); ++k) {
      const Index most = std::min<Index>(60000 / elements, any(0, 2) == 0 ? 6000 : 9);
      sizes.push_back(any(1, std::max<Index>(most, 1)));
      elements *= sizes.back();
      axes[k].runs = PairedRuns::run(sizes.back());
    }
    for (const auto side : {&RelationAxis::source_stride, &RelationAxis::destination_stride}) {
      std::iota(order.begin(), order.end(), Index{0});
      std::shuffle(order.begin(), order.end(), random);
      Index stride = element;
      for (const Index k : order) {
        axes[std::size_t(k)].*side = stride;
        stride *= sizes[std::size_t(k)];
        if (any(0, 5) == 0) stride += element * any(1, 3);
        if (any(0, 9) == 0) stride = (stride + 4095) / 4096 * 4096;
        if (stride > 1 << 22) break;
      }
      if (stride > 1 << 22) axes.clear();
      if (axes.empty()) break;
    }
    if (axes.empty()) continue;
    const LoopNest nest(element, axes);
    const Interval from = nest.source_extent(), to = nest.destination_extent();
    std::vector<std::byte> source(std::size_t(from.last));
    for (std::size_t k = 0; k < source.size(); ++k) source[k] = std::byte(random());
    for (const auto* table : available_kernels())
      for (const auto stores : {Stores::cached, Stores::streaming}) {
        std::vector<std::byte> copied(std::size_t(to.last) + 1, std::byte{0x5a}), expected = copied;
        CopyProgram::Options options;
        options.stores = stores, options.table = table;
        const CopyProgram program(nest, options);
        program.run(copied.data(), source.data());
        nest.move_plain(expected.data(), source.data());
        ASSERT_EQ(copied, expected) << table->name << ": " << program.describe();
      }
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

// Elements of boxes into chunks, and digests that do not depend on how an array is cut.
#include "longshore/copies/chunks.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "longshore/copies/kernels.hpp"

namespace longshore {
namespace {

struct Cut {
  std::vector<Index> shape, chunk;
  Index bytes;
};

std::vector<Index> dense_strides(const std::vector<Index>& extents, Index bytes) {
  std::vector<Index> strides(extents.size());
  for (std::size_t d = extents.size(); d-- > 0;) {
    strides[d] = bytes;
    bytes *= extents[d];
  }
  return strides;
}

/// Every box of a grid, as (start, extents).
std::vector<std::pair<std::vector<Index>, std::vector<Index>>> boxes_of(const Cut& cut) {
  std::vector<std::pair<std::vector<Index>, std::vector<Index>>> boxes;
  std::vector<Index> at(cut.shape.size(), 0);
  while (true) {
    std::vector<Index> start, extents;
    for (std::size_t d = 0; d < at.size(); ++d) {
      start.push_back(at[d] * cut.chunk[d]);
      extents.push_back(std::min(cut.chunk[d], cut.shape[d] - start[d]));
    }
    boxes.emplace_back(start, extents);
    std::size_t d = at.size();
    while (d-- > 0 && ++at[d] == ceil_div(cut.shape[d], cut.chunk[d])) at[d] = 0;
    if (d == std::size_t(-1)) return boxes;
  }
}

ArrayBox box_of(const std::vector<std::byte>& array, const Cut& cut, const std::vector<Index>& start,
                const std::vector<Index>& extents) {
  const auto strides = dense_strides(cut.shape, cut.bytes);
  const Index offset = std::inner_product(start.begin(), start.end(), strides.begin(), Index{0});
  return {array.data() + offset, start, extents, strides};
}

std::vector<std::byte> some_bytes(const Cut& cut, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> array(
      std::size_t(std::accumulate(cut.shape.begin(), cut.shape.end(), cut.bytes, std::multiplies<Index>())));
  for (auto& byte : array) byte = std::byte(random());
  return array;
}

TEST(Chunks, every_element_comes_to_its_chunk_whatever_the_boxes) {
  for (const Index bytes : {1, 2, 3, 4, 8, 12, 16})
    for (const auto& [shape, from, to] :
         std::vector<std::array<std::vector<Index>, 3>>{{{{17}, {5}, {4}}},
                                                        {{{7, 9}, {1, 9}, {7, 2}}},
                                                        {{{6, 5, 7}, {4, 5, 2}, {3, 2, 7}}},
                                                        {{{1, 1}, {1, 1}, {3, 3}}}}) {
      const Cut source{shape, from, bytes}, target{shape, to, bytes};
      const auto array = some_bytes(source, unsigned(bytes));
      const auto chunks = boxes_of(target);
      const Index chunk_bytes = std::accumulate(to.begin(), to.end(), bytes, std::multiplies<Index>());
      std::vector<std::byte> memory(chunks.size() * std::size_t(chunk_bytes));
      std::vector<Index> slots, missing, counts;
      for (std::size_t k = 0; k < chunks.size(); ++k) {
        slots.push_back(Index(k) * chunk_bytes);
        missing.push_back(
            std::accumulate(chunks[k].second.begin(), chunks[k].second.end(), Index{1}, std::multiplies<Index>()));
      }
      for (std::size_t d = 0; d < shape.size(); ++d) counts.push_back(ceil_div(shape[d], to[d]));
      std::vector<std::uint64_t> digests(chunks.size(), 0);
      const std::vector<Index> origin(shape.size(), 0);
      const ChunkBuffers buffers{shape,         to,           origin,         counts,        bytes, {},
                                 memory.data(), slots.data(), missing.data(), digests.data()};
      std::vector<Index> complete;
      for (const auto& [start, extents] : boxes_of(source))
        for (const Index chunk : scatter_to_chunks(box_of(array, source, start, extents), buffers))
          complete.push_back(chunk);
      std::sort(complete.begin(), complete.end());
      std::vector<Index> all(chunks.size());
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(complete, all);
      // What the buffers hold is counted as it came.
      std::vector<Index> lacking;
      for (const auto& [start, extents] : chunks)
        lacking.push_back(std::accumulate(extents.begin(), extents.end(), Index{1}, std::multiplies<Index>()));
      std::vector<std::uint64_t> counted(chunks.size(), 0);
      ChunkBuffers again = buffers;
      again.missing = lacking.data(), again.digests = counted.data();
      complete.clear();
      for (const auto& [start, extents] : boxes_of(source))
        for (const Index chunk : count_in_chunks(start, extents, again)) complete.push_back(chunk);
      std::sort(complete.begin(), complete.end());
      EXPECT_EQ(complete, all);
      EXPECT_EQ(counted, digests);
      for (std::size_t k = 0; k < chunks.size(); ++k) {
        // A chunk's buffer is a box of the array too: element by element they are the same.
        const auto& [start, extents] = chunks[k];
        const auto whole = box_of(array, source, start, extents);
        const auto strides = dense_strides(to, bytes);
        EXPECT_EQ(digests[k], element_digest({memory.data() + slots[k], start, extents, strides}, shape, bytes));
        std::vector<Index> at(shape.size(), 0);
        while (true) {
          const Index here = std::inner_product(at.begin(), at.end(), strides.begin(), slots[k]);
          const Index there = std::inner_product(at.begin(), at.end(), whole.strides.begin(), Index{0});
          ASSERT_EQ(std::memcmp(memory.data() + here, whole.data + there, std::size_t(bytes)), 0);
          std::size_t d = at.size();
          while (d-- > 0 && ++at[d] == extents[d]) at[d] = 0;
          if (d == std::size_t(-1)) break;
        }
      }
    }
}

TEST(Chunks, what_lies_outside_the_buffers_chunks_is_left_alone_and_missing_buffers_are_counted) {
  const Cut cut{{10}, {10}, 4};
  const auto array = some_bytes(cut, 1);
  std::vector<std::byte> memory(8);
  const std::vector<Index> slots{-1, 0};
  std::vector<Index> missing{2, 2};
  std::vector<std::uint64_t> digests(2, 0);
  const ChunkBuffers buffers{{10}, {2}, {1}, {2}, 4, {}, memory.data(), slots.data(), missing.data(), digests.data()};
  EXPECT_EQ(scatter_to_chunks(box_of(array, cut, {0}, {5}), buffers), std::vector<Index>{0});  // indices 2, 3 and 4
  EXPECT_EQ(missing, (std::vector<Index>{0, 1}));
  EXPECT_EQ(digests[0], element_digest(box_of(array, cut, {2}, {2}), cut.shape, 4));
  EXPECT_EQ(std::memcmp(memory.data(), array.data() + 16, 4), 0);
  EXPECT_EQ(memory[4], std::byte{0});
  // One element for all of what is left.
  EXPECT_EQ(scatter_to_chunks({array.data(), {5}, {5}, {0}}, buffers), std::vector<Index>{1});
  EXPECT_EQ(std::memcmp(memory.data() + 4, array.data(), 4), 0);
  EXPECT_THROW(scatter_to_chunks({array.data(), {0, 0}, {1, 1}, {4, 4}}, buffers), Error);
  missing = {2, 2};
  EXPECT_EQ(count_in_chunks({0}, {10}, buffers), std::vector<Index>{1});  // the other has no buffer
  EXPECT_EQ(missing, (std::vector<Index>{2, 0}));
  EXPECT_THROW(count_in_chunks({0, 0}, {1, 1}, buffers), Error);
  // A box without elements completes nothing, not what is complete either.
  EXPECT_EQ(count_in_chunks({5}, {0}, buffers), std::vector<Index>{});
  EXPECT_EQ(scatter_to_chunks({array.data(), {5}, {0}, {4}}, buffers), std::vector<Index>{});
}

TEST(Chunks, at_the_end_of_the_largest_array) {
  constexpr Index half = Index{1} << 62, all = std::numeric_limits<Index>::max();
  const std::byte element{7};
  const Index slot = -1;
  Index missing = 1;
  std::uint64_t digest = 0;
  const ChunkBuffers buffers{{all}, {half}, {1}, {1}, 1, {}, nullptr, &slot, &missing, &digest};
  EXPECT_EQ(scatter_to_chunks({&element, {half}, {1}, {1}}, buffers), std::vector<Index>{0});
  EXPECT_EQ(digest, element_digest({&element, {half}, {1}, {1}}, {all}, 1));
}

TEST(Chunks, one_element_fills_boxes_of_any_shape) {
  const std::uint32_t value = 0x01020304;
  std::vector<std::uint32_t> memory(3 * 4 * 5, 0);
  const std::vector<Index> slots{0};
  std::vector<Index> missing{3 * 4 * 5};
  std::vector<std::uint64_t> digests{0};
  const auto* element = reinterpret_cast<const std::byte*>(&value);
  const ChunkBuffers buffers{{3, 4, 5},
                             {3, 4, 5},
                             {0, 0, 0},
                             {1, 1, 1},
                             4,
                             {element, element + 4},
                             reinterpret_cast<std::byte*>(memory.data()),
                             slots.data(),
                             missing.data(),
                             digests.data()};
  scatter_to_chunks({element, {1, 0, 2}, {2, 4, 3}, {0, 0, 0}}, buffers);
  for (Index i = 0; i < 60; ++i) EXPECT_EQ(memory[std::size_t(i)], i / 20 >= 1 && i % 5 >= 2 ? value : 0u) << i;
  EXPECT_EQ(missing[0], 60 - 24);
  EXPECT_EQ(digests[0], 0u);
}

TEST(Chunks, digests_of_parts_add_up_and_every_kernel_has_the_same) {
  for (const Index bytes : {1, 2, 3, 4, 6, 8, 12, 16, 24}) {
    const Cut cut{{5, 7, 9}, {2, 3, 4}, bytes};
    const auto array = some_bytes(cut, unsigned(bytes));
    const auto whole = element_digest(box_of(array, cut, {0, 0, 0}, cut.shape), cut.shape, bytes);
    std::uint64_t sum = 0;
    for (const auto& [start, extents] : boxes_of(cut))
      sum += element_digest(box_of(array, cut, start, extents), cut.shape, bytes);
    EXPECT_EQ(sum, whole);
    // In Fortran's order of memory they are the same elements.
    std::vector<std::byte> turned(array.size());
    const ArrayBox across{turned.data(), {0, 0, 0}, cut.shape, {bytes, 5 * bytes, 35 * bytes}};
    const auto strides = dense_strides(cut.shape, bytes);
    for (Index i = 0; i < 5; ++i)
      for (Index j = 0; j < 7; ++j)
        for (Index k = 0; k < 9; ++k)
          std::memcpy(turned.data() + (i + 5 * j + 35 * k) * bytes,
                      array.data() + i * strides[0] + j * strides[1] + k * strides[2], std::size_t(bytes));
    EXPECT_EQ(element_digest(across, cut.shape, bytes), whole);
  }
  const auto array = some_bytes({{4096}, {1}, 8}, 3);
  for (const auto* table : available_kernels())
    for (const int width : {1, 2, 3, 4, 5, 6, 7, 8})
      for (const Index stride : {Index(width), Index(width + 3)})
        for (const Index n : {0, 1, 7, 64, 333})
          for (const bool skips : {false, true}) {
            const DigestLoop loop{n, stride, 5, 400, width, 12345, 0x9E3779B97F4A7C15, 0x1234567890ABCDEF, skips, 7};
            EXPECT_EQ(table->digest(array.data(), loop), plain_kernels().digest(array.data(), loop)) << table->name;
          }
}

TEST(Chunks, digests_tell_a_changed_bit_and_two_elements_in_each_others_places) {
  const Cut cut{{64}, {64}, 4};
  const auto array = some_bytes(cut, 9);
  const auto digest = [&](const std::vector<std::byte>& of) {
    return element_digest(box_of(of, cut, {0}, {64}), cut.shape, 4);
  };
  for (std::size_t bit = 0; bit < 64 * 32; ++bit) {
    auto changed = array;
    changed[bit / 8] ^= std::byte(1 << bit % 8);
    EXPECT_NE(digest(changed), digest(array));
  }
  for (std::size_t a = 0; a < 64; ++a)
    for (std::size_t b = 0; b < a; ++b) {
      auto changed = array;
      for (std::size_t byte = 0; byte < 4; ++byte) std::swap(changed[4 * a + byte], changed[4 * b + byte]);
      EXPECT_NE(digest(changed), digest(array));
    }
}

TEST(Chunks, elements_that_are_the_fill_value_add_nothing) {
  std::vector<std::int32_t> values(30, -9);
  const auto* data = reinterpret_cast<const std::byte*>(values.data());
  const std::int32_t fill = -9;
  const auto* skipped = reinterpret_cast<const std::byte*>(&fill);
  EXPECT_EQ(element_digest({data, {0}, {30}, {4}}, {30}, 4, skipped), 0u);
  EXPECT_NE(element_digest({data, {0}, {30}, {4}}, {30}, 4), 0u);
  values[3] = 5;
  EXPECT_EQ(element_digest({data, {0}, {30}, {4}}, {30}, 4, skipped),
            element_digest({data + 12, {3}, {1}, {4}}, {30}, 4, skipped));
}

}  // namespace
}  // namespace longshore

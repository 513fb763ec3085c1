// Messages of nests, cut into packets for a ring, and where these end.
#include "movers/nest_message.hpp"

#include <gtest/gtest.h>

#include "support/arrays.hpp"

namespace longshore::test {
namespace {

using Halves = PacketedMessage::Halves;
using Bytes = std::vector<std::byte>;

/// From a matrix of so many rows and columns, which lie `pitch` bytes apart, to its transpose.
LoopNest transposed(Index element, Index rows, Index columns, Index pitch, Index pitch_there) {
  return LoopNest(element, {{PairedRuns::run(columns), element, pitch_there}, {PairedRuns::run(rows), pitch, element}});
}

/// `sent` packet by packet through a slot into memory that begins so far behind a line; what was there stays.
Bytes delivered(const LoopNest& nest, const MessageCut& cut, std::byte* source, std::byte* destination, Index size) {
  const auto sender = nest_message(nest, cut, Halves::assembly, {}, source);
  const auto receiver = nest_message(nest, cut, Halves::disassembly, {Stores::streaming, nullptr, {}}, destination);
  EXPECT_EQ(sender->packets(), receiver->packets());
  for (Index k = 0; k < sender->packets(); ++k) {
    EXPECT_EQ(sender->packet_bytes(k), receiver->packet_bytes(k));
    EXPECT_LE(sender->packet_bytes(k), *cut.capacity);
    Bytes slot(std::size_t(sender->packet_bytes(k)));
    sender->pack(k, slot.data(), k % 2 ? Stores::streaming : Stores::cached);
    receiver->unpack(k, slot.data());
  }
  return {destination, destination + size};
}

TEST(NestMessage, packets_of_a_transpose_deliver_it_wherever_lines_begin) {
  for (const Index element : {1, 4, 8, 16, 24})
    for (const auto& [rows, columns] : {std::pair{Index{1}, Index{300}}, {300, 1}, {64, 64}, {67, 301}, {203, 130}})
      for (const Index capacity : {element, Index{4096}, Index{32768}})
        for (const Index phase : {0, 8, 16, 63}) {
          if (capacity < element || (capacity == element && rows * columns > 9000)) continue;
          const Index pitch = columns * element, pitch_there = (rows * element + 127) / 64 * 64;
          const auto nest = transposed(element, rows, columns, pitch, pitch_there);
          Bytes source(std::size_t(rows * pitch)), expected(std::size_t(columns * pitch_there));
          for (std::size_t i = 0; i < source.size(); ++i) source[i] = element_byte(Index(i), 0);
          nest.move_plain(expected.data(), source.data());
          Bytes memory(expected.size() + 128);
          std::byte* const to = memory.data() + (64 - std::size_t(memory.data()) % 64) + phase;
          EXPECT_TRUE(delivered(nest, {capacity, true, phase}, source.data(), to, Index(expected.size())) == expected)
              << rows << " x " << columns << " of " << element << ", " << capacity << ", " << phase;
        }
}

TEST(NestMessage, narrow_transposes_have_packets_of_some_size) {
  for (const Index columns : {1, 2, 5, 60}) {
    const Index rows = 2'000'000 / columns, capacity = 131072;
    const auto nest = transposed(8, rows, columns, columns * 8, rows * 8);
    const auto message = nest_message(nest, {capacity, true, 16}, Halves::assembly, {}, nullptr);
    EXPECT_LE(message->packets(), 2 * nest.bytes() / capacity) << columns;
    EXPECT_LE(message->workspace_bytes(), nest.bytes() / 16) << columns;
  }
}

TEST(NestMessage, packets_of_a_transpose_share_no_line_but_those_at_the_ends_of_rows) {
  const Index rows = 500, columns = 40, pitch_there = 4096;
  const auto nest = transposed(8, rows, columns, columns * 8, pitch_there);
  for (const Index phase : {0, 16, 40}) {
    Bytes memory(std::size_t(columns * pitch_there) + 128);
    std::byte* const to = memory.data() + (64 - std::size_t(memory.data()) % 64) + phase;
    const MessageCut cut{32768, true, phase};
    const auto receiver = nest_message(nest, cut, Halves::disassembly, {}, to);
    ASSERT_GT(receiver->packets(), 3);
    Index inner = 0;
    for (Index k = 0; k < receiver->packets(); ++k) {
      std::fill(memory.begin(), memory.end(), std::byte{0});
      const Bytes slot(std::size_t(receiver->packet_bytes(k)), std::byte{1});
      receiver->unpack(k, slot.data());
      for (Index row = 0; row < columns; ++row) {
        const auto first = to + row * pitch_there, last = first + rows * 8;
        for (auto at = first; at < last - 1; ++at)
          if (at[0] != at[1]) {
            EXPECT_EQ(std::size_t(at + 1) % 64, 0u) << "packet " << k << " at " << at + 1 - first << ", " << phase;
            ++inner;
          }
      }
    }
    EXPECT_GT(inner, 0) << "rows are cut";
  }
}

}  // namespace
}  // namespace longshore::test

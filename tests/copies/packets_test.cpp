#include "longshore/copies/packets.hpp"
#include "support/expect_error.hpp"

namespace longshore {
namespace {

using Halves = PacketedMessage::Halves;

const LoopNest rows(8, {{PairedRuns::run(10), 1600, 800}, {PairedRuns::run(100), 8, 8}});  // 10 rows of 800 bytes

PacketedMessage cut(Index capacity, Halves halves = Halves::both) { return PacketedMessage(rows, capacity, halves); }

TEST(PacketedMessage, what_fits_is_one_packet) {
  EXPECT_EQ(cut(8000).packets(), 1);
  EXPECT_EQ(cut(INT64_MAX).packets(), 1);
  EXPECT_EQ(cut(8000).packet_bytes(0), 8000);
}

TEST(PacketedMessage, cuts_evenly) {
  EXPECT_EQ(cut(7999).packets(), 2);  // five rows each rather than nine and one
  EXPECT_EQ(cut(7999).largest_packet_bytes(), 4000);
  EXPECT_EQ(cut(800).packets(), 10);
  EXPECT_EQ(cut(799).packets(), 20);
  EXPECT_EQ(cut(8).packets(), 1000);
  EXPECT_EQ(cut(15).packets(), 1000);
}

TEST(PacketedMessage, knows_what_lies_contiguously) {
  const auto packets = cut(800);
  EXPECT_EQ(packets.contiguous_source(3), 4800);
  EXPECT_EQ(packets.contiguous_destination(3), 2400);
  EXPECT_EQ(cut(1600).contiguous_source(0), std::nullopt);
  EXPECT_EQ(cut(1600).contiguous_destination(1), 1600);
}

TEST(PacketedMessage, packs_the_same_with_either_kind_of_stores) {
  EXPECT_FALSE(cut(800).streams());
  const PacketedMessage packets(rows, 1600, Halves::assembly, {}, true);
  EXPECT_TRUE(packets.streams());
  EXPECT_FALSE(PacketedMessage(rows, 8000, Halves::assembly, {}, true).streams()) << "one packet";
  std::vector<std::byte> source(16000), cached(1600), streamed(1600);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = std::byte(i * 7 % 251);
  packets.pack(2, cached.data(), source.data());
  packets.pack(2, streamed.data(), source.data(), Stores::streaming);
  EXPECT_TRUE(cached == streamed);
}

TEST(PacketedMessage, its_memory_does_not_follow_the_elements) { EXPECT_LT(cut(400).workspace_bytes(), 4096); }

TEST(PacketedMessage, arguments_are_checked) {
  test::expect_error(ErrorKind::memory_limit, {"7 bytes", "element of 8"}, [] { cut(7); });
  test::expect_error(ErrorKind::argument, {"packet 10", "[0, 10)"}, [] { cut(800).packet_bytes(10); });
  test::expect_error(ErrorKind::argument, {"packet -1"}, [] { cut(800).contiguous_source(-1); });
}

}  // namespace
}  // namespace longshore

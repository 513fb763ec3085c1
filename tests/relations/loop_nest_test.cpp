#include "longshore/copies/packets.hpp"

#include "support/expect_error.hpp"
#include "support/pairs.hpp"

namespace longshore {
namespace {

using test::expect_error;
using test::pairs_of;

/// rows x columns of 8-byte elements between two row-major boxes.
LoopNest box(Index rows, Index columns, Index source_pitch, Index destination_pitch) {
  return LoopNest(8,
                  {{PairedRuns::run(rows), source_pitch * 8, destination_pitch * 8}, {PairedRuns::run(columns), 8, 8}});
}

TEST(LoopNest, whole_arrays_become_one_axis) {
  const auto canonical = box(5, 7, 7, 7).canonical();
  ASSERT_EQ(canonical.axes().size(), 1u);
  EXPECT_EQ(canonical.axes()[0].runs, PairedRuns::run(35));
  EXPECT_EQ(box(5, 7, 7, 7).contiguous_source(), 0);
  EXPECT_EQ(box(5, 7, 7, 9).contiguous_source(), 0);
  EXPECT_EQ(box(5, 7, 7, 9).contiguous_destination(), std::nullopt);
}

TEST(LoopNest, unit_axes_become_offsets) {
  const LoopNest relation(4, {{PairedRuns::run(1, 3, 5), 100, 200}, {PairedRuns::run(1, 1, 2), 4, 4}}, 7, 9);
  const auto canonical = relation.canonical();
  EXPECT_TRUE(canonical.axes().empty());
  EXPECT_EQ(canonical.source_base(), 7 + 300 + 4);
  EXPECT_EQ(canonical.destination_base(), 9 + 1000 + 8);
  EXPECT_EQ(canonical.contiguous_source(), 311);
}

TEST(LoopNest, a_cyclic_side_can_be_contiguous_in_its_own_memory) {
  // Four blocks of two, side by side in the source, spread in the destination.
  const LoopNest relation(8, {{PairedRuns({PairedPeriod{{PairedRun{0, 0, 0, 2, 4, 4, 2, 4}}}}), 8, 8}});
  EXPECT_EQ(relation.contiguous_source(), 0);
  EXPECT_EQ(relation.contiguous_destination(), std::nullopt);
  EXPECT_EQ(relation.inverse().contiguous_destination(), 0);
  // The same where the source's blocks are of two sizes in turn.
  const LoopNest uneven(
      8,
      {{PairedRuns({PairedPeriod{{PairedRun{0, 0, 0, 2, 1, 0, 0, 0}, PairedRun{4, 2, 4, 3, 1, 0, 0, 0}}, 3, 9, 5, 9}}),
        8, 8}});
  EXPECT_EQ(uneven.contiguous_source(), 0);
}

TEST(LoopNest, patterns_in_words_of_loops) {
  const auto rows = box(5, 7, 10, 7);
  const auto source = rows.source_pattern(), destination = rows.destination_pattern();
  EXPECT_EQ(source.block_bytes, 56);
  ASSERT_EQ(source.loops.size(), 1u);
  EXPECT_EQ(source.loops[0].count, 5);
  EXPECT_EQ(source.loops[0].stride, 80);
  EXPECT_TRUE(source.regular);
  EXPECT_EQ(destination.block_bytes, 280);
  EXPECT_TRUE(destination.loops.empty());
}

TEST(LoopNest, an_empty_one_is_harmless) {
  const LoopNest none(8, {{PairedRuns::run(3), 8, 8}, {PairedRuns(), 8, 8}});
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.bytes(), 0);
  EXPECT_TRUE(none.canonical().empty());
  EXPECT_EQ(none.contiguous_source(), std::nullopt);
  none.move_plain(nullptr, nullptr);
  CopyProgram(none).run(nullptr, nullptr);
  EXPECT_EQ(CopyProgram(none).describe(), "nothing");
  EXPECT_EQ(PacketedMessage(none, 8, PacketedMessage::Halves::both).packets(), 0);
}

TEST(LoopNest, arguments_are_checked) {
  const auto relation = box(2, 3, 3, 3);
  expect_error(ErrorKind::type, {"0 bytes"}, [] { LoopNest(0, {}); });
  expect_error(ErrorKind::argument, {"position 6", "[0, 6)"}, [&] { relation.at(6); });
  expect_error(ErrorKind::argument, {"axis 2", "[0, 2)"}, [&] { relation.restrict(2, 0, 1); });
  expect_error(ErrorKind::argument, {"[0, 4)", "[0, 3)"}, [&] { relation.restrict(1, 0, 4); });
  const auto half = PairedRuns::run(Index{1} << 32);
  expect_error(ErrorKind::overflow, {"product"}, [&] { LoopNest(1, {{half, 1, 1}, {half, 1, 1}}); });
  expect_error(ErrorKind::overflow, {"product"}, [&] { LoopNest(8, {{PairedRuns::run(Index{1} << 61), 8, 8}}); });
}

}  // namespace
}  // namespace longshore

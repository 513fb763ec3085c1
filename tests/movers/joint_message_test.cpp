// A message that is unpacked together with what its receiver has itself: both deliver what they would alone.
#include "movers/joint_message.hpp"

#include <algorithm>

#include "longshore/plans/motion_plan.hpp"
#include "support/arrays.hpp"
#include "support/expect_error.hpp"

namespace longshore::test {
namespace {

struct Case {
  const char *source, *destination;
  std::vector<Index> shape;
  std::size_t interleaved;
  Index element_bytes = 8;
};

/// What rank 1 sends to rank 0 through packets of so many bytes, with what rank 0 keeps; the number of packets.
Index deliver(const Case& of, Index capacity, Stores stores) {
  const MotionPlan plan(Layout::parse(of.source, of.shape), Layout::parse(of.destination, of.shape), of.element_bytes);
  Arrays source(plan.source(), of.element_bytes), destination(plan.destination(), of.element_bytes);
  for (std::size_t p = 0; p < 2; ++p)
    for (std::size_t i = 0; i < source.memory[p].size(); ++i) source.memory[p][i] = element_byte(Index(i), Index(p));
  std::vector<LoopNest> relations(2, LoopNest(1, {}));
  for (const auto& motion : plan.receives(0)) {
    relations[std::size_t(motion.source)] = plan.relation_by_dimension(motion);
    plan.relation(motion).move_plain(destination.memory[0].data(), source.memory[std::size_t(motion.source)].data());
  }
  const auto expected = destination.memory[0];
  destination.clear();
  const JointCut cut(relations[1], of.interleaved, capacity);
  if (!cut.possible()) return 0;
  const auto sender = joint_message(cut, source.memory[1].data());
  const auto receiver = joint_message(cut, relations[0], source.memory[0].data(), destination.memory[0].data(),
                                      {Stores::streaming, nullptr, {}});
  Bytes slot(std::size_t(capacity) + 64);
  Index bytes = 0;
  for (Index packet = 0; packet < sender->packets(); ++packet) {
    EXPECT_LE(sender->packet_bytes(packet), capacity);
    EXPECT_EQ(sender->packet_bytes(packet), receiver->packet_bytes(packet));
    const auto n = sender->packet_bytes(packet);
    std::fill(slot.begin() + n, slot.end(), std::byte{0xA5});
    sender->pack(packet, slot.data(), stores);
    EXPECT_TRUE(std::all_of(slot.begin() + n, slot.end(), [](std::byte b) { return b == std::byte{0xA5}; }));
    receiver->unpack(packet, slot.data());
    bytes += n;
  }
  EXPECT_EQ(bytes, relations[1].bytes());
  EXPECT_EQ(sender->packets(), receiver->packets());
  EXPECT_TRUE(destination.memory[0] == expected) << plan.to_string() << ", " << capacity;
  EXPECT_GT(sender->workspace_bytes(), 0);
  EXPECT_GT(receiver->workspace_bytes(), 0);
  return sender->packets();
}

const Case cases[] = {
    {"(*, CYCLIC) on 2", "(*, BLOCK) on 2", {37, 260}, 1},
    {"(*, CYCLIC(3)) on 2", "(*, CYCLIC(5)) on 2", {16, 333}, 1},
    {"(*, CYCLIC(3)) on 2", "(*, CYCLIC(5)) on 2", {16, 333}, 1, 4},
    {"(*, CYCLIC(3)) on 2", "(*, CYCLIC(5)) on 2", {16, 333}, 1, 3},
    {"(*, CYCLIC(5)) on 2", "(*, CYCLIC(3)) on 2", {37, 333}, 1},
    {"(*, CYCLIC(7)) on 2", "(*, CYCLIC(4)) on 2", {19, 1000}, 1, 4},
    {"(*, CYCLIC(40)) on 2", "(*, CYCLIC(3)) on 2", {18, 500}, 1, 8},
    {"(CYCLIC(4), CYCLIC(4)) on 1x2", "(CYCLIC(10), CYCLIC(10)) on 2x1", {65, 140}, 1},
    {"(*, *, CYCLIC(2)) on 2", "(*, *, BLOCK) on 2", {5, 7, 90}, 2},
    {"(CYCLIC(4), *, CYCLIC(2)) on 1x2", "(CYCLIC, *, BLOCK) on 2x1", {9, 6, 88}, 2},
    {"(*, CYCLIC(2), *) on 2", "(*, BLOCK, *) on 2", {6, 40, 5}, 1},
};

TEST(JointMessage, delivers_what_both_would_alone) {
  for (const auto& of : cases)
    for (const Index capacity : {Index{1100}, Index{2048}, Index{5000}, Index{1} << 20})
      for (const auto stores : {Stores::cached, Stores::streaming}) EXPECT_GT(deliver(of, capacity, stores), 0);
}

TEST(JointMessage, is_not_made_where_a_row_does_not_fit) {
  EXPECT_EQ(deliver(cases[0], 64, Stores::cached), 0);
  EXPECT_EQ(deliver({"(CYCLIC) on 2", "(BLOCK) on 2", {260}, 0}, Index{1} << 20, Stores::cached), 0);
}

TEST(JointMessage, has_two_ends) {
  const JointCut cut(LoopNest(8, {{PairedRuns::run(4), 80, 80}, {PairedRuns::run(10), 8, 8}}), 1, 1000);
  const auto sender = joint_message(cut, nullptr);
  expect_error(ErrorKind::argument, {"unpacked by its receiver"}, [&] { sender->unpack(0, nullptr); });
}

}  // namespace
}  // namespace longshore::test

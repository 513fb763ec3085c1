#include "plans/interleaving.hpp"

#include <gtest/gtest.h>

namespace longshore {
namespace {

MotionPlan between_columns(const std::string& source, const std::string& destination, Index rows = 8) {
  const std::vector<Index> shape{rows, 4800};
  return MotionPlan(Layout::parse("(*, " + source + ") on 3", shape),
                    Layout::parse("(*, " + destination + ") on 3", shape), 8);
}

TEST(Interleaving, short_runs_are_moved_jointly_by_who_owns_the_other_side) {
  EXPECT_EQ(joint_direction(between_columns("CYCLIC", "BLOCK")), Direction::pull);
  EXPECT_EQ(joint_direction(between_columns("BLOCK", "CYCLIC")), Direction::push);
  EXPECT_EQ(joint_direction(between_columns("CYCLIC", "CYCLIC(8)")), Direction::pull);
  EXPECT_EQ(joint_direction(between_columns("BLOCK", "CYCLIC(800)")), std::nullopt);
}

TEST(Interleaving, shorter_runs_are_put_together_and_in_cache_dealt_out_where_a_block_has_one_for_each_rank) {
  for (const char* shorter : {"CYCLIC", "CYCLIC(2)", "CYCLIC(3)", "CYCLIC(7)", "CYCLIC(8)"})
    for (const Index rows : {8, 4800})
      EXPECT_EQ(joint_direction(between_columns("CYCLIC(8)", shorter, rows)), Direction::pull) << shorter;
  EXPECT_EQ(joint_direction(between_columns("CYCLIC(8)", "CYCLIC(4)")), Direction::push);
  EXPECT_EQ(joint_direction(between_columns("CYCLIC(8)", "CYCLIC(4)", 4800)), Direction::pull);
}

TEST(Interleaving, lines_of_a_source_go_to_several_where_runs_are_shorter) {
  const auto so = [](const char* a, const char* b) { return lines_go_to_several(between_columns(a, b)); };
  EXPECT_TRUE(so("CYCLIC(3)", "CYCLIC(5)"));
  EXPECT_TRUE(so("CYCLIC(5)", "CYCLIC(3)"));
  EXPECT_TRUE(so("BLOCK", "CYCLIC(7)"));
  EXPECT_FALSE(so("BLOCK", "CYCLIC(8)"));
  EXPECT_TRUE(so("CYCLIC", "CYCLIC(21)"));
  EXPECT_FALSE(so("CYCLIC", "CYCLIC(24)"));
  EXPECT_FALSE(so("CYCLIC(9)", "CYCLIC(10)"));
  EXPECT_FALSE(so("CYCLIC", "BLOCK"));
}

TEST(Interleaving, parts_in_cache_are_carried_jointly_where_they_are_many_and_their_runs_fit) {
  const auto between = [](const std::string& source, const std::string& destination) {
    return joint_from_bytes(MotionPlan(Layout::parse(source, {8, 4800}), Layout::parse(destination, {8, 4800}), 8));
  };
  const Index of_two = between("(*, CYCLIC) on 2", "(*, BLOCK) on 2"),
              of_eight = between("(*, CYCLIC) on 8", "(*, BLOCK) on 8");
  EXPECT_LT(of_eight, of_two);
  EXPECT_EQ(between("(*, CYCLIC(3)) on 8", "(*, CYCLIC(6)) on 8"), of_eight);
  EXPECT_EQ(between("(*, CYCLIC(32)) on 8", "(*, CYCLIC(100)) on 8"), of_eight);
  EXPECT_EQ(between("(*, CYCLIC(2)) on 8", "(*, GEN_BLOCK(1, 4799)) on 2"), of_eight);
  EXPECT_EQ(between("(*, CYCLIC(3)) on 8", "(*, CYCLIC(5)) on 8"), of_two);
  EXPECT_LT(between("(*, CYCLIC(3)) on 4", "(*, CYCLIC(5)) on 4"), of_two);
}

}  // namespace
}  // namespace longshore

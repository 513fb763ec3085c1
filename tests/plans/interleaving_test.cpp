#include "plans/interleaving.hpp"

#include <gtest/gtest.h>

namespace longshore {
namespace {

MotionPlan between_columns(const std::string& source, const std::string& destination) {
  const std::vector<Index> shape{8, 4800};
  return MotionPlan(Layout::parse("(*, " + source + ") on 3", shape),
                    Layout::parse("(*, " + destination + ") on 3", shape), 8);
}

TEST(Interleaving, short_runs_are_moved_jointly_by_who_owns_the_other_side) {
  EXPECT_EQ(joint_direction(between_columns("CYCLIC", "BLOCK")), Direction::pull);
  EXPECT_EQ(joint_direction(between_columns("BLOCK", "CYCLIC")), Direction::push);
  EXPECT_EQ(joint_direction(between_columns("CYCLIC", "CYCLIC(8)")), Direction::pull);
  EXPECT_EQ(joint_direction(between_columns("BLOCK", "CYCLIC(800)")), std::nullopt);
}

TEST(Interleaving, shorter_runs_are_written_jointly_where_a_block_has_one_for_each_rank) {
  for (const char* shorter : {"CYCLIC(4)", "CYCLIC(8)"})
    EXPECT_EQ(joint_direction(between_columns("CYCLIC(8)", shorter)).has_value(), true) << shorter;
  for (const char* shorter : {"CYCLIC", "CYCLIC(2)", "CYCLIC(3)", "CYCLIC(7)"}) {
    EXPECT_EQ(joint_direction(between_columns("CYCLIC(8)", shorter)), std::nullopt) << shorter;
    EXPECT_EQ(preferred_direction(between_columns("CYCLIC(8)", shorter)), Direction::push) << shorter;
  }
}

}  // namespace
}  // namespace longshore

// Who has what of a box, against global_to_local, element by element.
#include "longshore/plans/box_parts.hpp"

#include <gtest/gtest.h>

#include "support/expect_error.hpp"

namespace longshore::test {
namespace {

TEST(BoxParts, each_element_of_a_box_comes_from_its_place_at_its_owner) {
  for (const char* text :
       {"(BLOCK, *) on 3", "(*, CYCLIC(2)) on 2", "(CYCLIC(3), CYCLIC(2)) on 2x3", "(BLOCK, CYCLIC) on 2x2, order=F",
        "(CYCLIC(2), BLOCK) on 2x2, source=1x1", "(BLOCK, BLOCK) on 20x1", "(CYCLIC(4), *) on 2, ld=16"}) {
    const auto layout = Layout::parse(text, {11, 13});
    for (const auto& [first, last] : std::vector<std::pair<std::vector<Index>, std::vector<Index>>>{
             {{0, 0}, {11, 13}}, {{3, 5}, {4, 6}}, {{2, 1}, {9, 12}}, {{10, 0}, {11, 13}}, {{4, 7}, {4, 9}}}) {
      const Index width = last[1] - first[1], elements = (last[0] - first[0]) * width;
      std::vector<int> seen(static_cast<std::size_t>(elements));
      for (const auto& part : parts_of_box(layout, first, last, 8)) {
        const auto strides = layout.local_strides(part.rank, 8);
        const auto reader = part.relation.reader(0, part.relation.elements());
        Index before = -1;
        for (Index k = 0; k < part.relation.elements(); ++k) {
          const auto pair = part.relation.at(k);
          ASSERT_GT(pair.destination, before) << text;
          before = pair.destination;
          const Index element = pair.destination / 8;
          const auto place = layout.global_to_local({first[0] + element / width, first[1] + element % width});
          EXPECT_EQ(place.rank, part.rank) << text;
          EXPECT_EQ(pair.source, place.local[0] * strides[0] + place.local[1] * strides[1]) << text;
          ++seen[std::size_t(element)];
        }
      }
      EXPECT_EQ(seen, std::vector<int>(seen.size(), 1)) << text;
    }
  }
}

TEST(BoxParts, what_a_plan_brings_ascends_in_the_destination) {
  const std::vector<Index> shape{9, 10};
  const auto from = Layout::parse("(CYCLIC(2), *) on 3", shape), to = Layout::parse("(*, BLOCK) on 4, order=F", shape);
  const MotionPlan plan(from, to, 4);
  for (Index rank = 0; rank < 4; ++rank) {
    Index elements = 0;
    for (const auto& part : incoming_parts(plan, rank)) elements += part.relation.elements();
    EXPECT_EQ(elements, to.local_size(rank));
  }
  const MotionPlan gaps(from, Layout::parse("(*, BLOCK) on 4, ld=7", shape), 4);
  expect_error(ErrorKind::argument, {"leaves gaps"}, [&] { incoming_parts(gaps, 0); });
}

}  // namespace
}  // namespace longshore::test

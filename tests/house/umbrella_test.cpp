// What users get with the one header of the library: this test includes no other one of it.
#include <longshore/longshore.hpp>

#include <gtest/gtest.h>

namespace {

using namespace longshore;

TEST(Umbrella, has_what_is_needed_to_move_layouts) {
  const auto rows = Layout::parse("(BLOCK, *) on 3", {5, 4}), columns = Layout::parse("(*, CYCLIC) on 2", {5, 4});
  std::vector<int> whole(20);
  for (int i = 0; i < 20; ++i) whole[std::size_t(i)] = i;
  auto moved = make_local_arrays<int>(columns);
  redistribute(scatter(whole, rows), rows, moved, columns);
  EXPECT_EQ(moved[1], (std::vector{1, 3, 5, 7, 9, 11, 13, 15, 17, 19}));
  EXPECT_EQ(gather(moved, columns), whole);
}

TEST(Umbrella, has_what_is_needed_to_move_blocks) {
  const auto blocks = even_floor_plan(Region::of_shape({4, 4}), 2);
  XArray u(blocks, {}, {sizeof(double), Point{1, 1}});
  for (Index k = 0; k < 2; ++k) {
    const View<double, 2> view(u.grid(k));
    for (Index i = blocks.region(k).lower()[0]; i < blocks.region(k).upper()[0]; ++i)
      for (Index j = 0; j < 4; ++j) view(i, j) = double(10 * i + j);
  }
  bind_threads(halo_exchange(blocks, {2, 1}), u, u)->move();
  EXPECT_EQ((View<double, 2>(u.grid(0))(2, 3)), 23);
  EXPECT_EQ((View<double, 2>(u.grid(1))(1, 0)), 10);
}

TEST(Umbrella, has_the_other_rooms) {
  EXPECT_EQ(RankMap::of(std::vector<Index>{8, 0, 16}, 17).rank(16), 2);
  EXPECT_EQ(Runs::interval(2, 5).size(), 3);
}

}  // namespace

// The thesis's own examples: the 24 members of section 4.1.2.1,
// rows and columns of a million nodes, the sub-mesh of figure 4.4.
#include "longshore/ranks/rank_groups.hpp"
#include "ranks/thesis/bdd.hpp"
#include "support/expect_error.hpp"
#include "support/ranks.hpp"

namespace longshore {
namespace {

using namespace test;
using thesis::Bdd;
using thesis::BddPath;

Ranks example() {
  auto members = iota(16, 16);
  for (const Index w : {49, 53, 57, 61, 77, 93, 109, 125}) members.push_back(w);
  return members;
}

std::vector<BddPath> diagram_paths(const Ranks& members, int bits) {
  return thesis::plain_bdd_paths(Members(members).intervals(), bits, Bdd::most_paths);
}

/// The paths of the diagram as they are found without one and, where it is installed, as BuDDy does.
void check_paths(const Ranks& members, int bits, std::size_t expected) {
  const auto paths = diagram_paths(members, bits);
  EXPECT_EQ(paths.size(), expected);
  if (thesis::buddy_available()) {
    EXPECT_EQ(thesis::bdd_paths_by_buddy(Members(members).intervals(), bits, Bdd::most_paths), paths);
  }
  const Bdd form(paths, bits);
  ASSERT_EQ(form.size(), Index(members.size()));
  for (std::size_t i = 0; i < members.size(); i += 1 + members.size() / 2000) {
    ASSERT_EQ(form.select(Index(i)), members[i]);
    ASSERT_EQ(form.rank(members[i]), Index(i));
  }
}

TEST(Thesis, the_worked_example_of_twenty_four_members) {
  const auto members = example();
  // [0,0,0,1,X,X,X,X], [0,0,1,1,X,X,0,1], [0,1,X,X,1,1,0,1].
  const std::vector<BddPath> paths{{0b00010000, 0b00001111}, {0b00110001, 0b00001100}, {0b01001101, 0b00110000}};
  EXPECT_EQ(diagram_paths(members, 8), paths);
  const Bdd form(paths, 8);
  EXPECT_EQ(form.size(), 24);
  EXPECT_EQ(form.select(13 - 1), 28);  // the 13th smallest
  for (Index i = 0; i < 24; ++i) EXPECT_EQ(form.select(i), members[std::size_t(i)]);
  for (Index w = 0; w < 256; ++w) {
    const auto at = std::find(members.begin(), members.end(), w);
    EXPECT_EQ(form.rank(w), at == members.end() ? nobody : at - members.begin());
  }
  check_paths(members, 8, 3);
}

TEST(Thesis, odd_and_even_ranks_are_one_path) {
  check_paths(iota(0, 1 << 15, 2), 16, 1);
  check_paths(iota(1, 1 << 15, 2), 16, 1);
}

TEST(Thesis, rows_and_columns_of_a_million_nodes_are_one_path_each) {
  check_paths(iota(1022 * 1024, 1024), 20, 1);
  check_paths(iota(1, 1024, 1024), 20, 1);
}

TEST(Thesis, a_sub_mesh_of_a_million_nodes_is_one_path) {
  Ranks members;  // 128 x 64 of 128 x 128 x 64, in X and Y
  for (Index y = 0; y < 64; ++y)
    for (Index x = 0; x < 128; ++x) members.push_back(y * 128 * 128 + x);
  check_paths(members, 20, 1);
  const auto map = RankMap::of(members, 1 << 20);
  EXPECT_EQ(map.representation(), "nest");
}

TEST(Thesis, a_bdd_of_many_paths_is_read_from_any_member_to_any_other) {
  std::mt19937_64 random(4);
  for (const Index n : {20000, 60000, 65535}) {
    const auto members = random_set(n, 1 << 16, random);
    const auto paths = diagram_paths(members, 16);
    const Bdd form(paths, 16);
    ASSERT_EQ(form.size(), n);
    Ranks read(std::size_t(n), -1);
    form.read(0, n, read.data());
    ASSERT_EQ(read, members);
    for (int k = 0; k < 300; ++k) {
      const Index first = Index(random() % std::uint64_t(n)), count = std::min<Index>(n - first, 1 + k % 7 * 50);
      form.read(first, count, read.data());
      ASSERT_TRUE(std::equal(read.begin(), read.begin() + count, members.begin() + first)) << first << " " << count;
      ASSERT_EQ(form.select(first), members[std::size_t(first)]);
      const Index w = Index(random() % (1 << 16));
      const auto at = std::lower_bound(members.begin(), members.end(), w);
      ASSERT_EQ(form.rank(w), at != members.end() && *at == w ? at - members.begin() : nobody);
    }
    if (!thesis::buddy_available()) continue;
    EXPECT_EQ(thesis::bdd_paths_by_buddy(Members(members).intervals(), 16, Bdd::most_paths), paths);
    const auto map = RankMap::of(members, 1 << 16, Strategy::only("bdd"));
    EXPECT_EQ(compare(RankMap::from_bytes(map.to_bytes(), n), map), Comparison::identical);
  }
}

TEST(Thesis, paths_that_are_none_of_a_diagram_are_refused) {
  auto refused = [](std::vector<BddPath> paths) {
    expect_error(ErrorKind::argument, {"bdd", "diagram"}, [&] { Bdd(paths, 4); });
  };
  refused({{0b0001, 0b1100}, {0b0001, 0b1100}});                    // twice the same
  refused({{0b0000, 0b0111}, {0b0110, 0b0001}});                    // one within the other
  refused({{0b1000, 0b0001}, {0b0000, 0b0001}});                    // downwards
  refused({{0b0000, 0b1000}, {0b0010, 0b1001}, {0b0001, 0b1110}});  // they cross
  Bdd({{{0b0000, 0b1000}, {0b0010, 0b1001}}}, 4);
}

TEST(Thesis, a_bdd_of_too_many_paths_is_refused) {
  std::mt19937_64 random(1);
  const auto members = random_set(1 << 18, 1 << 19, random);
  expect_error(ErrorKind::argument, {"bdd"}, [&] { RankMap::of(members, 1 << 19, Strategy::only("bdd")); });
  if (thesis::buddy_available()) {
    expect_error(ErrorKind::argument, {"more than 100 paths"},
                 [&] { thesis::bdd_paths_by_buddy(Members(members).intervals(), 19, 100); });
    check_paths(example(), 8, 3);  // and BuDDy is as it was
  } else {
    expect_error(ErrorKind::argument, {"libbdd.so.0", "libbdd0c2"},
                 [&] { thesis::bdd_paths_by_buddy(Members(members).intervals(), 16, 1); });
  }
}

TEST(Thesis, the_transpose_of_a_matrix_is_a_set_and_a_permutation) {
  Ranks members;
  for (Index c = 0; c < 100; ++c)
    for (Index r = 0; r < 30; ++r) members.push_back(r * 100 + c);
  const auto map = RankMap::of(members, 5000, Strategy::only("wavelet"));
  EXPECT_EQ(map.representation(), "child");
  expect_map(map, members, 5000);
  // A permutation of everybody needs no set.
  EXPECT_EQ(RankMap::of(members, 3000, Strategy::only("wavelet")).representation(), "wavelet");
}

TEST(Thesis, the_blocks_of_the_bwt_are_asked_in_any_order) {
  std::mt19937_64 random(2);
  const auto members = shuffled(iota(0, 5500), random);
  const auto estimate = rank_module("bwt").estimate(Members(members), analyse(Members(members), 5500));
  if (!estimate.possible) GTEST_SKIP() << estimate.note;
  const auto map = RankMap::of(members, 5500, Strategy::only("bwt"));
  for (int k = 0; k < 200; ++k) {
    const auto i = std::size_t(random() % members.size());
    ASSERT_EQ(map.world_rank(Index(i)), members[i]);
  }
}

}  // namespace
}  // namespace longshore

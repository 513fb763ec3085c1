// Rank maps of any members, against the list of them: each module, each strategy, the algebra, the stored form.
#include "longshore/ranks/rank_groups.hpp"
#include "longshore/ranks/rank_module.hpp"

#include "support/generators.hpp"
#include "support/ranks.hpp"

namespace longshore::test {
namespace {

struct Drawn {
  Ranks members;
  Index world;
};

std::ostream& operator<<(std::ostream& out, const Drawn& drawn) {
  out << drawn.members.size() << " members of " << drawn.world << ":";
  for (std::size_t k = 0; k < std::min<std::size_t>(drawn.members.size(), 40); ++k) out << ' ' << drawn.members[k];
  return out;
}

/// Stretches of different character one after the other, and then sorted, shuffled, turned around or left as they are.
Drawn draw_members(Index world = 0) {
  if (world == 0)
    world =
        *rc::gen::element<Index>(1, 2, 97, 1024, 5000, Index{1} << 20, (Index{1} << 33) + 1, RankMap::largest_world);
  Ranks list;
  for (Index stretches = draw(0, 5); stretches > 0; --stretches) {
    const Index first = *rc::gen::inRange<Index>(0, world),
                n = *rc::gen::element<Index>(1, 2, 3, 17, 64, 127, 128, 129, 300, 1000);
    const Index step = chance(50) ? 1 : draw(1, 9) * (chance(20) ? std::max<Index>(world / 3000, 1) : 1);
    std::uint64_t noise = *rc::gen::arbitrary<std::uint64_t>();
    const bool noisy = chance(30), blocks = chance(30);
    const Index block = draw(2, 8), apart = draw(8, 20);
    for (Index k = 0; k < n; ++k) {
      noise = noise * 6364136223846793005u + 1442695040888963407u;
      list.push_back(first + (noisy    ? Index(noise >> 33) % (4 * n)
                              : blocks ? k / block * apart + k % block
                                       : k * step));
    }
  }
  std::erase_if(list, [&](Index w) { return w >= world; });
  std::unordered_map<Index, bool> seen;
  std::erase_if(list, [&](Index w) { return std::exchange(seen[w], true); });
  const Index order = draw(0, 4);
  if (order <= 1) std::sort(list.begin(), list.end());
  if (order == 2) std::reverse(list.begin(), list.end());
  if (order == 3) {
    std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
    std::shuffle(list.begin(), list.end(), random);
  }
  return {list, world};
}

void holds(const RankMap& map, const Drawn& drawn) {
  const auto& [members, world] = drawn;
  std::unordered_map<Index, Index> position;
  for (std::size_t i = 0; i < members.size(); ++i) position[members[i]] = Index(i);
  RC_ASSERT(map.size() == Index(members.size()));
  RC_ASSERT(map.to_vector() == members);
  for (std::size_t i = 0; i < members.size(); i += 1 + members.size() / 100) {
    RC_ASSERT(map.select(Index(i)) == members[i]);
    RC_ASSERT(map.rank(members[i]) == Index(i));
    for (const Index w : {members[i] - 1, members[i] + 1}) {
      const auto at = position.find(w);
      RC_ASSERT(map.rank(w) == (at == position.end() ? nobody : at->second));
    }
  }
  std::string reason;
  RC_ASSERT(map.validate(reason));
}

RC_GTEST_PROP(RankMap, every_possible_module_holds_what_it_was_given, ()) {
  const auto drawn = draw_members();
  RC_LOG() << drawn;
  const auto analysis = analyse(Members(drawn.members), drawn.world);
  for (const auto* module : all_modules()) {
    constexpr double most_bytes = 1 << 24;  // a bitmap of a huge world teaches nothing
    const auto estimate = module->estimate(Members(drawn.members), analysis);
    if (!estimate.possible || estimate.bytes > most_bytes) continue;
    RC_LOG() << "\n" << module->name();
    const auto map = RankMap::of(drawn.members, drawn.world,
                                 {0.25, {module}, *rc::gen::element(LookupKind::hash, LookupKind::shortcuts)});
    holds(map, drawn);
    const auto back = RankMap::from_bytes(map.to_bytes(), Index(drawn.members.size()));
    RC_ASSERT(back.representation() == map.representation());
    holds(back, drawn);
  }
}

RC_GTEST_PROP(RankMap, strategies_choose_and_runs_say_the_same, ()) {
  const auto drawn = draw_members();
  RC_LOG() << drawn;
  const double alpha = double(draw(0, 4)) / 4;
  const auto map = RankMap::of(drawn.members, drawn.world, Strategy::hybrid(alpha));
  holds(map.with_lookup(LookupKind::lazy), drawn);
  std::vector<AffineRun> runs;
  for (const Index w : drawn.members) {
    if (!runs.empty() && chance(70) && w == runs.back().first + runs.back().count)
      ++runs.back().count;
    else
      runs.push_back({w, 1, 1});
  }
  const auto same = RankMap::of_runs(runs, drawn.world, Strategy::hybrid(alpha));
  holds(same, drawn);
  RC_ASSERT(same == map);
  RC_ASSERT(compare(same, map) == Comparison::identical);
}

RC_GTEST_PROP(RankMap, algebra_is_that_of_lists, ()) {
  const auto a = draw_members();
  const auto b = draw_members(a.world);
  RC_LOG() << a << "\n" << b;
  const auto x = RankMap::of(a.members, a.world), y = RankMap::of(b.members, b.world);
  std::unordered_map<Index, Index> in_a, in_b;
  for (std::size_t k = 0; k < a.members.size(); ++k) in_a[a.members[k]] = Index(k);
  for (std::size_t k = 0; k < b.members.size(); ++k) in_b[b.members[k]] = Index(k);
  Ranks united = a.members, common, alone, positions;
  for (const Index w : b.members)
    if (!in_a.contains(w)) united.push_back(w);
  for (const Index w : a.members) {
    (in_b.contains(w) ? common : alone).push_back(w);
    positions.push_back(in_b.contains(w) ? in_b[w] : nobody);
  }
  RC_ASSERT(group_union(x, y).to_vector() == united);
  RC_ASSERT(group_intersection(x, y).to_vector() == common);
  RC_ASSERT(group_difference(x, y).to_vector() == alone);
  RC_ASSERT(translate_ranks(x, y) == positions);
  for (auto* list : {&united, &common, &alone}) std::sort(list->begin(), list->end());
  RC_ASSERT(set_union(x, y).to_vector() == united);
  RC_ASSERT(set_intersection(x, y).to_vector() == common);
  RC_ASSERT(set_difference(x, y).to_vector() == alone);
}

RC_GTEST_PROP(RankMap, what_comes_twice_or_is_outside_is_refused, ()) {
  auto drawn = draw_members();
  RC_PRE(drawn.members.size() > 1u);
  const auto at = std::size_t(draw(0, Index(drawn.members.size()) - 1)),
             from = std::size_t(draw(0, Index(drawn.members.size()) - 1));
  RC_PRE(at != from);
  const bool outside = chance(30);
  drawn.members[at] = outside ? *rc::gen::element<Index>(-1, drawn.world, INT64_MIN, INT64_MAX) : drawn.members[from];
  RC_LOG() << drawn;
  try {
    RankMap::of(drawn.members, drawn.world);
    RC_FAIL("no error");
  } catch (const Error& error) {
    RC_ASSERT(error.kind() == ErrorKind::argument);
    RC_ASSERT(std::string(error.what()).find(outside ? "outside" : "twice") != std::string::npos);
    RC_ASSERT(std::string(error.what()).find("rank " + std::to_string(drawn.members[at])) != std::string::npos);
  }
}

RC_GTEST_PROP(RankMap, a_stretch_that_comes_again_is_refused, ()) {
  auto drawn = draw_members();
  RC_PRE(!drawn.members.empty());
  const auto n = Index(drawn.members.size());
  const Index first = draw(0, n - 1), last = draw(first + 1, n), times = draw(1, 3);
  const Ranks stretch(drawn.members.begin() + first, drawn.members.begin() + last);
  const Index at = chance(50) ? last : draw(0, n);
  for (Index k = 0; k < times; ++k) drawn.members.insert(drawn.members.begin() + at, stretch.begin(), stretch.end());
  RC_LOG() << drawn;
  try {
    RankMap::of(drawn.members, drawn.world);
    RC_FAIL("no error");
  } catch (const Error& error) {
    RC_ASSERT(error.kind() == ErrorKind::argument);
    RC_ASSERT(std::string(error.what()).find("twice") != std::string::npos);
  }
}

}  // namespace
}  // namespace longshore::test

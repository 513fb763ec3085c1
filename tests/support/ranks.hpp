/// Rank maps of every sort, and what they have to be able to do, beside a plain list of ranks.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "longshore/ranks/rank_module.hpp"

namespace longshore::test {

using Ranks = std::vector<Index>;

struct RankCase {
  std::string name;
  Ranks members;
  Index world;
};

inline Ranks iota(Index first, Index n, Index step = 1) {
  Ranks list(std::size_t(n), 0);
  for (auto& w : list) w = first, first += step;
  return list;
}

inline Ranks random_set(Index n, Index world, std::mt19937_64& random) {
  Ranks list;
  if (n * 3 > world) {
    auto all = iota(0, world);
    std::shuffle(all.begin(), all.end(), random);
    list.assign(all.begin(), all.begin() + n);
  }
  while (Index(list.size()) < n) {
    while (Index(list.size()) < n) list.push_back(Index(random() % std::uint64_t(world)));
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  std::sort(list.begin(), list.end());
  return list;
}

inline Ranks shuffled(Ranks list, std::mt19937_64& random) {
  std::shuffle(list.begin(), list.end(), random);
  return list;
}

/// Members that the case's name says, of a world of about 2^`bits`.
inline std::vector<RankCase> rank_cases(int bits = 14) {
  std::mt19937_64 random(20261121);
  const Index world = Index{1} << bits, huge = Index{1} << 40, side = Index{1} << (bits / 2);
  std::vector<RankCase> cases;
  auto add = [&](std::string name, Ranks members, Index of) {
    cases.push_back({std::move(name), std::move(members), of});
  };
  add("nobody", {}, world);
  add("nobody of nothing", {}, 0);
  add("one", {world - 1}, world);
  add("the last of the largest world", {huge - 1}, huge);
  add("everybody", iota(0, world), world);
  add("backwards", iota(world - 1, world, -1), world);
  add("stride", iota(3, world / 7 - 1, 7), world);
  add("stride of a huge world", iota(5, 1000, huge / 1001), huge);
  Ranks primes;
  for (Index p = 2; p < world; ++p) {
    bool prime = true;
    for (Index d = 2; d * d <= p && prime; ++d) prime = p % d != 0;
    if (prime) primes.push_back(p);
  }
  add("primes", primes, world);
  add("sparse", random_set(world / 100, world, random), world);
  add("half", random_set(world / 2, world, random), world);
  add("all but a few", random_set(world - 20, world, random), world);
  add("sparse in a huge world", random_set(std::min<Index>(2000, world / 4), huge, random), huge);
  add("permutation", shuffled(iota(0, world), random), world);
  add("shuffled part", shuffled(random_set(world / 5, world, random), random), world);
  add("shuffled part of a huge world", shuffled(random_set(std::min<Index>(3000, world / 4), huge, random), random),
      huge);
  Ranks box, transpose, ranges, decreasing, nodes, leaders, faces, cyclic;
  for (Index z = 3; z < 9; ++z)
    for (Index y = 2; y < side / 4; ++y)
      for (Index x = 1; x < 12; ++x) box.push_back((z * (side / 4) + y) * 16 + x);
  add("box of a mesh", box, 16 * 16 * side);
  for (Index c = 0; c < side; ++c)
    for (Index r = 0; r < side; ++r) transpose.push_back(r * side + c);
  add("transpose", transpose, side * side);
  for (Index at = 0; at < world;) {
    const Index n = std::min<Index>(world - at, 1 + Index(random() % 300));
    for (Index k = 0; k < n; ++k) ranges.push_back(at + k);
    at += n + 1 + Index(random() % 300);
  }
  add("ranges", ranges, world);
  for (Index last = world; last > 100; last -= 100)
    for (Index k = last - 60; k < last; ++k) decreasing.push_back(k);
  add("decreasing ranges", decreasing, world);
  auto order = iota(0, world / 16);
  std::shuffle(order.begin(), order.end(), random);
  for (const Index node : order)
    for (Index k = 0; k < 16; ++k) nodes.push_back(node * 16 + k);
  add("shuffled nodes", nodes, world);
  Ranks spread;
  for (const Index node : order) spread.push_back(node * 48 + 5);
  add("shuffled leaders", spread, 3 * world);
  std::sort(order.begin(), order.begin() + world / 64);
  for (Index k = 0; k < world / 64; ++k) leaders.push_back(order[std::size_t(k)] * 16);
  add("leaders", leaders, world);
  for (Index w = 0; w < world; ++w)
    if ((w & 0b1001) == 0b1000 || (w & 0b110100) == 0b010000 || (w >> (bits - 3)) == 5) faces.push_back(w);
  add("faces of a cube", faces, world);
  for (Index b = 0; b < world / 64; b += 3)
    for (Index k = 0; k < 64; k += 2) cyclic.push_back(b * 64 + k);
  add("block-cyclic", cyclic, world);
  Ranks morton, gray;
  for (Index i = 0; i < world; ++i) {
    Index row = 0, column = 0;
    for (int b = 0; b < bits / 2; ++b) row |= (i >> (2 * b + 1) & 1) << b, column |= (i >> (2 * b) & 1) << b;
    morton.push_back(row * side + column);
    gray.push_back(i ^ i >> 1);
  }
  add("Morton order", morton, world);
  add("Gray code", gray, world);
  return cases;
}

/// Everything that a map answers, beside the list.
inline void expect_map(const RankMap& map, const Ranks& members, Index world) {
  ASSERT_EQ(map.size(), Index(members.size()));
  ASSERT_EQ(map.world(), world);
  ASSERT_EQ(map.ascending(), std::is_sorted(members.begin(), members.end()));
  for (Index i = 0; i < map.size(); ++i) ASSERT_EQ(map.world_rank(i), members[std::size_t(i)]) << "at " << i;
  ASSERT_EQ(map.to_vector(), members);
  std::mt19937_64 random(7);
  for (int k = 0; k < 20 && !members.empty(); ++k) {
    const Index first = Index(random() % members.size()),
                n = Index(random() % (members.size() - std::size_t(first) + 1));
    Ranks part(std::size_t(n), 0);
    map.read(first, n, part.data());
    ASSERT_TRUE(std::equal(part.begin(), part.end(), members.begin() + first)) << first << " + " << n;
  }
  std::unordered_map<Index, Index> position;
  for (std::size_t i = 0; i < members.size(); ++i) position[members[i]] = Index(i);
  Ranks asked{-1, 0, 1, world - 1, world, INT64_MAX};
  const std::size_t steps = std::max<std::size_t>(1, members.size() / 300);
  for (std::size_t i = 0; i < members.size(); i += steps)
    for (const Index by : {-1, 0, 1}) asked.push_back(members[i] + by);
  for (int k = 0; k < 100 && world > 0; ++k) asked.push_back(Index(random() % std::uint64_t(world)));
  Ranks found(asked.size()), expected;
  for (const Index w : asked) {
    const auto at = position.find(w);
    expected.push_back(at == position.end() ? nobody : at->second);
  }
  for (std::size_t k = 0; k < asked.size(); ++k) ASSERT_EQ(map.rank(asked[k]), expected[k]) << "rank " << asked[k];
  map.ranks(asked, found);
  ASSERT_EQ(found, expected);
  std::string reason;
  ASSERT_TRUE(map.validate(reason)) << reason;
}

}  // namespace longshore::test

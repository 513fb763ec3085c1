#include "ranks.hpp"

namespace longshore::bench {

double select_seconds(const RankMap& map, std::span<const Index> positions, Questions how, Index passes) {
  return asked(positions, how, passes, [&](Index i) { return map.select(i); });
}

double rank_seconds(const RankMap& map, std::span<const Index> world_ranks, Questions how, Index passes) {
  return asked(world_ranks, how, passes, [&](Index w) { return map.rank(w); });
}

double array_select_seconds(std::span<const std::int32_t> array, std::span<const Index> positions, Questions how,
                            Index passes) {
  return asked(positions, how, passes, [&](Index i) { return Index(array[std::size_t(i)]); });
}

double read_seconds(const RankMap& map, Index passes) {
  constexpr Index piece = 4096;
  std::vector<Index> room(std::size_t(std::min(piece, map.size())));
  return timed(passes, [&] {
    for (Index first = 0; first < map.size(); first += piece)
      map.read(first, std::min(piece, map.size() - first), room.data());
  });
}

double analysis_seconds(std::span<const Index> members, Index world, Index passes) {
  return timed(passes, [&] { analyse_order(Members(members), world); });
}

double union_seconds(const RankMap& a, const RankMap& b, Index passes) {
  return timed(passes, [&] { group_union(a, b); });
}

}  // namespace longshore::bench

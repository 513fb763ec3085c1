/// The loops of `longshore bench ranks`: questions to a rank map, and to the int array beside it. Every function
/// returns the seconds of one pass.
#pragma once

#include <longshore/ranks/rank_groups.hpp>
#include <longshore/ranks/rank_module.hpp>

#include "asked.hpp"

namespace longshore::bench {

double select_seconds(const RankMap& map, std::span<const Index> positions, Questions how, Index passes);
double rank_seconds(const RankMap& map, std::span<const Index> world_ranks, Questions how, Index passes);
/// All members in order.
double read_seconds(const RankMap& map, Index passes);
/// The plain array of 32-bit ranks that MPI libraries keep.
double array_select_seconds(std::span<const std::int32_t> array, std::span<const Index> positions, Questions how,
                            Index passes);

double analysis_seconds(std::span<const Index> members, Index world, Index passes);
double union_seconds(const RankMap& a, const RankMap& b, Index passes);

}  // namespace longshore::bench

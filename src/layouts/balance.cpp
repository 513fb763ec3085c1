#include "longshore/layouts/balance.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>

namespace longshore {

namespace {

void check_ranks(Index ranks) {
  if (ranks < 1) throw Error(ErrorKind::argument, std::to_string(ranks) + " ranks; at least 1");
}

/// Sums before each of the weights, and of all. Where nothing weighs anything, everything counts one.
std::vector<Index> sums_of(std::span<const Index> weights) {
  std::vector<Index> sums{0};
  sums.reserve(weights.size() + 1);
  for (std::size_t k = 0; k < weights.size(); ++k) {
    if (weights[k] < 0)
      throw Error(ErrorKind::argument,
                  "weight " + std::to_string(weights[k]) + " of number " + std::to_string(k) + " is negative");
    sums.push_back(checked_add(sums.back(), weights[k]));
  }
  if (sums.back() == 0) std::iota(sums.begin(), sums.end(), Index{0});
  return sums;
}

}  // namespace

FloorPlan even_floor_plan(const Region& domain, Index ranks, const std::vector<bool>& periodic) {
  check_ranks(ranks);
  const auto blocks = split_evenly(domain, process_grid(ranks, domain.shape(), periodic));
  Map owners(blocks.size());
  std::iota(owners.begin(), owners.end(), Index{0});
  return {blocks, owners};
}

Map balance_in_order(std::span<const Index> weights, Index ranks) {
  check_ranks(ranks);
  const auto sums = sums_of(weights);
  const std::size_t n = weights.size();
  auto sum = [&](std::size_t first, std::size_t last) { return sums[last] - sums[first]; };
  // What follows `first` and weighs no more than `cap`.
  auto fill = [&](std::size_t first, Index cap) {
    const Index most = Index(std::min<Wide>(Wide(sums[first]) + cap, sums.back()));
    return std::size_t(std::upper_bound(sums.begin() + std::ptrdiff_t(first), sums.end(), most) - sums.begin()) - 1;
  };
  auto fits = [&](Index cap) {
    std::size_t at = 0;
    for (Index r = 0; r < ranks && at < n; ++r) at = fill(at, cap);
    return at == n;
  };
  Index low = 0;  // no less than the heaviest, and a fair share
  for (std::size_t k = 0; k < n; ++k) low = std::max(low, sum(k, k + 1));
  low = std::max(low, ceil_div(sums.back(), ranks));
  Index high = sums.back();
  while (low < high) {
    const Index middle = low + (high - low) / 2;
    fits(middle) ? high = middle : low = middle + 1;
  }
  // Below that, every rank takes its share of what is left, as long as the others can bear the rest.
  std::vector<Index> needed(n + 1, 0);
  for (std::size_t k = n; k-- > 0;) needed[k] = 1 + needed[fill(k, low)];
  Map owners(n);
  std::size_t at = 0;
  for (Index rank = 0; rank < ranks && at < n; ++rank) {
    const Index left = ranks - rank, share = sum(at, n) / left;
    const std::size_t farthest = fill(at, low);
    std::size_t end = at;
    auto short_of_share = [&] { return 2 * Wide(sum(at, end)) + sum(end, end + 1) <= 2 * Wide(share); };
    while (end < farthest && (end == at || needed[end] > left - 1 || short_of_share())) ++end;
    std::fill(owners.begin() + std::ptrdiff_t(at), owners.begin() + std::ptrdiff_t(end), rank);
    at = end;
  }
  return owners;
}

Map balance_by_knapsack(std::span<const Index> weights, Index ranks) {
  check_ranks(ranks);
  const auto sums = sums_of(weights);
  auto weight = [&](Index k) { return sums[std::size_t(k) + 1] - sums[std::size_t(k)]; };
  std::vector<Index> order(weights.size());
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return weight(a) > weight(b); });
  using Load = std::pair<Index, Index>;  // and whose
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  // Ranks beyond the number of things get nothing.
  for (Index rank = 0; rank < std::min(ranks, Index(weights.size())); ++rank) loads.push({0, rank});
  Map owners(weights.size());
  for (const Index k : order) {
    auto [load, rank] = loads.top();
    loads.pop();
    owners[std::size_t(k)] = rank;
    loads.push({load + weight(k), rank});
  }
  return owners;
}

FloorPlan balanced_along(std::span<const Region> regions, Index ranks, Curve curve, std::span<const Index> weights) {
  if (!weights.empty() && weights.size() != regions.size())
    throw Error(ErrorKind::shape,
                std::to_string(weights.size()) + " weights for " + std::to_string(regions.size()) + " regions");
  const auto order = order_along(regions, curve);
  std::vector<Index> along;
  along.reserve(order.size());
  for (const Index k : order)
    along.push_back(weights.empty() ? regions[std::size_t(k)].size() : weights[std::size_t(k)]);
  const auto in_order = balance_in_order(along, ranks);
  Map owners(regions.size());
  for (std::size_t k = 0; k < order.size(); ++k) owners[std::size_t(order[k])] = in_order[k];
  return {regions, std::move(owners)};
}

}  // namespace longshore

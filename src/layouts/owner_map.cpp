#include "longshore/layouts/owner_map.hpp"

#include <algorithm>

namespace longshore {

OwnerMap::OwnerMap(const Map& owners, const char* what) {
  Index world = 0;
  for (std::size_t k = 0; k < owners.size(); ++k) {
    if (owners[k] < 0 || owners[k] >= RankMap::largest_world)
      throw Error(ErrorKind::argument, "the owner of " + std::string(what) + " " + std::to_string(k) + " is " +
                                           std::to_string(owners[k]) + "; ranks are 0 to 2^40 - 1");
    world = std::max(world, owners[k] + 1);
  }
  std::vector<Index> ascending = owners;
  if (!std::is_sorted(ascending.begin(), ascending.end())) std::sort(ascending.begin(), ascending.end());
  ascending.erase(std::unique(ascending.begin(), ascending.end()), ascending.end());
  const auto several = ascending.size() < owners.size();
  ranks_ = RankMap::of(several ? ascending : owners, world).with_lookup(LookupKind::lazy);
  if (!several) return;
  const auto n = Index(owners.size()), m = Index(ascending.size());
  which_ = FixedIntegers(n, FixedIntegers::bits_of(m - 1));
  // Neighbours often have one owner.
  Index position = 0;
  for (Index k = 0; k < n; ++k) {
    const Index owner = owners[std::size_t(k)];
    if (ascending[std::size_t(position)] != owner)
      position = std::lower_bound(ascending.begin(), ascending.end(), owner) - ascending.begin();
    which_.set(k, position);
  }
}

Map OwnerMap::to_map() const {
  Map owners(std::size_t(size()), 0);
  if (one_each())
    ranks_.read(0, size(), owners.data());
  else
    for (Index k = 0; k < size(); ++k) owners[std::size_t(k)] = (*this)[k];
  return owners;
}

}  // namespace longshore

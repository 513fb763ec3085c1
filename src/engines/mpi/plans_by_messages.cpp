#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>

#include "longshore/engines/mpi_plans.hpp"
#include "longshore/plans/block_builders.hpp"
#include "mpi/agreement.hpp"
#include "mpi/gather.hpp"
#include "mpi/sparse_exchange.hpp"
#include "plans/ghost_motions.hpp"

namespace longshore::mpi {

namespace {

/// Of a block, which its owner tells all: everybody's floor plans and numbers of motions follow from that.
struct BlockNeeds {
  std::uint64_t ghosts = 0, motions = 0;
};

/// Throws where everybody would be told more than MPI counts in an int. Of what all ranks know alike.
void check_told(Index blocks, Index bytes) {
  if (blocks > std::numeric_limits<int>::max() / bytes)
    throw Error(ErrorKind::memory_limit, "every rank is told of all " + std::to_string(blocks) + " blocks, of which " +
                                             std::to_string(std::numeric_limits<int>::max() / bytes) +
                                             " is the most; give ranks fewer and larger blocks");
}

/// Of all blocks, from what each rank says of its own.
std::vector<BlockNeeds> everybodys(const Communicator& communicator, std::vector<BlockNeeds> mine) {
  static_assert(sizeof(BlockNeeds) == 2 * sizeof(std::uint64_t));
  add_up(communicator, {reinterpret_cast<std::uint64_t*>(mine.data()), 2 * mine.size()});  // all others say 0
  return mine;
}

/// Motions for those who have the sources: source, destination, how many points, the points of the one, of the other.
Parcels<Index> told_to_sources(const FloorPlan& sources, Index me, const std::vector<BlockMotion>& motions, int ranks) {
  std::vector<const BlockMotion*> by_owner;
  for (const auto& motion : motions)
    if (sources.owner(motion.source) != me) by_owner.push_back(&motion);
  std::stable_sort(by_owner.begin(), by_owner.end(), [&](const BlockMotion* a, const BlockMotion* b) {
    return sources.owner(a->source) < sources.owner(b->source);
  });
  Parcels<Index> told{std::vector<Index>(std::size_t(ranks), 0), {}};
  for (const auto* motion : by_owner) {
    const std::size_t before = told.items.size();
    told.items.insert(told.items.end(), {motion->source, motion->destination, motion->points()});
    for (const auto* points : {&motion->source_points, &motion->destination_points}) {
      const auto rows = points->rows();
      told.items.insert(told.items.end(), rows.begin(), rows.end());
    }
    told.counts[std::size_t(sources.owner(motion->source))] += Index(told.items.size() - before);
  }
  return told;
}

void hear(std::span<const Index> words, std::size_t dims, std::vector<BlockMotion>& motions) {
  while (!words.empty()) {
    const std::size_t numbers = std::size_t(words[2]) * dims;
    motions.push_back(list_motion(words[0], words[1], {dims, words.subspan(3, numbers)},
                                  {dims, words.subspan(3 + numbers, numbers)}));
    words = words.subspan(3 + 2 * numbers);
  }
}

/// This rank's share of the plan that the motions make which each rank has to its own blocks, by destination and
/// source. `ghosts`: how many its blocks need, in their order, by which the blocks are longer in the plan.
/// `sources`: where these are other blocks; null: the same, as long.
BlockPlan joined(Communicator& communicator, const FloorPlan* sources, const FloorPlan& blocks,
                 const std::vector<Index>& ghosts, std::vector<BlockMotion> motions) {
  const Index me = communicator.rank();
  const auto own = blocks.owned_by(me);
  check_told(blocks.size(), sizeof(BlockNeeds));
  std::vector<BlockNeeds> mine(static_cast<std::size_t>(blocks.size()));
  for (std::size_t i = 0; i < own.size(); ++i) mine[std::size_t(own[i])].ghosts = std::uint64_t(ghosts[i]);
  for (const auto& motion : motions) ++mine[std::size_t(motion.destination)].motions;
  const auto needs = everybodys(communicator, std::move(mine));

  Submission checked;
  FloorPlan longer;
  BlockPlan::ByHand by_hand;
  Parcels<Index> told{std::vector<Index>(std::size_t(communicator.size()), 0), {}};
  checked.failure = attempt([&] {
    std::vector<Index> lengths;
    Index number = 0;
    auto motion = motions.begin();
    for (Index k = 0; k < blocks.size(); ++k) {
      const auto& its = needs[std::size_t(k)];
      lengths.push_back(Index(its.ghosts));
      for (Index i = 0; motion != motions.end() && motion->destination == k; ++i) by_hand.add(*motion++, number + i);
      number += Index(its.motions);
    }
    longer = with_ghosts(blocks, lengths);
    told = told_to_sources(sources ? *sources : blocks, me, motions, communicator.size());
  });

  std::array<std::uint64_t, 3> sums = {std::uint64_t(by_hand.motions), by_hand.digest, by_hand.digest_back};
  add_up(communicator, sums);
  by_hand = {Index(sums[0]), sums[1], sums[2]};
  const auto heard = exchange(communicator, std::move(told), {}, checked.failure);
  std::optional<BlockPlan> plan;
  checked.failure = attempt([&] {
    hear(heard.items, blocks.dims(), motions);
    std::sort(motions.begin(), motions.end(), [](const BlockMotion& a, const BlockMotion& b) {
      return a.destination == b.destination ? a.source < b.source : a.destination < b.destination;
    });
    plan = BlockPlan::of_rank(sources ? *sources : longer, longer, me, std::move(motions), by_hand);
  });
  agree(communicator, checked);
  return std::move(*plan);
}

void check_owners(const FloorPlan& blocks, int ranks) {
  for (Index k = 0; blocks.world_size() > ranks && k < blocks.size(); ++k)
    if (blocks.owner(k) >= ranks)
      throw Error(ErrorKind::argument, "block " + std::to_string(k) + " belongs to rank " +
                                           std::to_string(blocks.owner(k)) + "; the communicator has " +
                                           std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks"));
}

}  // namespace

BlockPlan gather_points(const FloorPlan& blocks, std::span<const std::vector<Index>> needed, CommHandle comm) {
  const auto communicator = Communicator::of(comm);
  const Index me = communicator->rank();
  std::vector<BlockMotion> motions;
  std::vector<Index> ghosts;
  Submission mine;
  mine.failure = attempt([&] {
    const VertexOwners owners(blocks);
    check_owners(blocks, communicator->size());
    const auto own = blocks.owned_by(me);
    if (own.size() != needed.size())
      throw Error(ErrorKind::shape, std::to_string(needed.size()) + " lists of vertices for the " +
                                        std::to_string(own.size()) + " blocks that this rank owns");
    for (std::size_t i = 0; i < own.size(); ++i) {
      const auto sources = owners.of_needed(own[i], needed[i]);
      const Point first = blocks.region(own[i]).upper();
      checked_add(first[0], Index(needed[i].size()));
      for (auto& motion : ghost_motions(own[i], first, sources, needed[i])) motions.push_back(std::move(motion));
      ghosts.push_back(Index(needed[i].size()));
    }
  });
  mine.digest = blocks.digest();
  mine.facts = [&] { return BlockPlan(blocks, blocks).facts(true); };
  agree(*communicator, mine);
  return joined(*communicator, nullptr, blocks, ghosts, std::move(motions));
}

BlockPlan gather_points(const Directory& directory, std::span<const Index> needed) {
  const auto owners = directory.find(needed);  // throws where the communicator has been freed
  const auto communicator = Communicator::of(directory.comm());
  const Index me = communicator->rank();
  std::vector<BlockMotion> motions;
  Submission mine;
  mine.failure = attempt([&] {
    for (std::size_t i = 0; i < needed.size(); ++i)
      if (owners.ranks[i] == -1 || owners.ranks[i] == me)
        throw Error(ErrorKind::argument,
                    "needed[" + std::to_string(i) + "] is " + std::to_string(needed[i]) +
                        (owners.ranks[i] == -1 ? ", which no rank owns"
                                               : ", which this rank owns itself, at place " +
                                                     std::to_string(owners.places[i]) + "; need what others own"));
    motions = ghost_motions(me, Point(1, directory.owned()), owners.ranks, owners.places);
  });
  agree(*communicator, mine);

  std::vector<Region> regions;
  Map ranks;
  for (const Index owned : gather(*communicator, Among::world, directory.owned())) {
    ranks.push_back(Index(ranks.size()));
    regions.push_back(Region({0}, {owned}));
  }
  return joined(*communicator, nullptr, FloorPlan(regions, ranks), {Index(needed.size())}, std::move(motions));
}

BlockPlan gather_indices(const Layout& layout, std::span<const Index> indices, CommHandle comm) {
  const auto communicator = Communicator::of(comm);
  const Index me = communicator->rank();
  const std::size_t dims = layout.rank_of_array();
  std::vector<BlockMotion> motions;
  Submission mine;
  mine.failure = attempt([&] {
    if (dims == 0) throw Error(ErrorKind::shape, "an array without dimensions has no indices to be listed");
    if (indices.size() % dims != 0)
      throw Error(ErrorKind::shape, std::to_string(indices.size()) + " numbers are no whole number of indices of " +
                                        std::to_string(dims) + " dimensions");
    if (layout.world_size() > communicator->size())
      throw Error(ErrorKind::argument, "the layout is for " + std::to_string(layout.world_size()) +
                                           " ranks; the communicator has " + std::to_string(communicator->size()));
    const auto process = layout.process_of(me);
    const Index replica = process ? layout.replica(*process) : 0;
    std::vector<Index> sources(indices.size() / dims), places(indices.size()), coordinates(dims);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      for (std::size_t d = 0; d < dims; ++d) {
        const Index index = indices[i * dims + d];
        if (index < 0 || index >= layout.shape()[d])
          throw Error(ErrorKind::argument, "indices[" + std::to_string(i) + "] is " + std::to_string(index) +
                                               " in dimension " + std::to_string(d) + ", outside [0, " +
                                               std::to_string(layout.shape()[d]) + ")");
        coordinates[d] = layout.dimensions()[d].owner(index);
        places[i * dims + d] = layout.dimensions()[d].local(index);
      }
      sources[i] = layout.grid().world_rank(layout.process_at(coordinates, replica));
    }
    motions = ghost_motions(me, Point(dims, 0), sources, places);
  });
  mine.digest = layout.digest();
  mine.facts = [&] { return Facts{{"layout", layout.to_string()}, {"shape", Point(layout.shape()).to_string()}}; };
  agree(*communicator, mine);

  std::vector<Region> arrays, lists;
  Map ranks;
  Point none(dims, 1);
  none[0] = 0;
  for (Index rank = 0; rank < communicator->size(); ++rank) {
    arrays.push_back(Region(Point(dims), Point(layout.local_shape(rank))));
    lists.push_back(Region(Point(dims), none));
    ranks.push_back(rank);
  }
  const FloorPlan sources(arrays, ranks);
  return joined(*communicator, &sources, FloorPlan(lists, ranks), {Index(indices.size() / dims)}, std::move(motions));
}

BlockPlan copy_between(const FloorPlan& source, std::span<const Region> wanted, CommHandle comm, Region domain,
                       std::vector<bool> periodic) {
  const auto communicator = Communicator::of(comm);
  std::vector<Index> bounds;
  Submission mine;
  mine.failure = attempt([&] {
    check_owners(source, communicator->size());
    for (const Region& region : wanted) {
      check_same_dims(source.dims(), region.dims(), "blocks and a wanted region");
      bounds.insert(bounds.end(), region.lower().begin(), region.lower().end());
      bounds.insert(bounds.end(), region.upper().begin(), region.upper().end());
    }
  });
  mine.digest = source.digest();
  mine.facts = [&] { return BlockPlan(source, source).facts(true); };
  agree(*communicator, mine);

  const auto counts = gather(*communicator, Among::world, Index(wanted.size()));
  Index boxes = 0;
  for (const Index count : counts) boxes = checked_add(boxes, count);
  check_told(boxes, Index(2 * source.dims() * sizeof(Index)) + 1);
  const auto all = gather_lists(*communicator, Among::world, bounds);
  std::vector<Region> regions;
  Map owners;
  const std::size_t dims = source.dims();
  for (std::size_t rank = 0, at = 0; rank < counts.size(); ++rank)
    for (Index k = 0; k < counts[rank]; ++k, at += 2 * dims) {
      const std::span<const Index> numbers(all);
      regions.push_back(Region(Point(numbers.subspan(at, dims)), Point(numbers.subspan(at + dims, dims))));
      owners.push_back(Index(rank));
    }
  std::optional<BlockPlan> plan;
  mine = {};
  mine.failure = attempt([&] {
    plan = longshore::copy_between(source, FloorPlan(regions, owners), communicator->rank(), std::move(domain),
                                   std::move(periodic));
  });
  agree(*communicator, mine);
  return std::move(*plan);
}

}  // namespace longshore::mpi

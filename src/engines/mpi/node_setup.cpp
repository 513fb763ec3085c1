#include "engines/mpi/node_setup.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include "mpi/second_level_cache.hpp"

namespace longshore::mpi {

namespace {

// Rings stay in the second-level caches of the two processes: slots of 128 KiB where that has 1 MiB and one process
// sends here. Longer packets move faster, up to 256 KiB; below 32 KiB the tiles of a transpose get too small. All of a
// node's together are bounded, so that a node of hundreds of processes does not spend its memory on them.
constexpr Index largest_slot = Index{256} << 10, small_slot = Index{32} << 10, smallest_slot = Index{4} << 10;
constexpr Index most_slots = 4, fewest_slots = 2;
constexpr Index node_ring_bytes = Index{64} << 20;

/// Of a ring, where so many processes send here and this one as much to each of them.
Index slot_for(Index traffic, Index senders) {
  const Index in_cache = second_level_cache_bytes() / (2 * most_slots * senders);
  const Index in_turns = traffic / (2 * most_slots);  // both ends get to work at once
  return std::clamp(std::min(in_cache, in_turns), small_slot, largest_slot);
}

RingShape shape_ring(Index traffic, Index senders, Index share, const RingTerms& terms) {
  auto round = [](Index bytes) { return ceil_div(bytes, 64) * 64; };
  const Index least = round(std::max(std::min(smallest_slot, traffic), terms.element_bytes));
  RingShape shape;
  const Index best = std::min({slot_for(traffic, senders), traffic, terms.most_slot_bytes});
  shape.slot_bytes = std::max(least, round(best));
  shape.slots = traffic <= shape.slot_bytes ? fewest_slots : most_slots;
  if (traffic <= terms.eager_bytes)
    shape.slots = std::max(shape.slots, ceil_div(traffic, shape.slot_bytes) + 1);  // packets end early
  while (shape.bytes() > share && shape.slot_bytes > least)
    shape.slot_bytes = std::max(least, round(shape.slot_bytes / 2));
  while (shape.bytes() > share && shape.slots > fewest_slots) --shape.slots;
  if (shape.bytes() > share) shape = {};
  return shape;
}

}  // namespace

ControlBlocks::ControlBlocks(const std::shared_ptr<Communicator>& communicator, const std::vector<Index>& ring_bytes,
                             const std::set<int>& partners, const RingTerms& terms)
    : communicator_(communicator),
      me_(communicator->node_rank()),
      partners_(partners.begin(), partners.end()),
      blocks_(std::size_t(communicator->node_size())) {
  if (partners_.empty()) return;
  const int n = communicator->node_size();
  const Index senders = std::count_if(ring_bytes.begin(), ring_bytes.end(), [](Index b) { return b > 0; });
  const Index share = senders ? std::min(node_ring_bytes / n, terms.budget) / senders : 0;
  std::vector<RingShape> shapes(static_cast<std::size_t>(n));
  Index bytes = ControlBlock::header_bytes(n);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (ring_bytes[i] == 0) continue;
    shapes[i] = shape_ring(ring_bytes[i], senders, share, terms);
    if (!shapes[i].slots) continue;
    shapes[i].offset = bytes, shapes[i].line_phase = terms.line_phase;
    bytes += shapes[i].bytes();
    ring_bytes_ += shapes[i].bytes();
  }
  block_ = communicator->memory().take(bytes);
  offer_ = {block_.address, block_.offset};
  // Flags begin with zero.
  std::memset(static_cast<void*>(block_.data), 0, std::size_t(ControlBlock::header_bytes(n)));
  blocks_[std::size_t(me_)] = ControlBlock(block_.data);
  for (int i = 0; i < n; ++i) {
    const RingShape& shape = mine().ring(i) = shapes[std::size_t(i)];
    if (shape.slots) std::memset(static_cast<void*>(block_.data + shape.offset), 0, 2 * sizeof(Flag));
  }
}

void ControlBlocks::see(const std::vector<ControlOffer>& offers) {
  for (const int peer : partners_) {
    const auto& [address, offset] = offers[std::size_t(peer)];
    views_.push_back(communicator_->memory().view(address, true));
    blocks_[std::size_t(peer)] = ControlBlock(views_.back()->data() + offset);
  }
}

ControlBlocks::~ControlBlocks() {
  std::function<bool()> unused;
  if (confirmed_) {
    for (const int peer : partners_)
      if (of(peer)) of(peer).gone(me_).store(1, std::memory_order_release);
    unused = [block = mine(), partners = partners_] {
      return std::all_of(partners.begin(), partners.end(),
                         [&](int peer) { return block.gone(peer).load(std::memory_order_acquire) != 0; });
    };
  }
  communicator_->memory().give_back(block_, std::move(unused));
}

}  // namespace longshore::mpi

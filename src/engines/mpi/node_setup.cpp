#include "engines/mpi/node_setup.hpp"

#include <algorithm>
#include <array>

#include "mpi/agreement.hpp"
#include "mpi/gather.hpp"

namespace longshore::mpi {

namespace {

// Rings stay in the caches of the two processes: four slots, 128 KiB together (smaller ones make the tiles of a
// transpose too small). All of a node's together are bounded, so that a node of hundreds of processes does not spend
// its memory on them.
constexpr Index largest_slot = Index{32} << 10, smallest_slot = Index{4} << 10;
constexpr Index most_slots = 4, fewest_slots = 2;
constexpr Index node_ring_bytes = Index{64} << 20;

struct PartRecord {
  Index side = 0, rank = 0, offset = 0;
  SharedSegment::Address address;
};
static_assert(std::is_trivially_copyable_v<PartRecord>);

}  // namespace

// ---- SharedParts ----------------------------------------------------------------------------------------------------

SharedParts::SharedParts(const Communicator& communicator, const MotionPlan& plan, const HeldParts& parts, bool wanted)
    : direction_(preferred_direction(plan)) {
  if (!wanted || communicator.node_size() == 1) return;
  std::vector<PartRecord> mine;
  auto record = [&](const std::vector<Part>& held, Index side) {
    for (const auto& part : held)
      if (const auto segment = std::dynamic_pointer_cast<const SharedSegment>(part.memory))
        mine.push_back({side, part.rank, part.array.data - segment->data(), segment->address()});
  };
  record(parts.sources(), 0);
  record(parts.destinations(), 1);
  for (const auto& r : gather_lists(communicator, Among::node, mine))
    (r.side == 0 ? sources_ : destinations_)[r.rank] = {r.address, r.offset, nullptr};
  if (sources_.empty() && destinations_.empty()) return;
  obstacle_ = obstacle_of_node(communicator, obstacle_to([&] { map(communicator, parts); }));
  if (!obstacle_.empty()) sources_.clear(), destinations_.clear(), views_.clear();
}

void SharedParts::map(const Communicator& communicator, const HeldParts& parts) {
  struct View {
    std::shared_ptr<SegmentView> view;
    bool writable = false;
  };
  std::map<std::array<std::int64_t, 3>, View> views;  // two parts may lie in one segment
  auto place_of = [](const SharedSegment::Address& at) { return std::array{at.process, at.descriptor, at.offset}; };
  std::vector<std::pair<Mapped*, bool>> needed;
  for (const auto& m : parts.incoming())
    if (communicator.node_rank_of(m.peer) >= 0 && carrier(m.motion) == Carrier::pull)
      needed.emplace_back(&sources_.at(m.motion.source), false);
  for (const auto& m : parts.outgoing())
    if (communicator.node_rank_of(m.peer) >= 0 && carrier(m.motion) == Carrier::push)
      needed.emplace_back(&destinations_.at(m.motion.destination), true);
  for (const auto& [mapped, writable] : needed) {
    auto& view = views[place_of(mapped->address)];
    view.writable |= writable;
  }
  for (const auto& [mapped, writable] : needed) {
    auto& view = views[place_of(mapped->address)];
    if (!view.view) {
      view.view = SegmentView::map(mapped->address, view.writable);
      views_.push_back(view.view);
    }
    mapped->data = view.view->data() + mapped->offset;
  }
}

Carrier SharedParts::carrier(const Motion& motion) const {
  const bool source = source_visible(motion.source), destination = destination_visible(motion.destination);
  if (direction_ == Direction::pull) return source ? Carrier::pull : destination ? Carrier::push : Carrier::ring;
  return destination ? Carrier::push : source ? Carrier::pull : Carrier::ring;
}

std::vector<CopyTask> SharedParts::tasks(const MotionPlan& plan, const HeldParts& parts, const Combine& combine,
                                         Index task_bytes) const {
  const bool pull = direction_ == Direction::pull;
  auto visible = [](const std::vector<Part>& held, auto&& filter) {
    std::vector<VisiblePart> list;
    for (const auto& part : held)
      if (filter(part.rank)) list.push_back({part.rank, part.array.data});
    return list;
  };
  auto add_mapped = [](std::vector<VisiblePart>& list, const std::map<Index, Mapped>& mapped) {
    for (const auto& [rank, m] : mapped)
      if (m.data) list.push_back({rank, m.data});
  };
  auto everything = [](Index) { return true; };
  const CopyTaskOptions how{combine, task_bytes};

  // The preferred direction takes local motions too. The other one takes what only it can reach.
  auto sources = visible(parts.sources(), everything), destinations = visible(parts.destinations(), everything);
  add_mapped(pull ? sources : destinations, pull ? sources_ : destinations_);
  auto tasks = copy_tasks(plan, sources, destinations, direction_, how);

  std::vector<VisiblePart> other_sources, other_destinations;
  if (pull) {
    other_sources = visible(parts.sources(), [&](Index rank) { return !source_visible(rank); });
    add_mapped(other_destinations, destinations_);
  } else {
    other_destinations = visible(parts.destinations(), [&](Index rank) { return !destination_visible(rank); });
    add_mapped(other_sources, sources_);
  }
  if (!other_sources.empty() && !other_destinations.empty())
    for (auto& task :
         copy_tasks(plan, other_sources, other_destinations, pull ? Direction::push : Direction::pull, how))
      tasks.push_back(std::move(task));
  return tasks;
}

// ---- ControlBlocks --------------------------------------------------------------------------------------------------

namespace {

RingShape shape_ring(Index traffic, Index element_bytes, Index share, Index eager_bytes) {
  auto round = [](Index bytes) { return ceil_div(bytes, 64) * 64; };
  const Index least = round(std::max(std::min(smallest_slot, traffic), element_bytes));
  RingShape shape;
  shape.slot_bytes = std::max(least, round(std::min(largest_slot, traffic)));
  shape.slots = traffic <= shape.slot_bytes ? fewest_slots : most_slots;
  if (traffic <= eager_bytes)
    shape.slots = std::max(shape.slots, ceil_div(traffic, shape.slot_bytes) + 1);  // packets end early
  while (shape.bytes() > share && shape.slot_bytes > least)
    shape.slot_bytes = std::max(least, round(shape.slot_bytes / 2));
  while (shape.bytes() > share && shape.slots > fewest_slots) --shape.slots;
  if (shape.bytes() > share) shape = {};
  return shape;
}

}  // namespace

ControlBlocks::ControlBlocks(const Communicator& communicator, const std::vector<Index>& ring_bytes,
                             const std::set<int>& partners, Index element_bytes, Index budget, Index eager_bytes)
    : me_(communicator.node_rank()), blocks_(std::size_t(communicator.node_size())) {
  const int n = communicator.node_size();
  const Index senders = std::count_if(ring_bytes.begin(), ring_bytes.end(), [](Index b) { return b > 0; });
  const Index share = senders ? std::min(node_ring_bytes / n, budget) / senders : 0;
  std::vector<RingShape> shapes(static_cast<std::size_t>(n));
  Index bytes = ControlBlock::header_bytes(n);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (ring_bytes[i] == 0) continue;
    shapes[i] = shape_ring(ring_bytes[i], element_bytes, share, eager_bytes);
    if (!shapes[i].slots) continue;
    shapes[i].offset = bytes;
    bytes += shapes[i].bytes();
    ring_bytes_ += shapes[i].bytes();
  }
  SharedSegment::Address address;
  auto obstacle = obstacle_to([&] {
    if (partners.empty()) return;
    segment_ = SharedSegment::create(bytes);  // all zeros, which is what flags start with
    blocks_[std::size_t(me_)] = ControlBlock(segment_->data(), n);
    for (int i = 0; i < n; ++i) mine().ring(i) = shapes[std::size_t(i)];
    address = segment_->address();
  });
  const auto addresses = gather(communicator, Among::node, address);
  auto has_none = [&](int peer) { return addresses[std::size_t(peer)].descriptor < 0; };
  if (!obstacle && std::any_of(partners.begin(), partners.end(), has_none)) obstacle = "";  // it says itself why not
  if (!obstacle)
    obstacle = obstacle_to([&] {
      for (const int peer : partners) {
        views_.push_back(SegmentView::map(addresses[std::size_t(peer)], true));
        blocks_[std::size_t(peer)] = ControlBlock(views_.back()->data(), n);
      }
    });
  obstacle_ = obstacle_of_node(communicator, obstacle);
  if (segment_) segment_->seal();
  if (!usable()) segment_.reset(), views_.clear(), blocks_.assign(blocks_.size(), {}), ring_bytes_ = 0;
}

}  // namespace longshore::mpi

#include "engines/mpi/block_routes.hpp"

#include <algorithm>

#include "engines/mpi/block_message.hpp"
#include "mpi/gather.hpp"

namespace longshore::mpi {

namespace {

/// Copies run in pieces, so that other work gets its turn.
constexpr Index piece_bytes = Index{256} << 10;
/// Messages up to this size find room in a ring all at once, so that start() has done with them.
constexpr Index eager_bytes = Index{2} << 20;

}  // namespace

std::vector<int> BlockRoutes::peers_of(const ByPeer& motions) {
  std::vector<int> peers;
  for (const auto& [peer, list] : motions) peers.push_back(peer);
  return peers;
}

BlockRoutes::BlockRoutes(const Communicator& communicator, const BlockPlan& plan, const XArray& source,
                         const XArray& destination, const ExchangeOptions& options, const Budget& budget,
                         Submission& mine)
    : communicator_(communicator),
      source_(source),
      destination_(destination),
      options_(options),
      me_(communicator.node_rank()),
      copies_(options.visit, source.format().order, options.reduction),
      visible_(std::size_t(communicator.node_size())) {
  // Who fails goes on with nothing to move, and says so when all agree: nobody waits for it.
  ByPeer outgoing, incoming;
  auto here = [&](auto&& work) {
    if (!mine.failure) mine.failure = attempt(work);
    if (mine.failure) outgoing.clear(), incoming.clear();
  };
  here([&] { find_motions(plan, outgoing, incoming); });
  if (communicator.node_size() == 1) {
    message_out_ = std::move(outgoing), message_in_ = std::move(incoming);
    return;
  }

  share(incoming);
  std::vector<Index> ring_bytes(std::size_t(communicator.node_size()));
  std::set<int> partners;
  here([&] { sort(std::move(outgoing), true, ring_bytes, partners); });
  here([&] { sort(std::move(incoming), false, ring_bytes, partners); });
  const bool messages_too = !message_out_.empty() || !message_in_.empty();
  control_ = std::make_unique<ControlBlocks>(communicator, ring_bytes, partners, source.element_bytes(),
                                             budget.rings(messages_too), eager_bytes);
  if (!control_->usable()) {  // neither flags nor rings: all through MPI
    obstacle_ = control_->obstacle();
    control_.reset();
    touchers_.clear(), local_.clear();
    pull_.clear(), ring_out_.clear(), ring_in_.clear(), message_out_.clear(), message_in_.clear();
    moved_bytes_ = 0;
    here([&] { find_motions(plan, message_out_, message_in_); });  // in the order that both ends have in common
    return;
  }
  auto to_messages = [](ByPeer& from, ByPeer& to, auto&& wanted) {
    for (auto list = from.begin(); list != from.end();)
      if (wanted(list->first)) {
        auto& kept = to[list->first];
        kept.insert(kept.end(), std::make_move_iterator(list->second.begin()),
                    std::make_move_iterator(list->second.end()));
        list = from.erase(list);
      } else {
        ++list;
      }
  };
  here([&] {
    to_messages(ring_out_, message_out_,
                [&](int process) { return control_->of(communicator.node_rank_of(process)).ring(me_).slots == 0; });
    to_messages(ring_in_, message_in_,
                [&](int process) { return control_->mine().ring(communicator.node_rank_of(process)).slots == 0; });
  });
}

/// Those of this process alone become `local_`.
void BlockRoutes::find_motions(const BlockPlan& plan, ByPeer& outgoing, ByPeer& incoming) {
  const Index rank = communicator_.rank();
  for (auto& motion : plan.motions()) {
    const Index from = plan.source().owner(motion.source), to = plan.destination().owner(motion.destination);
    if (to == rank) moved_bytes_ = checked_add(moved_bytes_, checked_mul(motion.points(), source_.element_bytes()));
    if (from == rank && to == rank)
      local_.push_back(std::move(motion));
    else if (from == rank)
      outgoing[int(to)].push_back(std::move(motion));
    else if (to == rank)
      incoming[int(from)].push_back(std::move(motion));
  }
}

/// By who carries them. Counts what arrives through rings, and finds those whose flags are needed.
void BlockRoutes::sort(ByPeer motions, bool outgoing, std::vector<Index>& ring_bytes, std::set<int>& partners) {
  const bool rings = options_.node == NodePath::automatic || options_.node == NodePath::ring;
  for (auto& [process, list] : motions) {
    const int peer = communicator_.node_rank_of(process);
    if (peer >= 0) partners.insert(peer);  // who gives up tells those that messages come from, too
    for (auto& motion : list) {
      if (peer >= 0 && pulled(outgoing ? communicator_.rank() : process, motion)) {
        if (outgoing) touchers_.insert(peer);
        if (!outgoing) pull_[process].push_back(std::move(motion));
      } else if (peer >= 0 && rings) {
        if (!outgoing) ring_bytes[std::size_t(peer)] += motion.points() * source_.element_bytes();
        (outgoing ? ring_out_ : ring_in_)[process].push_back(std::move(motion));
      } else {
        (outgoing ? message_out_ : message_in_)[process].push_back(std::move(motion));
      }
    }
  }
}

void BlockRoutes::share(const ByPeer& incoming) {
  if (options_.node != NodePath::automatic && options_.node != NodePath::direct) return;
  SharedSegment::Address mine;
  const auto segment = std::dynamic_pointer_cast<SharedSegment>(source_.memory());
  if (segment) mine = segment->address();
  const std::size_t n = visible_.size();
  const auto addresses = gather(communicator_, Among::node, mine);
  for (std::size_t peer = 0; peer < n; ++peer) visible_[peer] = addresses[peer].descriptor >= 0;
  obstacle_ =
      obstacle_of_node(communicator_, obstacle_to([&] {
                         for (const auto& [process, motions] : incoming) {
                           const int peer = communicator_.node_rank_of(process);
                           auto reads = [&, process = process](const BlockMotion& m) { return pulled(process, m); };
                           if (peer < 0 || !std::any_of(motions.begin(), motions.end(), reads)) continue;
                           mapped_[peer] = {SegmentView::map(addresses[std::size_t(peer)], false),
                                            XArray::places(source_.blocks(), process, source_.format())};
                         }
                       }));
  if (!obstacle_.empty()) visible_.assign(n, false), mapped_.clear();
}

/// The same answer on both ends.
bool BlockRoutes::pulled(int process, const BlockMotion& motion) const {
  const int peer = communicator_.node_rank_of(process);
  if (peer < 0 || !visible_[std::size_t(peer)]) return false;
  const Region grid = source_.blocks().region(motion.source).grow(source_.format().ghost);
  // Short runs and lists are put together by their owner: whoever
  // reads them from another's memory fetches a cache line for each.
  return options_.node == NodePath::direct ||
         (!motion.is_list() && run_bytes(motion.source_region, grid, source_.format()) >= short_run_bytes);
}

Grid BlockRoutes::source_grid(int process, const BlockMotion& motion) const {
  const auto& mapped = mapped_.at(communicator_.node_rank_of(process));
  const auto& blocks = mapped.places.blocks;
  const auto k = std::lower_bound(blocks.begin(), blocks.end(), motion.source) - blocks.begin();
  const Region region = source_.blocks().region(motion.source).grow(source_.format().ghost);
  return {region, mapped.view->data() + mapped.places.offsets[std::size_t(k)],
          dense_strides(region.shape(), source_.format().order, source_.element_bytes()), source_.element_bytes()};
}

Index BlockRoutes::bytes_of(const std::vector<BlockMotion>& motions) const {
  Index bytes = 0;
  for (const auto& motion : motions) bytes = checked_add(bytes, checked_mul(motion.points(), source_.element_bytes()));
  return bytes;
}

std::vector<Stretch> BlockRoutes::assemblies(const std::vector<BlockMotion>& motions) {
  std::vector<Stretch> stretches;
  for (const auto& motion : woven(motions)) stretches.push_back(copies_.assembly(motion, source_.grid(motion.source)));
  return stretches;
}

std::vector<Stretch> BlockRoutes::disassemblies(const std::vector<BlockMotion>& motions) {
  std::vector<Stretch> stretches;
  for (const auto& motion : woven(motions))
    stretches.push_back(copies_.disassembly(motion, destination_.grid(motion.destination)));
  return stretches;
}

/// What goes in a message each is not cut.
std::vector<BlockMotion> BlockRoutes::woven(const std::vector<BlockMotion>& motions) const {
  return options_.aggregate ? copies_.woven(motions, source_) : motions;
}

MessageSide BlockRoutes::side(const ByPeer& motions, bool outgoing) {
  MessageSide side;
  for (const auto& [process, list] : motions) side.bytes = checked_add(side.bytes, bytes_of(list));
  side.make = [this, &motions, outgoing](std::optional<Index> capacity) {
    std::vector<PeerEnd> ends;
    for (const auto& [process, list] : motions) {
      auto stretches = outgoing ? assemblies(list) : disassemblies(list);
      if (options_.aggregate) {
        ends.push_back({process, block_message(std::move(stretches), outgoing, capacity)});
        continue;
      }
      for (auto& stretch : stretches)
        ends.push_back({process, block_message({std::move(stretch)}, outgoing, capacity)});
    }
    return ends;
  };
  return side;
}

MessageSide BlockRoutes::outgoing() { return side(message_out_, true); }
MessageSide BlockRoutes::incoming() { return side(message_in_, false); }

NodeTraffic BlockRoutes::compile() {
  NodeWork work;
  work.touchers.assign(touchers_.begin(), touchers_.end());
  auto add_tasks = [&](const std::vector<Stretch>& stretches, std::vector<int> peers) {
    for (auto& task : batch(stretches, piece_bytes)) work.tasks.push_back({std::move(task), peers});
  };
  for (const auto& [process, list] : pull_) {
    std::vector<Stretch> stretches;
    for (const auto& motion : copies_.woven(list, source_))
      stretches.push_back(copies_.direct(motion, source_grid(process, motion), destination_.grid(motion.destination)));
    work.bytes.pulled += bytes_of(list);
    add_tasks(stretches, {communicator_.node_rank_of(process)});
  }
  std::vector<Stretch> stretches;
  for (const auto& motion : copies_.woven(local_, source_))
    stretches.push_back(copies_.direct(motion, source_.grid(motion.source), destination_.grid(motion.destination)));
  work.bytes.local = bytes_of(local_);
  add_tasks(stretches, {});

  for (const auto& [process, list] : ring_out_) {
    const auto block = control_->of(communicator_.node_rank_of(process));
    const RingShape shape = block.ring(me_);
    std::vector<std::unique_ptr<PeerMessage>> messages;
    messages.push_back(block_message(assemblies(list), true, shape.slot_bytes));
    work.senders.emplace_back(Ring(block.segment(), shape), communicator_.node_rank_of(process), std::move(messages));
    work.bytes.sent += bytes_of(list);
  }
  for (const auto& [process, list] : ring_in_) {
    const RingShape shape = control_->mine().ring(communicator_.node_rank_of(process));
    std::vector<std::unique_ptr<PeerMessage>> messages;
    messages.push_back(block_message(disassemblies(list), false, shape.slot_bytes));
    work.receivers.emplace_back(Ring(control_->mine().segment(), shape), communicator_.node_rank_of(process),
                                std::move(messages));
    work.bytes.received += bytes_of(list);
  }
  work.workspace_bytes = copies_.workspace_bytes();
  for (auto& [peer, mapped] : mapped_) work.views.push_back(mapped.view);
  return NodeTraffic(me_, std::move(control_), std::move(work));
}

}  // namespace longshore::mpi

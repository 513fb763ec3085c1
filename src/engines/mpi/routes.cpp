#include "engines/mpi/routes.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "movers/joined_message.hpp"
#include "mpi/gather.hpp"

namespace longshore::mpi {

namespace {

// Copies run in pieces, so that other work gets its turn: small pieces where a peer may wait for a ring meanwhile.
constexpr Index alone_bytes = Index{8} << 20, beside_rings_bytes = Index{256} << 10, most_pieces = 512;
/// Larger messages of several fields go by themselves, from where they are contiguous.
constexpr Index most_joined_bytes = Index{1} << 20;

struct StorageRecord {
  Index field = 0, side = 0, rank = 0, offset = 0;
  SharedSegment::Address address;
};

Index bytes_of(const std::vector<Transfer>& transfers) {
  Index bytes = 0;
  for (const auto& transfer : transfers) bytes = checked_add(bytes, transfer.bytes);
  return bytes;
}

}  // namespace

Routes::Routes(const Communicator& communicator, std::vector<Share*> shares, const Options& options,
               const Budget& budget, Submission& mine)
    : communicator_(communicator),
      shares_(std::move(shares)),
      options_(options),
      me_(communicator.node_rank()),
      sorted_(shares_.size()) {
  // Who fails goes on with nothing to move, and says so when all agree: nobody waits for it.
  std::vector<Index> ring_bytes(std::size_t(communicator.node_size()));
  std::set<int> partners;
  auto here = [&](auto&& work) {
    if (!mine.failure) mine.failure = attempt(work);
    if (!mine.failure) return;
    for (auto& sorted : sorted_) sorted = {};
    ring_bytes.assign(ring_bytes.size(), 0), partners.clear(), accessors_.clear();
  };
  if (communicator.node_size() == 1) {
    here([&] { all_in_messages(); });
    return;
  }

  if (options.node == NodePath::automatic || options.node == NodePath::direct) share_storage();
  here([&] { sort(ring_bytes, partners); });
  if (!storage_.empty()) {
    obstacle_ = obstacle_of_node(communicator, obstacle_to([&] { map_storage(); }));
    if (!obstacle_.empty()) {
      storage_.clear(), views_.clear();
      here([&] { sort(ring_bytes, partners); });
    }
  }
  bool messages_too = false;
  Index element_bytes = 1, eager_bytes = 0;
  for (std::size_t f = 0; f < shares_.size(); ++f) {
    messages_too |= !sorted_[f].message_out.empty() || !sorted_[f].message_in.empty();
    element_bytes = std::max(element_bytes, shares_[f]->element_bytes());
    eager_bytes = std::max(eager_bytes, shares_[f]->eager_bytes());
  }
  control_ = std::make_unique<ControlBlocks>(communicator, ring_bytes, partners, element_bytes,
                                             budget.rings(messages_too), eager_bytes);
  if (!control_->usable()) {  // neither flags nor rings: all through MPI
    obstacle_ = control_->obstacle();
    control_.reset(), storage_.clear(), views_.clear();
    here([&] { all_in_messages(); });
    return;
  }
  here([&] {
    for (auto& sorted : sorted_) {
      leave_to_messages(sorted.ring_out, sorted.message_out, true);
      leave_to_messages(sorted.ring_in, sorted.message_in, false);
    }
  });
}

void Routes::all_in_messages() {
  accessors_.clear();
  for (std::size_t f = 0; f < shares_.size(); ++f) {
    const auto& transfers = shares_[f]->transfers();
    sorted_[f] = {{}, {}, {}, {}, transfers.outgoing, transfers.incoming};
  }
}

void Routes::share_storage() {
  std::vector<StorageRecord> mine;
  for (std::size_t f = 0; f < shares_.size(); ++f)
    for (const auto side : {Side::source, Side::destination})
      for (const auto& [rank, data, memory] : shares_[f]->storage(side))
        if (const auto segment = std::dynamic_pointer_cast<const SharedSegment>(memory))
          mine.push_back({Index(f), Index(side), rank, data - segment->data(), segment->address()});
  for (const auto& record : gather_lists(communicator_, Among::node, mine))
    storage_[{std::size_t(record.field), Side(record.side), record.rank}] = {record.address, record.offset, nullptr};
}

void Routes::map_storage() {
  using Place = std::array<std::int64_t, 3>;  // several storages may lie in one segment
  auto place_of = [](const SharedSegment::Address& at) { return Place{at.process, at.descriptor, at.offset}; };
  std::map<Storage*, bool> needed;  // whether it is written
  for (std::size_t f = 0; f < shares_.size(); ++f) {
    for (const auto& transfer : sorted_[f].pulled)
      needed[&storage_.at({f, Side::source, shares_[f]->place(Side::source, transfer).rank})];
    for (const auto& transfer : sorted_[f].pushed)
      needed[&storage_.at({f, Side::destination, shares_[f]->place(Side::destination, transfer).rank})] = true;
  }
  std::map<Place, bool> written;
  for (const auto& [storage, writes] : needed) written[place_of(storage->address)] |= writes;
  std::map<Place, std::shared_ptr<SegmentView>> views;
  for (const auto& [storage, writes] : needed) {
    auto& view = views[place_of(storage->address)];
    if (!view) {
      view = SegmentView::map(storage->address, written[place_of(storage->address)]);
      views_.push_back(view);
    }
    storage->data = view->data() + storage->offset;
  }
}

/// The same answer on both ends.
Carrier Routes::carrier(std::size_t field, const Transfer& transfer) const {
  if (communicator_.node_rank_of(transfer.peer) < 0) return Carrier::messages;
  const Share& share = *shares_[field];
  auto visible = [&](Side side) {
    return !storage_.empty() && storage_.count({field, side, share.place(side, transfer).rank}) > 0;
  };
  // Straight copies are the fastest from the smallest arrays on, although they need two signals and a packet needs one.
  if (!transfer.packs || options_.node == NodePath::direct) {
    const bool pull = share.direction() == Direction::pull;
    if (visible(pull ? Side::source : Side::destination)) return pull ? Carrier::pull : Carrier::push;
    if (visible(pull ? Side::destination : Side::source)) return pull ? Carrier::push : Carrier::pull;
  }
  return options_.node == NodePath::automatic || options_.node == NodePath::ring ? Carrier::ring : Carrier::messages;
}

/// By who carries them. Counts what arrives through rings, and finds those whose flags are needed.
void Routes::sort(std::vector<Index>& ring_bytes, std::set<int>& partners) {
  ring_bytes.assign(ring_bytes.size(), 0), partners.clear(), accessors_.clear();
  for (std::size_t f = 0; f < shares_.size(); ++f) {
    auto& sorted = sorted_[f] = {};
    const auto& transfers = shares_[f]->transfers();
    for (const bool outgoing : {true, false})
      for (const auto& transfer : outgoing ? transfers.outgoing : transfers.incoming) {
        const int peer = communicator_.node_rank_of(transfer.peer);
        if (peer >= 0) partners.insert(peer);  // who gives up tells those that messages come from, too
        switch (carrier(f, transfer)) {
          case Carrier::pull:
            if (outgoing)
              accessors_.insert(peer);
            else
              sorted.pulled.push_back(transfer);
            break;
          case Carrier::push:
            if (outgoing)
              sorted.pushed.push_back(transfer);
            else
              accessors_.insert(peer);
            break;
          case Carrier::ring:
            if (!outgoing) ring_bytes[std::size_t(peer)] = checked_add(ring_bytes[std::size_t(peer)], transfer.bytes);
            (outgoing ? sorted.ring_out : sorted.ring_in).push_back(transfer);
            break;
          case Carrier::messages: (outgoing ? sorted.message_out : sorted.message_in).push_back(transfer); break;
        }
      }
  }
}

/// Those of processes for which there was no room for a ring.
void Routes::leave_to_messages(std::vector<Transfer>& rings, std::vector<Transfer>& messages, bool outgoing) {
  const auto first = std::stable_partition(rings.begin(), rings.end(), [&](const Transfer& transfer) {
    const int peer = communicator_.node_rank_of(transfer.peer);
    return (outgoing ? control_->of(peer).ring(me_) : control_->mine().ring(peer)).slots > 0;
  });
  messages.insert(messages.end(), first, rings.end());
  rings.erase(first, rings.end());
  sort_by_peers(messages);
}

std::vector<int> Routes::peers(bool outgoing) const {
  std::set<int> peers;
  for (const auto& sorted : sorted_)
    for (const auto& transfer : outgoing ? sorted.message_out : sorted.message_in) peers.insert(transfer.peer);
  return {peers.begin(), peers.end()};
}

MessageSide Routes::side(bool outgoing) {
  MessageSide side;
  for (const auto& sorted : sorted_)
    side.bytes = checked_add(side.bytes, bytes_of(outgoing ? sorted.message_out : sorted.message_in));
  side.make = [this, outgoing](std::optional<Index> capacity, bool one_a_peer) {
    std::map<int, std::vector<std::unique_ptr<Message>>> messages;
    const auto end = outgoing ? MessageEnd::assembly : MessageEnd::disassembly;
    for (std::size_t f = 0; f < shares_.size(); ++f)
      for_each_peer(outgoing ? sorted_[f].message_out : sorted_[f].message_in, [&](int peer, auto transfers) {
        const std::size_t each = options_.aggregate ? transfers.size() : 1;
        for (std::size_t k = 0; k < transfers.size(); k += each)
          for (auto& message : shares_[f]->messages(transfers.subspan(k, each), end, {capacity}))
            messages[peer].push_back(std::move(message));
      });
    std::vector<PeerEnd> ends;
    for (auto& [peer, list] : messages) {
      if (options_.aggregate && !capacity)
        list = joined(std::move(list), one_a_peer ? std::numeric_limits<Index>::max() : most_joined_bytes);
      for (auto& message : list) ends.push_back({peer, std::move(message)});
    }
    return ends;
  };
  return side;
}

NodeTraffic Routes::compile() {
  NodeWork work;
  work.accessors.assign(accessors_.begin(), accessors_.end());
  work.views = std::move(views_);
  compile_copies(work);
  compile_rings(work);
  for (const auto* share : shares_) work.workspace_bytes = checked_add(work.workspace_bytes, share->programs_bytes());
  return NodeTraffic(me_, std::move(control_), std::move(work));
}

/// The storage at the other end of a transfer, where it has been mapped.
std::byte* Routes::seen(std::size_t field, Side side, const Transfer& transfer) const {
  const auto place = shares_[field]->place(side, transfer);
  return storage_.at({field, side, place.rank}).data + place.offset;
}

void Routes::compile_copies(NodeWork& work) {
  bool rings = false;
  Index moved = 0;
  for (std::size_t f = 0; f < shares_.size(); ++f) {
    rings |= !sorted_[f].ring_out.empty() || !sorted_[f].ring_in.empty();
    moved = checked_add(moved, moved_bytes(shares_[f]->transfers()));
  }
  const Index task_bytes = std::max(rings ? beside_rings_bytes : alone_bytes, moved / most_pieces);
  for (std::size_t f = 0; f < shares_.size(); ++f) {
    Share& share = *shares_[f];
    const auto& local = share.transfers().local;
    // The preferred direction takes what is local, too. The other one takes what only it can reach.
    std::vector<VisibleTransfer> pulled, pushed;
    auto& preferred = share.direction() == Direction::pull ? pulled : pushed;
    for (const auto& transfer : sorted_[f].pulled)
      pulled.push_back({&transfer, seen(f, Side::source, transfer), share.data(Side::destination, transfer)});
    for (const auto& transfer : sorted_[f].pushed)
      pushed.push_back({&transfer, share.data(Side::source, transfer), seen(f, Side::destination, transfer)});
    for (const auto& transfer : local)
      preferred.push_back({&transfer, share.data(Side::source, transfer), share.data(Side::destination, transfer)});
    work.bytes.pulled += bytes_of(sorted_[f].pulled), work.bytes.pushed += bytes_of(sorted_[f].pushed);
    work.bytes.local += bytes_of(local);
    for (const auto direction : {Direction::pull, Direction::push})
      for (auto& copy : share.copies(direction == Direction::pull ? pulled : pushed, direction, task_bytes)) {
        std::vector<int> peers;
        for (const int peer : copy.peers) peers.push_back(communicator_.node_rank_of(peer));
        work.tasks.push_back({std::move(copy), std::move(peers)});
      }
  }
}

std::map<int, std::vector<std::unique_ptr<Message>>> Routes::ring_messages(bool outgoing) {
  std::map<int, std::vector<std::unique_ptr<Message>>> messages;
  const auto end = outgoing ? MessageEnd::assembly : MessageEnd::disassembly;
  for (std::size_t f = 0; f < shares_.size(); ++f)
    for_each_peer(outgoing ? sorted_[f].ring_out : sorted_[f].ring_in, [&](int peer, auto transfers) {
      const int there = communicator_.node_rank_of(peer);
      const RingShape shape = outgoing ? control_->of(there).ring(me_) : control_->mine().ring(there);
      for (auto& message : shares_[f]->messages(transfers, end, {shape.slot_bytes, true}))
        messages[there].push_back(std::move(message));
    });
  return messages;
}

void Routes::compile_rings(NodeWork& work) {
  for (auto& [peer, messages] : ring_messages(true)) {
    const auto block = control_->of(peer);
    const RingShape shape = block.ring(me_);
    work.senders.emplace_back(Ring(block.segment(), shape), peer, joined(std::move(messages), shape.slot_bytes));
  }
  for (auto& [peer, messages] : ring_messages(false)) {
    const auto block = control_->mine();
    const RingShape shape = block.ring(peer);
    work.receivers.emplace_back(Ring(block.segment(), shape), peer, joined(std::move(messages), shape.slot_bytes));
  }
  for (const auto& sorted : sorted_)
    work.bytes.sent += bytes_of(sorted.ring_out), work.bytes.received += bytes_of(sorted.ring_in);
}

}  // namespace longshore::mpi

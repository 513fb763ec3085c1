#include "engines/mpi/routes.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "movers/helpers.hpp"
#include "movers/joined_message.hpp"
#include "mpi/gather.hpp"

namespace longshore::mpi {

namespace {

// Copies run in pieces, so that other work gets its turn: small pieces where a peer may wait for a ring meanwhile.
constexpr Index alone_bytes = Index{8} << 20, beside_rings_bytes = Index{256} << 10, most_pieces = 512;
/// Larger messages of several fields go by themselves, from where they are contiguous.
constexpr Index most_joined_bytes = Index{1} << 20;

/// `blocks`: more than 0 where these lie by themselves.
struct StorageRecord {
  Index field = 0, side = 0, rank = 0, offset = 0, blocks = 0;
  SharedSegment::Address address;
};

/// What is told of a block that lies by itself, before its strides.
struct BlockRecord {
  Index block = 0, dims = 0;
  StorageRecord storage;
};
constexpr std::size_t block_words = sizeof(BlockRecord) / sizeof(Index);

/// What a process tells the others of its node first. Few have more than two arrays that others can see.
struct NodeRecord {
  static constexpr std::size_t few = 4;
  Index count = 0;
  std::array<StorageRecord, few> first{};
};

/// What it tells them next.
struct ControlRecord {
  ControlOffer offer;
  Index unseen = 0;  ///< not 0: it cannot map what it needs
};

MessageCut ring_cut(const RingShape& shape) { return {shape.slot_bytes, true, shape.line_phase}; }

Index bytes_of(const std::vector<Transfer>& transfers) {
  Index bytes = 0;
  for (const auto& transfer : transfers) bytes = checked_add(bytes, transfer.bytes);
  return bytes;
}

/// Of all shares; 0 where they differ.
Index line_phase(const std::vector<Share*>& shares) {
  const Index phase = shares.empty() ? 0 : shares.front()->line_phase();
  const bool alike = std::all_of(shares.begin(), shares.end(), [&](auto* one) { return one->line_phase() == phase; });
  return alike ? phase : 0;
}

/// What is as a rule what was inserted last: transfers are by peers.
template <class T>
void insert_again(std::set<T>& set, const T& value) {
  if (set.empty() || *set.rbegin() != value) set.insert(value);
}

}  // namespace

Routes::Routes(const std::shared_ptr<Communicator>& communicator, std::vector<Share*> shares, NodeWays ways,
               const Options& options, const Budget& budget, Submission& mine)
    : communicator_(communicator),
      shares_(std::move(shares)),
      ways_(ways),
      options_(options),
      me_(communicator->node_rank()),
      budget_(budget),
      sorted_(shares_.size()),
      ring_bytes_(std::size_t(communicator->node_size())) {
  for (auto& sorted : sorted_) sorted = std::make_shared<Sorted>();
  if (communicator_->node_size() == 1) {
    here(mine, [&] { all_in_messages(); });
    return;
  }
  share_storage(mine);
  here(mine, [&] { sort(); });
  make_control(mine);
}

/// Who fails goes on with nothing to move, and says so when all agree: nobody waits for it.
template <class Work>
void Routes::here(Submission& mine, Work&& work) {
  mine.attempt(work);
  if (!mine.failure) return;
  for (auto& sorted : sorted_) sorted = std::make_shared<Sorted>();
  ring_bytes_.assign(ring_bytes_.size(), 0), partners_.clear(), accessors_.clear(), writers_.clear();
}

void Routes::all_in_messages() {
  control_.reset(), storage_.clear(), views_.clear(), shown_.clear();
  ring_bytes_.assign(ring_bytes_.size(), 0), partners_.clear(), accessors_.clear(), writers_.clear();
  for (std::size_t f = 0; f < shares_.size(); ++f) {
    const auto& transfers = shares_[f]->transfers();
    sorted_[f] = std::make_shared<Sorted>(Sorted{{}, {}, {}, {}, transfers.outgoing, transfers.incoming});
  }
}

void Routes::share_storage(Submission& mine) {
  std::vector<StorageRecord> records;
  std::vector<Index> words;  // of blocks that lie by themselves
  mine.attempt([&] {
    for (std::size_t f = 0; f < shares_.size(); ++f)
      for (const auto side : {Side::source, Side::destination}) {
        const auto storages = shares_[f]->storage(side);
        for (std::size_t first = 0, last = 0; first < storages.size(); first = last) {
          const Index rank = storages[first].rank, before = Index(words.size());
          StorageRecord record{Index(f), Index(side), rank, 0, 0, {}};
          bool visible = ways_.shared;
          for (; last < storages.size() && storages[last].rank == rank; ++last) {
            const auto& storage = storages[last];
            const auto memory = array_memory_at(storage.first, storage.bytes);
            const auto* segment = dynamic_cast<const SharedMemory*>(memory.get());
            if (const auto why = sharing_refusal(memory.get()); !why.empty() && refusal_.empty()) refusal_ = why;
            if (!(visible = visible && segment)) continue;
            record.offset = storage.data - segment->data(), record.address = segment->address();
            shown_.push_back(memory);
            if (storage.block == StorageMemory::all) continue;
            ++record.blocks;
            const BlockRecord block{storage.block, Index(storage.strides.dims()), record};
            words.resize(words.size() + block_words);
            std::memcpy(&words[words.size() - block_words], &block, sizeof block);
            words.insert(words.end(), storage.strides.begin(), storage.strides.end());
          }
          if (visible)
            records.push_back(record);
          else
            words.resize(std::size_t(before));
        }
      }
  });
  if (mine.failure) records.clear(), words.clear();
  NodeRecord told{Index(records.size()), {}};
  std::copy_n(records.begin(), std::min(records.size(), NodeRecord::few), told.first.begin());
  const auto all = gather(*communicator_, Among::node, told);
  std::vector<StorageRecord> everybodys;
  bool many = false;
  for (const auto& one : all) {
    many |= one.count > Index(NodeRecord::few);
    everybodys.insert(everybodys.end(), one.first.begin(),
                      one.first.begin() + std::min<Index>(one.count, NodeRecord::few));
  }
  if (many) everybodys = gather_lists(*communicator_, Among::node, records);
  bool blocks = false;
  for (const auto& record : everybodys) {
    storage_[{std::size_t(record.field), Side(record.side), record.rank, StorageMemory::all}] = {
        record.address, record.offset, record.blocks, nullptr};
    blocks |= record.blocks > 0;
  }
  if (blocks) share_blocks(mine, words);
}

/// Of blocks that lie by themselves, everybody is told where and with which strides.
void Routes::share_blocks(Submission& mine, const std::vector<Index>& words) {
  const auto all = gather_lists(*communicator_, Among::node, words);
  std::vector<std::vector<BlockElsewhere>> blocks(shares_.size());
  for (std::size_t at = 0; at < all.size();) {
    BlockRecord record;
    std::memcpy(static_cast<void*>(&record), &all[at], sizeof record);
    const auto strides = std::span(all).subspan(at += block_words, std::size_t(record.dims));
    const auto& [field, side, rank, offset, unused, address] = record.storage;
    storage_[{std::size_t(field), Side(side), rank, record.block}] = {address, offset, 0, nullptr};
    blocks[std::size_t(field)].push_back({Side(side), record.block, Point(strides)});
    at += std::size_t(record.dims);
  }
  here(mine, [&] {
    for (std::size_t f = 0; f < shares_.size(); ++f) shares_[f]->see(blocks[f]);
  });
}

/// Sees to flags and rings, when all that can be seen has been mapped. Where a process of the node cannot map what it
/// needs, all do without.
void Routes::make_control(Submission& mine) {
  while (true) {
    auto unseen = mine.failure ? std::nullopt : obstacle_to([&] { map_storage(); });
    blocked_.reset(), control_.reset();
    bool messages_too = false;
    RingTerms terms{.element_bytes = budget_.element_bytes, .line_phase = line_phase(shares_)};
    for (std::size_t f = 0; f < shares_.size(); ++f) {
      messages_too |= !sorted_[f]->message_out.empty() || !sorted_[f]->message_in.empty();
      terms.eager_bytes = std::max(terms.eager_bytes, shares_[f]->eager_bytes());
      terms.most_slot_bytes = std::min(terms.most_slot_bytes, shares_[f]->longest_packet());
    }
    terms.budget = budget_.rings(messages_too);
    blocked_ =
        obstacle_to([&] { control_ = std::make_shared<ControlBlocks>(communicator_, ring_bytes_, partners_, terms); });
    const auto told = gather(*communicator_, Among::node,
                             ControlRecord{control_ ? control_->offer() : ControlOffer(), unseen.has_value()});
    if (std::any_of(told.begin(), told.end(), [](const auto& one) { return one.unseen != 0; })) {
      obstacle_ = obstacle_of_node(*communicator_, unseen);
      storage_.clear(), views_.clear(), shown_.clear();
      here(mine, [&] { sort(); });
      continue;
    }
    if (blocked_) return;
    std::vector<ControlOffer> offers;
    for (const auto& one : told) offers.push_back(one.offer);
    const auto has_none = [&](int peer) { return offers[std::size_t(peer)].address.descriptor < 0; };
    if (std::any_of(partners_.begin(), partners_.end(), has_none)) {
      blocked_ = "";  // it says itself why
      return;
    }
    blocked_ = obstacle_to([&] { control_->see(offers); });
    if (blocked_) return;
    return here(mine, [&] {
      for (std::size_t f = 0; f < sorted_.size(); ++f) {
        if (std::find(sorted_.begin(), sorted_.begin() + Index(f), sorted_[f]) != sorted_.begin() + Index(f)) continue;
        leave_to_messages(sorted_[f]->ring_out, sorted_[f]->message_out, true);
        leave_to_messages(sorted_[f]->ring_in, sorted_[f]->message_in, false);
      }
    });
  }
}

void Routes::give_way(Submission& mine) {
  const auto why = obstacle_of_node(*communicator_, blocked_);
  if (why.empty()) return;
  obstacle_ = why;
  blocked_.reset();
  here(mine, [&] { all_in_messages(); });
}

std::string Routes::obstacle() const {
  if (!obstacle_.empty()) return obstacle_;
  const std::string me = "rank " + std::to_string(communicator_->rank());
  return refusal_.empty() ? private_arrays() : me + ": an array lies in ordinary memory: " + refusal_;
}

/// What goes through rings for no other reason than that nobody else can see either array.
std::string Routes::private_arrays() const {
  if (options_.node != NodePath::automatic || !ways_.shared) return {};
  Index bytes = 0;
  std::set<std::pair<Side, Index>> arrays;
  for (std::size_t f = 0; f < shares_.size(); ++f)
    for (const auto* list : {&sorted_[f]->ring_out, &sorted_[f]->ring_in})
      for (const auto& transfer : *list) {
        if (transfer.packs) continue;
        const Side side = shares_[f]->direction() == Direction::pull ? Side::source : Side::destination;
        bytes = checked_add(bytes, transfer.bytes);
        insert_again(arrays, {side, shares_[f]->rank(side, transfer)});
      }
  if (arrays.empty()) return {};
  const auto& [side, rank] = *arrays.begin();
  return std::string(side == Side::source ? "the source" : "the destination") + " array of rank " +
         std::to_string(rank) +
         (arrays.size() > 1 ? " (and " + std::to_string(arrays.size() - 1) + " more)" : std::string()) +
         " is private memory, and so " + std::to_string(bytes) +
         " bytes a move go through rings here; allocate it with the communicator: ls.empty(layout, comm=) or "
         "XArray(..., comm=), in C++ mpi::allocate or mpi::make_xarray; or let NumPy allocate it while "
         "ls.share_numpy_memory() is on";
}

bool Routes::has_messages() const {
  return std::any_of(sorted_.begin(), sorted_.end(),
                     [](const auto& one) { return !one->message_out.empty() || !one->message_in.empty(); });
}

void Routes::map_storage() {
  if (storage_.empty()) return;
  using Place = std::array<std::int64_t, 3>;  // several storages may lie in one segment
  auto place_of = [](const SharedSegment::Address& at) { return Place{at.process, at.descriptor, at.offset}; };
  std::map<Storage*, bool> needed;  // whether it is written
  for (std::size_t f = 0; f < shares_.size(); ++f)
    for (const Side side : {Side::source, Side::destination}) {
      const bool writes = side == Side::destination;
      Storage* last = nullptr;  // transfers are by peers
      Index last_rank = -1;
      for (const auto& transfer : writes ? sorted_[f]->pushed : sorted_[f]->pulled) {
        const Index rank = shares_[f]->rank(side, transfer), block = writes ? transfer.destination : transfer.source;
        if (!last || rank != last_rank) {
          last = &storage_.at({f, side, rank, StorageMemory::all}), last_rank = rank;
          if (last->blocks == 0) needed[last] |= writes;
        }
        if (last->blocks > 0) needed[&storage_.at({f, side, rank, block})] |= writes;
      }
    }
  std::map<Place, bool> written;
  for (const auto& [storage, writes] : needed) written[place_of(storage->address)] |= writes;
  std::map<Place, std::shared_ptr<SegmentView>> views;
  for (const auto& [storage, writes] : needed) {
    auto& view = views[place_of(storage->address)];
    if (!view) {
      view = communicator_->memory().view(storage->address, written[place_of(storage->address)]);
      views_.push_back(view);
    }
    storage->data = view->data() + storage->offset;
  }
}

/// The same answer on both ends.
Carrier Routes::carrier(std::size_t field, const Transfer& transfer) const {
  if (communicator_->node_rank_of(transfer.peer) < 0) return Carrier::messages;
  const Share& share = *shares_[field];
  auto visible = [&](Side side) {
    return !storage_.empty() && storage_.count({field, side, share.rank(side, transfer), StorageMemory::all}) > 0;
  };
  // Straight copies are the fastest from the smallest arrays on, although they need two signals and a packet needs one.
  if (!transfer.packs || ways_.short_runs) {
    const bool pull = share.direction() == Direction::pull;
    if (visible(pull ? Side::source : Side::destination)) return pull ? Carrier::pull : Carrier::push;
    if (visible(pull ? Side::destination : Side::source)) return pull ? Carrier::push : Carrier::pull;
  }
  return ways_.rings ? Carrier::ring : Carrier::messages;
}

/// That of a field before this one which has the same transfers, and of which the same can be seen; null: there is
/// none.
std::shared_ptr<Routes::Sorted> Routes::sorted_like(std::size_t field) const {
  auto seen = [this](std::size_t f) {
    std::vector<std::pair<Side, Index>> ranks;
    for (const auto& [key, storage] : storage_)
      if (std::get<0>(key) == f) ranks.emplace_back(std::get<1>(key), std::get<2>(key));
    return ranks;
  };
  for (std::size_t f = 0; f < field; ++f)
    if (&shares_[f]->transfers() == &shares_[field]->transfers() && seen(f) == seen(field)) return sorted_[f];
  return nullptr;
}

/// By who carries them. Counts what arrives through rings, and finds those whose flags are needed.
void Routes::sort() {
  ring_bytes_.assign(ring_bytes_.size(), 0), partners_.clear(), accessors_.clear(), writers_.clear();
  for (std::size_t f = 0; f < shares_.size(); ++f) {
    if ((sorted_[f] = sorted_like(f))) {
      for (const auto& transfer : sorted_[f]->ring_in) {
        Index& bytes = ring_bytes_[std::size_t(communicator_->node_rank_of(transfer.peer))];
        bytes = checked_add(bytes, transfer.bytes);
      }
      continue;
    }
    sorted_[f] = std::make_shared<Sorted>();
    auto& sorted = *sorted_[f];
    const auto& transfers = shares_[f]->transfers();
    // What goes to one process goes to one rank, unless ranks are dealt anew: it is asked about once.
    struct Known {
      int peer = -1;
      Carrier carrier{};
    } known[2];
    auto carrier_of = [&](const Transfer& transfer) {
      Known& last = known[transfer.packs];
      if (last.peer != transfer.peer || options_.placement == Placement::wrap)
        last = {transfer.peer, carrier(f, transfer)};
      return last.carrier;
    };
    for (const bool outgoing : {true, false}) {
      known[0] = known[1] = {};
      for (const auto& transfer : outgoing ? transfers.outgoing : transfers.incoming) {
        const int peer = communicator_->node_rank_of(transfer.peer);
        if (peer >= 0) insert_again(partners_, peer);  // who gives up tells those that messages come from, too
        switch (carrier_of(transfer)) {
          case Carrier::pull:
            if (outgoing)
              insert_again(accessors_, peer);
            else
              sorted.pulled.push_back(transfer);
            break;
          case Carrier::push:
            if (outgoing)
              sorted.pushed.push_back(transfer);
            else
              insert_again(accessors_, peer), insert_again(writers_, peer);
            break;
          case Carrier::ring:
            if (!outgoing) ring_bytes_[std::size_t(peer)] = checked_add(ring_bytes_[std::size_t(peer)], transfer.bytes);
            (outgoing ? sorted.ring_out : sorted.ring_in).push_back(transfer);
            break;
          case Carrier::messages: (outgoing ? sorted.message_out : sorted.message_in).push_back(transfer); break;
        }
      }
    }
  }
}

/// Those of processes for which there was no room for a ring.
void Routes::leave_to_messages(std::vector<Transfer>& rings, std::vector<Transfer>& messages, bool outgoing) {
  const auto first = std::stable_partition(rings.begin(), rings.end(), [&](const Transfer& transfer) {
    const int peer = communicator_->node_rank_of(transfer.peer);
    return (outgoing ? control_->of(peer).ring(me_) : control_->mine().ring(peer)).slots > 0;
  });
  messages.insert(messages.end(), first, rings.end());
  rings.erase(first, rings.end());
  sort_by_peers(messages);
}

std::vector<int> Routes::peers(bool outgoing) const {
  std::set<int> peers;
  for (const auto& sorted : sorted_)
    for (const auto& transfer : outgoing ? sorted->message_out : sorted->message_in) peers.insert(transfer.peer);
  return {peers.begin(), peers.end()};
}

MessageSide Routes::side(bool outgoing) {
  MessageSide side;
  for (const auto& sorted : sorted_)
    side.bytes = checked_add(side.bytes, bytes_of(outgoing ? sorted->message_out : sorted->message_in));
  side.make = [this, outgoing](std::optional<Index> capacity, bool one_a_peer) {
    std::map<int, std::vector<std::unique_ptr<Message>>> messages;
    const auto end = outgoing ? MessageEnd::assembly : MessageEnd::disassembly;
    for (std::size_t f = 0; f < shares_.size(); ++f)
      for_each_peer(outgoing ? sorted_[f]->message_out : sorted_[f]->message_in, [&](int peer, auto transfers) {
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
  work.writers.assign(writers_.begin(), writers_.end());
  work.views = views_, work.shown = shown_;
  for (const auto* share : shares_) work.in_step |= share->in_step();
  compile_copies(work);
  compile_rings(work);
  for (const auto* share : shares_) work.workspace_bytes = checked_add(work.workspace_bytes, share->programs_bytes());
  return NodeTraffic(me_, control_, std::move(work));
}

/// The storage at the other end of a transfer, where it has been mapped.
std::byte* Routes::seen(std::size_t field, Side side, const Transfer& transfer) const {
  const Share& share = *shares_[field];
  const Index rank = share.rank(side, transfer);
  const auto& storage = storage_.at({field, side, rank, StorageMemory::all});
  if (storage.blocks == 0) return storage.data + share.place(side, transfer).offset;
  return storage_.at({field, side, rank, side == Side::source ? transfer.source : transfer.destination}).data;
}

void Routes::compile_copies(NodeWork& work) {
  for (std::size_t f = 0; f < shares_.size(); ++f) {
    Share& share = *shares_[f];
    const bool rings = !sorted_[f]->ring_out.empty() || !sorted_[f]->ring_in.empty();
    const Index bytes = moved_bytes(share.transfers());
    const int threads = threads_of(options_, 1);
    const Index task_bytes = std::min(std::max(rings ? beside_rings_bytes : alone_bytes, bytes / most_pieces),
                                      longshore::task_bytes(bytes, threads));
    const auto& local = share.transfers().local;
    // The preferred direction takes what is local, too. The other one takes what only it can reach.
    std::vector<const Transfer*> pulled, pushed;
    for (const auto& transfer : sorted_[f]->pulled) pulled.push_back(&transfer);
    for (const auto& transfer : sorted_[f]->pushed) pushed.push_back(&transfer);
    std::set<std::uint32_t> along;
    for_each_peer(sorted_[f]->ring_in, [&](int peer, auto transfers) {
      const int there = communicator_->node_rank_of(peer);
      for (const auto number : share.brought_along(transfers, ring_cut(control_->mine().ring(there))))
        along.insert(number), work.along.push_back({std::uint32_t(f), number, there});
    });
    for (const auto& transfer : local)
      if (along.count(transfer.number) == 0)
        (share.direction() == Direction::pull ? pulled : pushed).push_back(&transfer);
    // What is not here has been mapped.
    auto seen_by = [&](Direction direction) {
      return [&, direction](const Transfer& transfer) -> Seen {
        const bool far = transfer.peer != communicator_->rank();
        return {
            far && direction == Direction::pull ? seen(f, Side::source, transfer) : share.data(Side::source, transfer),
            far && direction == Direction::push ? seen(f, Side::destination, transfer)
                                                : share.data(Side::destination, transfer)};
      };
    };
    work.bytes.pulled += bytes_of(sorted_[f]->pulled), work.bytes.pushed += bytes_of(sorted_[f]->pushed);
    work.bytes.local += bytes_of(local);
    const auto first = Index(work.tasks.size());
    for (const auto direction : {Direction::pull, Direction::push})
      for (auto& copy : share.copies(direction == Direction::pull ? pulled : pushed, seen_by(direction), direction,
                                     task_bytes, threads)) {
        std::vector<int> peers;
        for (const int peer : copy.peers) peers.push_back(communicator_->node_rank_of(peer));
        work.tasks.push_back({std::move(copy), std::move(peers), std::uint32_t(f)});
      }
    // Foreign ones first: others wait for them. But field by field, so that what is local finds in cache what it shares
    // with them.
    std::stable_partition(work.tasks.begin() + first, work.tasks.end(),
                          [](const NodeWork::Task& task) { return !task.peers.empty(); });
  }
}

std::map<int, std::vector<std::unique_ptr<Message>>> Routes::ring_messages(bool outgoing) {
  std::map<int, std::vector<std::unique_ptr<Message>>> messages;
  const auto end = outgoing ? MessageEnd::assembly : MessageEnd::disassembly;
  for (std::size_t f = 0; f < shares_.size(); ++f)
    for_each_peer(outgoing ? sorted_[f]->ring_out : sorted_[f]->ring_in, [&](int peer, auto transfers) {
      const int there = communicator_->node_rank_of(peer);
      const RingShape shape = outgoing ? control_->of(there).ring(me_) : control_->mine().ring(there);
      for (auto& message : shares_[f]->messages(transfers, end, ring_cut(shape)))
        messages[there].push_back(std::move(message));
    });
  return messages;
}

void Routes::compile_rings(NodeWork& work) {
  for (auto& [peer, messages] : ring_messages(true)) {
    const auto block = control_->of(peer);
    const RingShape shape = block.ring(me_);
    work.senders.emplace_back(Ring(block.data(), shape), peer, joined(std::move(messages), shape.slot_bytes),
                              communicator_->measured_stores());
  }
  for (auto& [peer, messages] : ring_messages(false)) {
    const auto block = control_->mine();
    const RingShape shape = block.ring(peer);
    work.receivers.emplace_back(Ring(block.data(), shape), peer, joined(std::move(messages), shape.slot_bytes));
  }
  for (const auto& sorted : sorted_)
    work.bytes.sent += bytes_of(sorted->ring_out), work.bytes.received += bytes_of(sorted->ring_in);
}

}  // namespace longshore::mpi

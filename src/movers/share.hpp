/// movers: `Share`, what one process sends, receives and copies within itself of one field: the list of transfers that
/// every plan ends in. Below this, nobody knows whether it was between layouts or between blocks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "copies/message.hpp"
#include "longshore/core/facts.hpp"
#include "longshore/movers/local_moves.hpp"
#include "longshore/movers/mover.hpp"
#include "movers/arrivals.hpp"
#include "movers/overlap_check.hpp"

namespace longshore {

class Digest;
class Share;

/// Which process of how many holds what belongs to a rank: the one of the same number, or rank modulo the number.
struct Holders {
  bool wrap = false;
  Index processes = 1;
  const char* world = "the communicator";  ///< what the processes are of, in errors
  bool checked = false;                    ///< of a checked move: transfers have names
  /// Every process's share of this field, where one memory has them all: arrays may then have storage for the blocks of
  /// all, and each process reads what it gets where it lies. What leaves a process is told in a checked move only.
  std::span<Share* const> here{};
  int of(Index rank) const { return int(wrap ? rank % processes : rank); }
};

/// What one process sends to another or keeps: a relation between two storages.
struct Transfer {
  int peer = 0;                       ///< the process at the other end; for what a process keeps, that process
  Index source = 0, destination = 0;  ///< storages: ranks of layouts, blocks of floor plans
  Index bytes = 0;
  std::uint32_t number = 0;  ///< which one of its share's motions
  bool packs = false;        ///< short runs: whoever owns the source had better pack them than others read them
};

/// A process's transfers, each list by peers and in an order that both ends have in common.
struct Transfers {
  std::vector<Transfer> outgoing, incoming, local;
};

/// The two storages of a transfer, where they can be seen from here.
struct Seen {
  std::byte *source, *destination;
};
using SeenOf = std::function<Seen(const Transfer&)>;

/// Where a storage lies: in the memory that a rank's storages have in common, so many bytes from its beginning.
struct StoragePlace {
  Index rank = 0, offset = 0;
};

/// Memory of this process that all storages of one rank lie in, at the places that follow from the plan, or that one
/// block lies in by itself.
struct StorageMemory {
  static constexpr Index all = -1;
  Index rank = 0, block = all;
  std::byte* data = nullptr;         ///< what offsets count from; of a block its first element
  Point strides;                     ///< of a block by itself
  const std::byte* first = nullptr;  ///< what is touched
  Index bytes = 0;
};

/// How a block of another process lies by itself, of which nothing follows from the plan.
struct BlockElsewhere {
  Side side;
  Index block;
  Point strides;
};

/// Which end of a message: the sender's, the receiver's, or what a receiver packs again to see what has arrived.
enum class MessageEnd { assembly, disassembly, arrival };

/// How messages are cut: into packets of so many bytes at most, none: not at all. For a ring, where source and
/// destination run across each other (transposes), packets are tiles, so that neither side sweeps its array with a
/// large stride; and they can be packed with streaming stores.
struct MessageCut {
  std::optional<Index> capacity;
  bool ring = false;
  Index line_phase = 0;  ///< bytes between the last multiple of 64 and the receiver's array: tiles end where lines do
};

class Share;
/// Shares that are carried out stage after stage, those of a stage together. All of a field's transfers are in the
/// first stage, unless it goes in phases.
using Stages = std::vector<std::vector<std::shared_ptr<Share>>>;
/// Phases of plans, which fields of one plan have in common.
using KnownPhases = std::map<std::pair<const BlockPlan*, Order>, std::vector<std::shared_ptr<const BlockPlan>>>;

class Share {
 public:
  virtual ~Share() = default;
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

  // --- what was given, to be compared between the ranks

  std::uint64_t digest() const { return digest(plan_digest()); }
  /// The same where the plan's is known: many may have one, which its address tells.
  std::uint64_t digest(std::uint64_t plan) const;
  virtual const void* plan() const = 0;
  virtual std::uint64_t plan_digest() const = 0;
  virtual Facts facts() const = 0;
  Index element_bytes() const { return element_bytes_; }
  const Update& update() const { return update_; }
  /// Which one it is of those that are bound together; known once they have been put into stages.
  Index field = 0;

  /// The same in phases, a share each; none where it goes all at once. `bounded`: phases, each of which has buffers,
  /// are to be taken only where they have to. Throws `Error(argument)` where they have to and cannot. The same on all
  /// ranks, but for `bounded` and a rank that has several arrays.
  virtual std::vector<std::shared_ptr<Share>> phases(KnownPhases&, bool checked, bool bounded) const {
    static_cast<void>(checked), static_cast<void>(bounded);
    return {};
  }

  // --- what follows for this process

  /// Checks the plan and the arrays of process `me`. Throws what is wrong with them, naming rank or block. Not
  /// collective.
  virtual void check(const Holders& holders, int me) = 0;
  /// Finds its transfers, once it has been checked. What follows alike from shares `before` this one, which have been
  /// resolved for the same holders, is not found out again. Where all are here, all have been checked and are resolved
  /// in the processes' order: the first may look at everybody's plan for all of them.
  virtual void resolve(std::span<Share* const> before) = 0;
  /// Finds its transfers anew, now that it is known how blocks of others lie that can be seen. Not collective.
  virtual void see(const std::vector<BlockElsewhere>&) {}
  /// Forgets its transfers: tasks and messages have been made of them.
  virtual void forget() { transfers_.reset(); }
  int process() const { return me_; }   ///< that it has been checked for
  const Transfers& transfers() const&;  ///< shares that are alike have the same ones
  /// Who should carry what both ends can see: a pure function of the plan, so that both choose alike.
  virtual Direction direction() const { return Direction::pull; }
  /// Sums that meet in a point are made in the plan's order, whoever makes them.
  virtual bool in_order() const { return false; }
  /// Messages of up to so many bytes should find room in a ring all at once, so that start() has done with them.
  virtual Index eager_bytes() const { return 0; }

  /// What comes here, of the motions that `transfers` lists as incoming and local.
  virtual Incoming incoming(KeptPlans& plans) const = 0;
  virtual void add_to(OverlapCheck& overlaps) const = 0;  ///< the arrays here
  virtual std::vector<BoundMemory> memory() const = 0;
  virtual std::vector<StorageMemory> storage(Side side) const = 0;
  /// The storage at one end of a transfer: of this process, and of any other.
  virtual std::byte* data(Side side, const Transfer& transfer) const = 0;
  virtual StoragePlace place(Side side, const Transfer& transfer) const = 0;
  virtual Index rank(Side side, const Transfer& transfer) const = 0;  ///< of the place, without looking for the offset
  /// "block 2 [0:4] -> block 0 [4:8]"
  virtual std::string name(const Transfer& transfer) const = 0;

  // --- what carries it out

  /// Tasks of about so many bytes for so many threads, none of which touches several peers unless it must. Transfers
  /// that share cache lines are carried out jointly, or take turns.
  virtual std::vector<CopyTask> copies(std::span<const Transfer* const> transfers, const SeenOf& seen,
                                       Direction direction, Index task_bytes, int threads) = 0;
  /// Transfers to one peer (from one) as messages, one after the other.
  virtual std::vector<std::unique_ptr<Message>> messages(std::span<const Transfer> transfers, MessageEnd end,
                                                         const MessageCut& cut) = 0;
  /// Where in a cache line the arrays begin that packets are unpacked to (`MessageCut`).
  virtual Index line_phase() const { return 0; }
  /// Packets through rings are best no longer: lines that are read once for a peer and once for what stays are still in
  /// cache then.
  virtual Index longest_packet() const { return INT64_MAX; }
  /// Whether packets of several peers are best unpacked in step: parts of them lie in the same cache lines or pages.
  virtual bool in_step() const { return false; }
  /// The numbers of local transfers that are carried out when messages of these, so cut, are unpacked.
  virtual std::vector<std::uint32_t> brought_along(std::span<const Transfer>, const MessageCut&) const { return {}; }
  /// Of the programs that tasks and messages have in common.
  virtual Index programs_bytes() const { return 0; }

 protected:
  Share(Index element_bytes, Update update, std::string element)
      : element_bytes_(element_bytes), update_(std::move(update)), element_(std::move(element)) {}

  Index element_bytes_;
  Update update_;
  std::string element_;
  Holders holders_;
  int me_ = 0;
  std::shared_ptr<const Transfers> transfers_;  ///< null: not resolved yet

 private:
  virtual void mix_arrays(Digest&) const {}  ///< what arrays are like, where the plan does not say it
};

/// What the fields of one bind are, in words.
Facts facts_of(std::span<Share* const> shares);
/// What goes in which stage; see `Share::phases`.
Stages stages_of(const std::vector<Field>& fields, bool checked, bool bounded);
/// Has each share resolved, for the same holders, and adds its arrays.
void resolve(const Stages& stages, const Holders& holders, int me, OverlapCheck& overlaps);
/// Where the elements of an array begin in memory, and how many bytes there are from there to their end.
std::pair<const std::byte*, Index> touched(const std::byte* data, std::span<const Index> shape,
                                           std::span<const Index> strides, Index element_bytes);
/// Bytes that one move writes into the destinations of this process.
Index moved_bytes(const Transfers& transfers);
/// By peers, those of one in the order that they have.
void sort_by_peers(std::vector<Transfer>& transfers);
/// Calls f(peer, its transfers) for each peer of a sorted list.
template <class F>
void for_each_peer(std::span<const Transfer> transfers, F&& f) {
  for (std::size_t first = 0, last = 0; first < transfers.size(); first = last) {
    while (last < transfers.size() && transfers[last].peer == transfers[first].peer) ++last;
    f(transfers[first].peer, transfers.subspan(first, last - first));
  }
}

}  // namespace longshore

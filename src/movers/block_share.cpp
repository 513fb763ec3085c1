/// One process's share of a plan between blocks.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "longshore/plans/block_algebra.hpp"
#include "movers/bind_texts.hpp"
#include "movers/block_copies.hpp"
#include "movers/share.hpp"
#include "movers/stretch_message.hpp"

namespace longshore {

namespace {

/// Messages up to this size find room in a ring all at once.
constexpr Index eager = Index{2} << 20;

class BlockShare final : public Share {
 public:
  BlockShare(const BlockPlan& plan, std::vector<XArray> sources, std::vector<XArray> destinations, Update update,
             Order visit, std::string element)
      : Share(sources.empty() ? 1 : sources[0].element_bytes(), std::move(update), std::move(element)),
        plan_(plan),
        sources_(std::move(sources)),
        destinations_(std::move(destinations)),
        visit_(visit) {
    if (sources_.empty()) sources_.emplace_back();
    if (destinations_.empty()) destinations_.emplace_back();
    copies_.emplace(visit_, format(Side::source).order, update_);
  }

  std::uint64_t digest() const override { return plan_.digest(); }
  Facts facts(bool lists) const override {
    return block_facts(plan_, sources_[0], destinations_[0], update_, visit_, element_, lists);
  }

  void resolve(const Holders& holders, int me) override {
    holders_ = holders, me_ = me;
    check(me);
    endogenous_ = sources_[0].same_storage(destinations_[0]);
    check_races(plan_, endogenous_, update_.is_reduction());
    const GridFormat& format = this->format(Side::source);
    for (auto& motion : plan_.motions()) {
      const int from = holders.of(plan_.source().owner(motion.source));
      const int to = holders.of(plan_.destination().owner(motion.destination));
      if (from != me && to != me) continue;
      if (motions_.size() == std::numeric_limits<std::uint32_t>::max())
        throw Error(ErrorKind::memory_limit, "a process can take part in 2^32 motions at most");
      // Short runs and lists are put together by their owner: whoever
      // reads them from another's memory fetches a cache line for each.
      const bool packs =
          from != to && (motion.is_list() || run_bytes(motion.source_region, stored(Side::source, motion.source),
                                                       format) < short_run_bytes);
      auto& list = from != me ? transfers_.incoming : to != me ? transfers_.outgoing : transfers_.local;
      list.push_back({from != me ? from : to, motion.source, motion.destination,
                      checked_mul(motion.points(), element_bytes_), std::uint32_t(motions_.size()), packs});
      motions_.push_back(std::move(motion));
    }
    sort_by_peers(transfers_.outgoing), sort_by_peers(transfers_.incoming);
  }
  bool in_order() const override { return update_.is_reduction(); }
  Index eager_bytes() const override { return eager; }

  void add_to(Apart& apart) const override {
    auto add = [&](const std::vector<XArray>& arrays, const char* role) {
      for (const auto& array : arrays)
        for (std::size_t i = 0; i < array.grids().size(); ++i) apart.add(array.grids()[i], role, array.owned()[i]);
    };
    if (!endogenous_) add(sources_, Apart::source);
    add(destinations_, endogenous_ ? Apart::both : Apart::destination);
  }
  std::vector<BoundMemory> memory() const override {
    std::vector<BoundMemory> memory;
    auto hold = [&](const std::vector<XArray>& arrays, const char* what) {
      for (const auto& array : arrays)
        for (std::size_t i = 0; i < array.keepers().size(); ++i)
          memory.push_back({array.keepers()[i], what, array.owned().empty() ? 0 : array.owned()[i]});
    };
    hold(sources_, endogenous_ ? "array of block" : "source array of block");
    if (!endogenous_) hold(destinations_, "destination array of block");
    return memory;
  }
  std::vector<StorageMemory> storage(Side side) const override {
    std::vector<StorageMemory> memory;
    for (const auto& array : arrays(side))
      if (array.rank() && array.memory()) memory.push_back({*array.rank(), array.memory()->data(), array.memory()});
    return memory;
  }
  std::byte* data(Side side, const Transfer& transfer) const override {
    return grid(side, side == Side::source ? transfer.source : transfer.destination).data;
  }
  StoragePlace place(Side side, const Transfer& transfer) const override {
    const bool source = side == Side::source;
    const Index block = source ? transfer.source : transfer.destination, owner = blocks(side).owner(block);
    const auto [known, fresh] = places_.try_emplace({source, owner});
    if (fresh) known->second = XArray::places(blocks(side), owner, format(side));
    const auto& places = known->second;
    const auto k = std::lower_bound(places.blocks.begin(), places.blocks.end(), block) - places.blocks.begin();
    return {owner, places.offsets[std::size_t(k)]};
  }
  std::string name(const Transfer& transfer) const override { return motions_[transfer.number].to_string(); }

  std::vector<CopyTask> copies(std::span<const VisibleTransfer> transfers, Direction, Index task_bytes) override {
    std::vector<CopyTask> tasks;
    for (std::size_t first = 0, last = 0; first < transfers.size(); first = last) {
      const int peer = transfers[first].transfer->peer;
      while (last < transfers.size() && transfers[last].transfer->peer == peer) ++last;
      const auto some = transfers.subspan(first, last - first);
      for (auto& task : batch(direct(some), task_bytes)) {
        if (peer != me_) task.peers.push_back(peer);
        tasks.push_back(std::move(task));
      }
    }
    return tasks;
  }

  std::vector<std::unique_ptr<Message>> messages(std::span<const Transfer> transfers, MessageEnd end,
                                                 const MessageCut& cut) override {
    std::vector<BlockMotion> motions;
    for (const auto& transfer : transfers) motions.push_back(motions_[transfer.number]);
    std::vector<Stretch> stretches;
    for (const auto& motion : woven(std::move(motions))) {
      if (end == MessageEnd::assembly)
        stretches.push_back(copies_->assembly(motion, grid(Side::source, motion.source)));
      else if (end == MessageEnd::disassembly)
        stretches.push_back(copies_->disassembly(motion, grid(Side::destination, motion.destination)));
      else
        stretches.push_back(copies_->arrival(motion, grid(Side::destination, motion.destination)));
    }
    std::vector<std::unique_ptr<Message>> messages;
    messages.push_back(stretch_message(std::move(stretches), end != MessageEnd::disassembly, cut.capacity));
    return messages;
  }
  Index programs_bytes() const override { return copies_->workspace_bytes(); }

 private:
  const std::vector<XArray>& arrays(Side side) const { return side == Side::source ? sources_ : destinations_; }
  const FloorPlan& blocks(Side side) const { return side == Side::source ? plan_.source() : plan_.destination(); }
  const GridFormat& format(Side side) const { return arrays(side)[0].format(); }
  Region stored(Side side, Index block) const { return blocks(side).region(block).grow(format(side).ghost); }
  /// A grid of this process.
  const Grid& grid(Side side, Index block) const {
    const auto& arrays = this->arrays(side);
    if (arrays.size() == 1) return arrays[0].grid(block);
    const Index owner = blocks(side).owner(block);
    for (const auto& array : arrays)
      if (array.rank() == owner) return array.grid(block);
    throw Error(ErrorKind::argument,
                "no array for rank " + std::to_string(owner) + ", which owns block " + std::to_string(block));
  }
  std::vector<BlockMotion> woven(std::vector<BlockMotion> motions) const {
    return copies_->woven(std::move(motions), sources_[0]);
  }

  std::vector<Stretch> direct(std::span<const VisibleTransfer> transfers) {
    std::vector<BlockMotion> motions;
    std::map<Index, std::byte*> elsewhere[2];  // where grids of other processes are seen here
    const bool foreign = transfers[0].transfer->peer != me_;
    for (const auto& [transfer, source, destination] : transfers) {
      motions.push_back(motions_[transfer->number]);
      if (!foreign) continue;
      if (holders_.of(plan_.source().owner(transfer->source)) != me_) elsewhere[0][transfer->source] = source;
      if (holders_.of(plan_.destination().owner(transfer->destination)) != me_)
        elsewhere[1][transfer->destination] = destination;
    }
    auto seen = [&](Side side, Index block) {
      const auto& there = elsewhere[side == Side::destination];
      const auto found = there.find(block);
      if (found == there.end()) return grid(side, block);
      const Region region = stored(side, block);
      return Grid{region, found->second, dense_strides(region.shape(), format(side).order, element_bytes_),
                  element_bytes_};
    };
    std::vector<Stretch> stretches;
    for (const auto& motion : woven(std::move(motions)))
      stretches.push_back(
          copies_->direct(motion, seen(Side::source, motion.source), seen(Side::destination, motion.destination)));
    return stretches;
  }

  void check(int me) const {
    if (!holders_.wrap && plan_.world_size() > holders_.processes)
      throw Error(ErrorKind::argument, "the plan has blocks on rank " + std::to_string(plan_.world_size() - 1) + ", " +
                                           holders_.world + " has " + std::to_string(holders_.processes) + " ranks");
    if (plan_.rank() && holders_.wrap)
      throw Error(ErrorKind::argument, "the plan is rank " + std::to_string(*plan_.rank()) +
                                           "'s; who has the blocks of several ranks needs everybody's plan");
    if (plan_.rank() && *plan_.rank() != me) throw_others("plan", *plan_.rank());
    for (const auto side : {Side::source, Side::destination}) {
      const char* const what = side == Side::source ? "source" : "destination";
      for (const auto& array : arrays(side)) check_array(array, side, what);
      if (holders_.wrap && arrays(side)[0].rank()) check_owners(side, what);
    }
    if (format(Side::source).element_bytes != format(Side::destination).element_bytes)
      throw Error(ErrorKind::type,
                  "the source array has elements of " + std::to_string(format(Side::source).element_bytes) +
                      " bytes, the destination array of " + std::to_string(format(Side::destination).element_bytes));
    update_.check(element_bytes_);
  }
  void check_array(const XArray& array, Side side, const char* what) const {
    if (!holders_.wrap && !array.rank())
      throw Error(ErrorKind::argument, std::string("the ") + what +
                                           " array has storage for the blocks of all ranks, this is rank " +
                                           std::to_string(me_));
    if (!holders_.wrap && *array.rank() != me_) throw_others(std::string(what) + " array", *array.rank());
    if (holders_.wrap && array.rank() && holders_.of(*array.rank()) != me_)
      throw Error(ErrorKind::argument, std::string("the ") + what + " array of rank " + std::to_string(*array.rank()) +
                                           " belongs in process " + std::to_string(holders_.of(*array.rank())) +
                                           ", not in process " + std::to_string(me_));
    if (!(array.blocks() == blocks(side)))
      throw Error(ErrorKind::shape, std::string("the ") + what + " array has other blocks than the plan: " +
                                        array.blocks().to_string(2) + ", not " + blocks(side).to_string(2));
    if (!(array.format() == format(side)))
      throw Error(ErrorKind::argument, std::string("the ") + what + " arrays differ in ghost cells, order or elements");
  }
  /// Of arrays of single ranks: one for each rank whose blocks belong here.
  void check_owners(Side side, const char* what) const {
    std::set<Index> given;
    for (const auto& array : arrays(side))
      if (array.rank() && !given.insert(*array.rank()).second)
        throw Error(ErrorKind::argument,
                    std::string("two ") + what + " arrays for rank " + std::to_string(*array.rank()));
    for (Index k = 0; k < blocks(side).size(); ++k)
      if (const Index owner = blocks(side).owner(k); holders_.of(owner) == me_ && given.count(owner) == 0)
        throw Error(ErrorKind::argument,
                    "an array has storage for the blocks of rank " + std::to_string(*given.begin()) +
                        " alone; this process needs those of rank " + std::to_string(owner) + " too");
  }
  [[noreturn]] void throw_others(const std::string& what, Index rank) const {
    throw Error(ErrorKind::argument,
                "the " + what + " is rank " + std::to_string(rank) + "'s, this is rank " + std::to_string(me_));
  }

  const BlockPlan& plan_;
  std::vector<XArray> sources_, destinations_;
  Order visit_;
  bool endogenous_ = false;
  Holders holders_;
  int me_ = 0;
  std::vector<BlockMotion> motions_;
  std::optional<BlockCopies> copies_;
  mutable std::map<std::pair<bool, Index>, GridPlaces> places_;
};

}  // namespace

Field::Field(const BlockPlan& plan, std::vector<XArray> sources, std::vector<XArray> destinations, Update update,
             Order visit, std::string element)
    : share_(std::make_shared<BlockShare>(plan, std::move(sources), std::move(destinations), std::move(update), visit,
                                          std::move(element))) {}

Field::Field(const BlockPlan& plan, XArray source, XArray destination, Update update, Order visit, std::string element)
    : Field(plan, std::vector{std::move(source)}, std::vector{std::move(destination)}, std::move(update), visit,
            std::move(element)) {}

}  // namespace longshore

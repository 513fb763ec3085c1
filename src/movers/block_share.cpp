/// One process's share of a plan between blocks.
#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "core/digest.hpp"
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
             std::optional<Order> visit, std::string element)
      : Share(sources.empty() ? 1 : sources[0].element_bytes(), std::move(update), std::move(element)),
        plan_(plan),
        sources_(std::move(sources)),
        destinations_(std::move(destinations)) {
    if (sources_.empty()) sources_.emplace_back();
    if (destinations_.empty()) destinations_.emplace_back();
    visit_ = visiting_order(visit, sources_[0], destinations_[0]);
  }

  Facts facts(bool lists) const override {
    return block_facts(plan_, sources_[0], destinations_[0], update_, visit_, element_, lists);
  }

  void resolve(const Holders& holders, int me, std::span<Share* const> before) override {
    holders_ = holders, me_ = me;
    check(me);
    endogenous_ = sources_[0].same_storage(destinations_[0]);
    for (auto* share : before)
      if (const auto* other = dynamic_cast<const BlockShare*>(share); other && alike(*other)) {
        resolved_ = other->resolved_, transfers_ = other->transfers_, first_ = false;
        return;
      }
    check_races(plan_, endogenous_, update_.is_reduction());
    find_transfers();
  }
  void see(const std::vector<BlockElsewhere>& blocks) override {
    for (const auto& [side, block, strides] : blocks)
      if (holders_.of(this->blocks(side).owner(block)) != me_) strides_elsewhere_[{side, block}] = strides;
    // Fields that are alike take for granted that blocks of others lie as those of the first: not this one.
    if (!strides_elsewhere_.empty()) first_ = true, find_transfers();
  }
  bool in_order() const override { return update_.is_reduction(); }
  Index eager_bytes() const override { return eager; }

  void find_transfers() {
    auto resolved = std::make_shared<Resolved>(BlockCopies(visit_, format(Side::source).order, update_));
    auto& motions = resolved->motions;
    Transfers found;
    Grid elsewhere[2];
    auto grid_of = [&](Side side, Index block, int process) -> const Grid& {
      if (process == me_) return grid(side, block);
      Grid& there = elsewhere[side == Side::destination];
      become_grid_elsewhere(there, side, block);
      return there;
    };
    const auto take = [&](const BlockMotion& motion, int from, int to) {
      if (motions.size() == std::numeric_limits<std::uint32_t>::max())
        throw Error(ErrorKind::memory_limit, "a process can take part in 2^32 motions at most");
      const auto number = std::uint32_t(motions.size());
      motions.push_back(resolved->copies.keep(motion, grid_of(Side::source, motion.source, from),
                                              grid_of(Side::destination, motion.destination, to), format(Side::source),
                                              number));
      const KeptMotion& kept = motions.back();
      // Short runs and lists are put together by their owner: whoever
      // reads them from another's memory fetches a cache line for each.
      const bool packs = from != to && resolved->copies.run_bytes(kept) < short_run_bytes;
      auto& list = from != me_ ? found.incoming : to != me_ ? found.outgoing : found.local;
      list.push_back({from != me_ ? from : to, motion.source, motion.destination,
                      checked_mul(resolved->copies.points(kept), element_bytes_), number, packs});
    };
    for_each_here(&BlockPlan::for_each_shared, take);
    const std::size_t shared = motions.size();
    for_each_here(&BlockPlan::for_each_by_hand, take);
    // By peers, and in the plan's order, in which most have come.
    const auto earlier = [shared](const Transfer& a, const Transfer& b) {
      if (a.peer != b.peer) return a.peer < b.peer;
      if (a.number >= shared || b.number >= shared) return a.number < shared && b.number >= shared;
      return a.destination != b.destination ? a.destination < b.destination : a.source < b.source;
    };
    for (auto* list : {&found.outgoing, &found.incoming, &found.local})
      if (!std::is_sorted(list->begin(), list->end(), earlier)) std::stable_sort(list->begin(), list->end(), earlier);
    resolved_ = std::move(resolved);
    transfers_ = std::make_shared<const Transfers>(std::move(found));
  }

  void add_to(OverlapCheck& overlaps) const override {
    auto add = [&](const std::vector<XArray>& arrays, const char* role) {
      for (const auto& array : arrays)
        for (std::size_t i = 0; i < array.grids().size(); ++i) overlaps.add(array.grids()[i], role, array.owned()[i]);
    };
    if (!endogenous_) add(sources_, OverlapCheck::source);
    add(destinations_, endogenous_ ? OverlapCheck::both : OverlapCheck::destination);
  }
  std::vector<BoundMemory> memory() const override {
    std::vector<BoundMemory> memory;
    auto hold = [&](const std::vector<XArray>& arrays, const char* what) {
      for (const auto& array : arrays)
        for (std::size_t i = 0; i < array.memory_owners().size(); ++i)
          memory.push_back({array.memory_owners()[i], what, array.owned().empty() ? 0 : array.owned()[i]});
    };
    hold(sources_, endogenous_ ? "array of block" : "source array of block");
    if (!endogenous_) hold(destinations_, "destination array of block");
    return memory;
  }
  std::vector<StorageMemory> storage(Side side) const override {
    std::vector<StorageMemory> memory;
    for (const auto& array : arrays(side)) {
      if (!array.rank()) continue;
      if (const auto all = array.memory()) {
        memory.push_back({*array.rank(), StorageMemory::all, all->data(), {}, all->data(), all->bytes()});
        continue;
      }
      for (std::size_t i = 0; i < array.grids().size(); ++i) {
        const Grid& grid = array.grids()[i];
        const auto [first, bytes] =
            touched(grid.data, grid.region.shape().to_vector(), grid.strides, grid.element_bytes);
        if (bytes > 0) memory.push_back({*array.rank(), array.owned()[i], grid.data, grid.strides, first, bytes});
      }
    }
    return memory;
  }
  std::byte* data(Side side, const Transfer& transfer) const override {
    return grid(side, side == Side::source ? transfer.source : transfer.destination).data;
  }
  StoragePlace place(Side side, const Transfer& transfer) const override {
    const bool source = side == Side::source;
    const Index block = source ? transfer.source : transfer.destination, owner = blocks(side).owner(block);
    auto& last = last_places_[source];  // transfers are by peers
    if (!last || last->first.second != owner) {
      const auto [known, fresh] = places_.try_emplace({source, owner});
      if (fresh) known->second = XArray::places(arrays(side)[0].blocks(), owner, format(side));
      last = &*known;
    }
    const auto& places = last->second;
    return {owner, places.offsets[position_of(places.blocks, block)]};
  }
  Index rank(Side side, const Transfer& transfer) const override {
    return blocks(side).owner(side == Side::source ? transfer.source : transfer.destination);
  }
  /// Asked in the checking mode only, and then for all.
  std::string name(const Transfer& transfer) const override {
    if (names_.empty())
      for (const auto part : {&BlockPlan::for_each_shared, &BlockPlan::for_each_by_hand})
        for_each_here(part, [&](const BlockMotion& motion, int, int) { names_.push_back(motion.to_string()); });
    return names_[transfer.number];
  }

  std::vector<CopyTask> copies(std::span<const Transfer* const> transfers, const SeenOf& seen, Direction direction,
                               Index task_bytes) override {
    std::vector<CopyTask> tasks;
    for (std::size_t first = 0, last = 0; first < transfers.size(); first = last) {
      const int peer = transfers[first]->peer;
      while (last < transfers.size() && transfers[last]->peer == peer) ++last;
      for (auto& task : direct(transfers.subspan(first, last - first), seen, direction, task_bytes)) {
        if (peer != me_) task.peers.push_back(peer);
        tasks.push_back(std::move(task));
      }
    }
    return tasks;
  }

  std::vector<std::unique_ptr<Message>> messages(std::span<const Transfer> transfers, MessageEnd end,
                                                 const MessageCut& cut) override {
    std::vector<std::unique_ptr<Message>> messages;
    const auto add = [&](std::shared_ptr<const MessageStretches> stretches, Index shift) {
      messages.push_back(stretch_message(std::move(stretches), end != MessageEnd::disassembly, cut.capacity, shift));
    };
    if (!several(transfers.size())) {
      add(stretches_of(transfers, end), 0);
      return messages;
    }
    const Some some{int(end), transfers.size(), transfers.front().number, transfers.back().number, 0};
    auto& made = resolved_->messages[some];
    const Side side = end == MessageEnd::assembly ? Side::source : Side::destination;
    std::byte* const at = data(side, transfers.front());
    if (!made.stretches) made = {stretches_of(transfers, end), at};
    add(made.stretches, at - made.at);
    return messages;
  }
  Index programs_bytes() const override { return first_ && resolved_ ? resolved_->copies.workspace_bytes() : 0; }

 private:
  std::uint64_t plan_digest() const override {
    Digest digest(plan_.digest());
    digest.mix(std::array{Index(sources_[0].same_storage(destinations_[0])), Index(visit_)});
    for (const auto side : {Side::source, Side::destination}) {
      const auto& array = arrays(side)[0];
      const auto& format = array.format();
      digest.mix(std::array{format.element_bytes, Index(format.order)});
      for (const auto* widths : {&format.ghost.below, &format.ghost.above})
        for (std::size_t d = 0; d < widths->dims(); ++d) digest.mix(std::uint64_t((*widths)[d]));
      if (!(array.blocks() == blocks(side))) digest.mix(array.blocks().digest());
    }
    return digest.value();
  }
  const std::vector<XArray>& arrays(Side side) const { return side == Side::source ? sources_ : destinations_; }
  const FloorPlan& blocks(Side side) const { return side == Side::source ? plan_.source() : plan_.destination(); }
  const GridFormat& format(Side side) const { return arrays(side)[0].format(); }
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
  /// One that this process has not, but for its data. What was there is used again: many are alike.
  void become_grid_elsewhere(Grid& grid, Side side, Index block) const {
    const FloorPlan& blocks = arrays(side)[0].blocks();
    const std::size_t dims = blocks.dims();
    const Index* const bounds = &blocks.bounds()[std::size_t(block) * 2 * dims];
    const bool empty = !std::equal(bounds, bounds + dims, bounds + dims, std::less<>());
    const auto& [below, above] = format(side).ghost;
    bool alike = grid.region.dims() == dims && grid.strides.size() == dims && strides_elsewhere_.empty();
    if (grid.region.dims() != dims) grid.region = Region(Point(dims), Point(dims));
    for (std::size_t d = 0; d < dims; ++d) {
      const Index before = grid.region.extent(d);
      grid.region.set(d, checked_sub(bounds[d], empty ? 0 : below[d]),
                      checked_add(bounds[dims + d], empty ? 0 : above[d]));
      alike = alike && grid.region.extent(d) == before;
    }
    grid.element_bytes = element_bytes_;
    if (alike) return;
    const auto own = strides_elsewhere_.find({side, block});
    grid.strides = own == strides_elsewhere_.end()
                       ? dense_strides(grid.region.shape(), format(side).order, element_bytes_)
                       : own->second;
  }
  /// f(motion, from, to) for the motions of a part of the plan that this process takes part in.
  template <class Part, class F>
  void for_each_here(Part part, F&& f) const {
    (plan_.*part)([&](const BlockMotion& motion) {
      const int from = holders_.of(plan_.source().owner(motion.source));
      const int to = holders_.of(plan_.destination().owner(motion.destination));
      if (from == me_ || to == me_) f(motion, from, to);
    });
  }

  /// Some of the transfers, as all fields that are alike have them.
  struct Some {
    int way;  ///< direction, or end of a message
    std::size_t size;
    std::uint32_t first, last;
    Index task_bytes;
    auto operator<=>(const Some&) const = default;
  };
  struct MadeTasks {
    std::vector<std::pair<CopyTask::Batch, Index>> batches;  ///< and their bytes
    std::byte *source = nullptr, *destination = nullptr;     ///< of the first transfer
  };
  struct MadeMessage {
    std::shared_ptr<const MessageStretches> stretches;
    std::byte* at = nullptr;  ///< the first transfer's
  };
  /// What follows from the plan, and is the same for all fields whose arrays lie alike.
  struct Resolved {
    explicit Resolved(BlockCopies made) : copies(std::move(made)) {}
    BlockCopies copies;
    std::vector<KeptMotion> motions;
    std::map<Some, MadeTasks> tasks;
    std::map<Some, MadeMessage> messages;
  };
  /// Whether motions begin at the same places of their grids, and grids at the same places of their arrays.
  bool alike(const BlockShare& other) const {
    if (&plan_ != &other.plan_ || !other.resolved_ || endogenous_ != other.endogenous_ || visit_ != other.visit_ ||
        !update_.is_copy() || !other.update_.is_copy() || (holders_.wrap && holders_.processes > 1))
      return false;
    for (const auto side : {Side::source, Side::destination}) {
      const auto &mine = arrays(side), &others = other.arrays(side);
      if (mine.size() != 1 || others.size() != 1 || !mine[0].memory() || !others[0].memory() ||
          mine[0].rank() != others[0].rank() || !(mine[0].format() == others[0].format()) ||
          !(mine[0].blocks() == others[0].blocks()))
        return false;
    }
    return true;
  }
  /// Whether others have such a list too, and it is worth keeping for them.
  bool several(std::size_t transfers) const { return transfers > 1 && resolved_.use_count() > 1; }

  std::vector<CopyTask> direct(std::span<const Transfer* const> transfers, const SeenOf& seen, Direction direction,
                               Index task_bytes) {
    if (!several(transfers.size())) return tasks_of(transfers, seen, task_bytes);
    const Transfer &first = *transfers.front(), &last = *transfers.back();
    const auto [source, destination] = seen(first);
    auto& made = resolved_->tasks[{int(direction), transfers.size(), first.number, last.number, task_bytes}];
    if (!made.source) {
      made.source = source, made.destination = destination;
      for (auto& task : tasks_of(transfers, seen, task_bytes))
        made.batches.emplace_back(std::get<CopyTask::Batch>(std::move(task.work)), task.bytes);
    }
    std::vector<CopyTask> tasks;
    for (const auto& [batch, bytes] : made.batches) {
      auto& task = tasks.emplace_back(CopyTask{batch, {}, {}, bytes});
      auto& work = std::get<CopyTask::Batch>(task.work);
      work.source_shift = source - made.source, work.destination_shift = destination - made.destination;
    }
    return tasks;
  }
  std::vector<CopyTask> tasks_of(std::span<const Transfer* const> transfers, const SeenOf& seen, Index task_bytes) {
    auto& copies = resolved_->copies;
    std::vector<KeptMotion> motions;
    motions.reserve(transfers.size());
    for (std::size_t k = 0; k < transfers.size(); ++k) {
      motions.push_back(resolved_->motions[transfers[k]->number]);
      motions.back().number = std::uint32_t(k);
    }
    Batches tasks(task_bytes);
    Grid source, destination;
    copies.for_each_woven(motions, format(Side::source).order, [&](const KeptMotion& motion) {
      const auto [from, to] = seen(*transfers[motion.number]);
      source.data = from, destination.data = to;
      if (!copies.is_whole(motion)) return tasks.add(copies.direct(motion, source, destination));
      auto whole = [&](Side side, Index block, std::byte* data) {
        if (holders_.of(blocks(side).owner(block)) == me_) return grid(side, block);
        Grid there;
        become_grid_elsewhere(there, side, block), there.data = data;
        return there;
      };
      tasks.add(copies.direct(motion, whole(Side::source, motion.source, from),
                              whole(Side::destination, motion.destination, to)));
    });
    return tasks.take();
  }
  std::shared_ptr<const MessageStretches> stretches_of(std::span<const Transfer> transfers, MessageEnd end) {
    const Side side = end == MessageEnd::assembly ? Side::source : Side::destination;
    std::vector<KeptMotion> motions;
    motions.reserve(transfers.size());
    for (const auto& transfer : transfers) motions.push_back(resolved_->motions[transfer.number]);
    std::vector<Stretch> stretches;
    stretches.reserve(transfers.size());
    resolved_->copies.for_each_woven(motions, format(Side::source).order, [&](const KeptMotion& motion) {
      const Grid& here = grid(side, side == Side::source ? motion.source : motion.destination);
      stretches.push_back(resolved_->copies.message(motion, here, end));
    });
    return std::make_shared<const MessageStretches>(std::move(stretches));
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
    if (!covers(array, blocks(side)))
      throw Error(ErrorKind::shape, std::string("the ") + what + " array has other blocks than the plan: " +
                                        array.blocks().to_string(2) + ", not " + blocks(side).to_string(2));
    if (!(array.format() == format(side)) || !(array.blocks() == arrays(side)[0].blocks()))
      throw Error(ErrorKind::argument, std::string("the ") + what + " arrays differ in ghost cells, order or elements");
  }
  /// Whether an array has the plan's blocks, or others that hold them with their ghost cells.
  static bool covers(const XArray& array, const FloorPlan& blocks) {
    if (array.blocks() == blocks) return true;
    if (array.blocks().dims() != blocks.dims() || !(array.blocks().owners() == blocks.owners())) return false;
    const auto stored = array.blocks().grow(array.format().ghost);
    for (Index k = 0; k < blocks.size(); ++k)
      if (!stored.region(k).contains(blocks.region(k))) return false;
    return true;
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
  Order visit_ = Order::C;
  bool endogenous_ = false;
  Holders holders_;
  int me_ = 0;
  std::shared_ptr<Resolved> resolved_;
  bool first_ = true;                                                       ///< of those that have it in common
  std::map<std::pair<Side, Index>, std::vector<Index>> strides_elsewhere_;  ///< of blocks that lie by themselves
  mutable std::vector<std::string> names_;
  using Places = std::map<std::pair<bool, Index>, GridPlaces>;
  mutable Places places_;
  mutable const Places::value_type* last_places_[2] = {};
};

}  // namespace

Order visiting_order(std::optional<Order> given, const XArray& source, const XArray& destination) {
  const Order order = source.format().order;
  return given.value_or(order == destination.format().order ? order : Order::C);
}

Field::Field(const BlockPlan& plan, std::vector<XArray> sources, std::vector<XArray> destinations, Update update,
             std::optional<Order> visit, std::string element)
    : share_(std::make_shared<BlockShare>(plan, std::move(sources), std::move(destinations), std::move(update), visit,
                                          std::move(element))) {}

Field::Field(const BlockPlan& plan, XArray source, XArray destination, Update update, std::optional<Order> visit,
             std::string element)
    : Field(plan, std::vector{std::move(source)}, std::vector{std::move(destination)}, std::move(update), visit,
            std::move(element)) {}

}  // namespace longshore

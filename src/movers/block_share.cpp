/// One process's share of a plan between blocks.
#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <tuple>

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
  struct Resolved;

 public:
  BlockShare(const BlockPlan& plan, std::vector<XArray> sources, std::vector<XArray> destinations, Update update,
             std::optional<Order> visit, std::string element, Phases phases)
      : Share(sources.empty() ? 1 : sources[0].element_bytes(), std::move(update), std::move(element)),
        plan_(plan),
        sources_(std::move(sources)),
        destinations_(std::move(destinations)),
        phases_(phases) {
    if (sources_.empty()) sources_.emplace_back();
    if (destinations_.empty()) destinations_.emplace_back();
    visit_ = visiting_order(visit, sources_[0], destinations_[0]);
    if (destinations_.size() == 1 && sources_.size() == 1 && sources_[0].same_storage(destinations_[0]))
      destinations_ = {};
  }

  /// One phase of another share.
  BlockShare(std::shared_ptr<const BlockPlan> phase, const BlockShare& whole)
      : Share(whole.element_bytes_, whole.update_, whole.element_),
        plan_(*phase),
        phase_(std::move(phase)),
        sources_(whole.sources_),
        destinations_(whole.destinations_),
        visit_(whole.visit_) {}

  Facts facts() const override {
    auto facts = block_facts(plan_, sources_[0], arrays(Side::destination)[0], update_, visit_, element_);
    const char* const words[] = {"automatic", "never", "always"};
    facts.push_back({"phases", words[int(phases_)]});
    return facts;
  }

  std::vector<std::shared_ptr<Share>> phases(KnownPhases& known, bool checked, bool bounded) const override {
    const bool must = phases_ == Phases::always;
    if (phases_ == Phases::never || (!must && (checked || bounded))) return {};
    const auto& targets = arrays(Side::destination);
    const bool within = std::equal(sources_.begin(), sources_.end(), targets.begin(), targets.end(),
                                   [](const XArray& a, const XArray& b) { return a.same_storage(b); });
    const auto obstacle = !within              ? "source and destination are different arrays"
                          : !update_.is_copy() ? "it does more than copy"
                          : checked            ? "what is checked is read once, when the move begins"
                                               : phases_obstacle(plan_);
    if (must && !obstacle.empty()) throw Error(ErrorKind::argument, "a move cannot go in phases where " + obstacle);
    if (!obstacle.empty() || (!must && !phases_pay(plan_))) return {};
    const Order order = format(Side::source).order;
    auto& plans = known[{&plan_, order}];
    if (plans.empty())
      for (auto& phase : longshore::phases(plan_, order)) plans.push_back(std::make_shared<const BlockPlan>(phase));
    std::vector<std::shared_ptr<Share>> shares;
    for (const auto& plan : plans) shares.push_back(std::make_shared<BlockShare>(plan, *this));
    return shares;
  }

  const void* plan() const override { return &plan_; }

  void check(const Holders& holders, int me) override {
    holders_ = holders, me_ = me;
    transfers_.reset(), resolved_.reset();
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
    endogenous_ = is_endogenous();
  }
  void resolve(std::span<Share* const> before) override {
    if (transfers_) return;  // with those of all
    // Everybody's plan is looked at once, if anybody has brought it.
    const BlockPlan* plan = &plan_;
    std::vector<BlockShare*> shares{this};
    if (!holders_.here.empty() && me_ == 0) {
      std::vector<BlockShare*> all;
      const BlockPlan* whole = nullptr;
      for (auto* share : holders_.here) {
        all.push_back(static_cast<BlockShare*>(share));
        if (!whole && !all.back()->plan_.rank()) whole = &all.back()->plan_;
      }
      if (whole) plan = whole, shares = std::move(all);
    }
    for (auto* share : before)
      if (auto* other = dynamic_cast<BlockShare*>(share); other && alike(*other, shares)) {
        for (auto* one : shares) one->become_like(holders_.here.empty() ? *other : other->of_process(one->me_));
        return;
      }
    // Who updates alike shares programs; but a function of one's own may be another one in every process.
    for (auto* share : shares) {
      const auto* last = holders_.here.empty() || share->me_ == 0 ? nullptr : &share->of_process(share->me_ - 1);
      share->first_ = !last || !(last->update_.reduction() == share->update_.reduction());
      share->resolved_ = share->first_ ? share->unresolved() : last->resolved_;
      share->resolved_->of_all = shares.size() > 1;
    }
    find(*plan, shares);
  }
  void see(const std::vector<BlockElsewhere>& blocks) override {
    for (const auto& [side, block, strides] : blocks)
      if (holders_.of(this->blocks(side).owner(block)) != me_) strides_elsewhere_[{side, block}] = strides;
    if (strides_elsewhere_.empty()) return;
    // Fields that are alike take for granted that blocks of others lie as those of the first: not this one.
    first_ = true, resolved_ = unresolved();
    BlockShare* me = this;
    find(plan_, {&me, 1});
  }
  void forget() override {
    transfers_.reset();
    if (!resolved_->of_all) resolved_->motions.clear(), resolved_->names.clear();
  }

  Incoming incoming(KeptPlans& plans) const override {
    return {std::nullopt, plans.copy(plan_), field, holders_.processes, holders_.wrap, update_.is_reduction()};
  }
  bool in_order() const override { return update_.is_reduction(); }
  Index eager_bytes() const override { return eager; }

  void add_to(OverlapCheck& overlaps) const override {
    auto add = [&](Side side, OverlapCheck::Role role) {
      for (const auto& array : arrays(side)) {
        if (holders_.here.empty() && array.memory()) {
          overlaps.add(array, role);
          continue;
        }
        for_each_grid(array, [&](std::size_t i) {
          const Index block = array.owned()[i];
          overlaps.add(array.grids()[i], role, block,
                       holders_.here.empty() ? OverlapCheck::nobody : blocks(side).owner(block));
        });
      }
    };
    if (!endogenous_) add(Side::source, OverlapCheck::Role::source);
    add(Side::destination, endogenous_ ? OverlapCheck::Role::both : OverlapCheck::Role::destination);
  }
  std::vector<BoundMemory> memory() const override {
    std::vector<BoundMemory> memory;
    auto hold = [&](Side side, const char* what) {
      for (const auto& array : arrays(side)) {
        const auto& owners = array.memory_owners();
        auto add = [&](std::size_t i) {
          memory.push_back({owners[i], what, array.owned().empty() ? 0 : array.owned()[i]});
        };
        if (owners.size() == 1)
          add(0);
        else if (!owners.empty())
          for_each_grid(array, add);
      }
    };
    hold(Side::source, endogenous_ ? "array of block" : "source array of block");
    if (!endogenous_) hold(Side::destination, "destination array of block");
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
    auto& last = resolved_->last_places[source];  // transfers are by peers
    if (!last || last->first.second != owner) {
      const auto [known, fresh] = resolved_->places.try_emplace({source, owner});
      if (fresh) known->second = XArray::places(arrays(side)[0].blocks(), owner, format(side));
      last = &*known;
    }
    const auto& places = last->second;
    return {owner, places.offsets[position_of(places.blocks, block)]};
  }
  Index rank(Side side, const Transfer& transfer) const override {
    return blocks(side).owner(side == Side::source ? transfer.source : transfer.destination);
  }
  std::string name(const Transfer& transfer) const override { return resolved_->names.at(transfer.number); }

  std::vector<CopyTask> copies(std::span<const Transfer* const> transfers, const SeenOf& seen, Direction direction,
                               Index task_bytes, int) override {
    if (!holders_.here.empty()) {  // whoever they come from, in the plan's order
      std::vector<const Transfer*> all(transfers.begin(), transfers.end());
      std::sort(all.begin(), all.end(), [this](const auto* a, const auto* b) { return planned_before(*a, *b); });
      return direct(all, seen, direction, task_bytes);
    }
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
  std::uint64_t plan_digest() const override { return plan_.digest(); }
  void mix_arrays(Digest& digest) const override {
    digest.mix(std::array{Index(is_endogenous()), Index(visit_), Index(phases_)});
    for (const auto side : {Side::source, Side::destination}) {
      const auto& array = arrays(side)[0];
      digest.mix(std::array{format(side).element_bytes, Index(format(side).order)});
      for (const auto* widths : {&format(side).ghost.below, &format(side).ghost.above})
        for (const Index width : *widths) digest.mix(std::uint64_t(width));
      if (!(array.blocks() == blocks(side))) digest.mix(array.blocks().digest());
    }
  }
  const std::vector<XArray>& arrays(Side side) const {
    return side == Side::source || destinations_.empty() ? sources_ : destinations_;
  }
  bool is_endogenous() const { return sources_[0].same_storage(arrays(Side::destination)[0]); }
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
    bool alike = grid.region.dims() == dims && grid.strides.dims() == dims && strides_elsewhere_.empty();
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
  /// A grid of any process: of one whose memory is not here, all but its data.
  const Grid& grid_of(Side side, Index block, int process) const {
    if (process == me_) return grid(side, block);
    if (!holders_.here.empty()) return of_process(process).grid(side, block);
    Grid& there = resolved_->elsewhere[side == Side::destination];
    become_grid_elsewhere(there, side, block);
    return there;
  }
  /// f(i) for the grids of an array that this process is here for.
  template <class F>
  void for_each_grid(const XArray& array, F&& f) const {
    const bool all = array.rank() || holders_.here.empty();
    if (!all && !holders_.wrap) {
      for (const Index block : array.blocks().owned_by(me_)) f(std::size_t(block));
      return;
    }
    for (std::size_t i = 0; i < array.grids().size(); ++i)
      if (all || holders_.of(array.blocks().owner(array.owned()[i])) == me_) f(i);
  }
  std::shared_ptr<Resolved> unresolved() const {
    return std::make_shared<Resolved>(BlockCopies(visit_, format(Side::source).order, update_));
  }
  /// Of the same field.
  BlockShare& of_process(int process) const { return static_cast<BlockShare&>(*holders_.here[std::size_t(process)]); }
  /// Finds in a plan what these shares have to do: this one, or those of all processes.
  void find(const BlockPlan& plan, std::span<BlockShare* const> shares) const {
    check_races(plan, endogenous_, update_.is_reduction());
    std::vector<Transfers> found(shares.size());
    auto add = [&](int process, const BlockMotion& motion, int from, int to) {
      if (shares.size() == 1 && process != me_) return;
      const std::size_t k = shares.size() == 1 ? 0 : std::size_t(process);
      shares[k]->add(motion, from, to, found[k]);
    };
    for (const auto part : {&BlockPlan::for_each_shared, &BlockPlan::for_each_by_hand}) {
      for (auto* share : shares) share->by_hand_ = share->resolved_->motions.size();
      (plan.*part)([&](const BlockMotion& motion) {
        const int from = holders_.of(plan.source().owner(motion.source));
        const int to = holders_.of(plan.destination().owner(motion.destination));
        add(to, motion, from, to);
        if (from != to && (holders_.here.empty() || holders_.checked)) add(from, motion, from, to);
      });
    }
    for (std::size_t k = 0; k < shares.size(); ++k) {
      auto earlier = [share = shares[k]](const Transfer& a, const Transfer& b) {
        return a.peer != b.peer ? a.peer < b.peer : share->planned_before(a, b);
      };
      for (auto* list : {&found[k].outgoing, &found[k].incoming, &found[k].local})
        if (!std::is_sorted(list->begin(), list->end(), earlier)) std::stable_sort(list->begin(), list->end(), earlier);
      shares[k]->transfers_ = std::make_shared<const Transfers>(std::move(found[k]));
    }
  }
  void add(const BlockMotion& motion, int from, int to, Transfers& found) const {
    auto& motions = resolved_->motions;
    if (motions.size() == std::numeric_limits<std::uint32_t>::max())
      throw Error(ErrorKind::memory_limit, "a process can take part in 2^32 motions at most");
    const auto number = std::uint32_t(motions.size());
    motions.push_back(resolved_->copies.keep(motion, grid_of(Side::source, motion.source, from),
                                             grid_of(Side::destination, motion.destination, to), format(Side::source),
                                             number));
    if (holders_.checked) resolved_->names.push_back(motion.to_string());
    const KeptMotion& kept = motions.back();
    // Short runs and lists are put together by their owner: whoever
    // reads them from another's memory fetches a cache line for each.
    const bool packs = from != to && resolved_->copies.run_bytes(kept) < short_run_bytes;
    auto& list = from != me_ ? found.incoming : to != me_ ? found.outgoing : found.local;
    list.push_back({from != me_ ? from : to, motion.source, motion.destination,
                    checked_mul(resolved_->copies.points(kept), element_bytes_), number, packs});
  }
  /// The plan's order, in which most transfers are found.
  bool planned_before(const Transfer& a, const Transfer& b) const {
    if (a.number >= by_hand_ || b.number >= by_hand_) return a.number < b.number;
    return std::tie(a.destination, a.source, a.number) < std::tie(b.destination, b.source, b.number);
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
  using Places = std::map<std::pair<bool, Index>, GridPlaces>;
  /// What follows from the plan, and is the same for all fields whose arrays lie alike.
  struct Resolved {
    explicit Resolved(BlockCopies made) : copies(std::move(made)) {}
    BlockCopies copies;
    std::vector<KeptMotion> motions;
    std::vector<std::string> names;  ///< of the motions, in a checked move
    Grid elsewhere[2];               ///< that were needed last
    bool several_fields = false;     ///< have it in common
    bool of_all = false;             ///< that everybody's motions are here, not one process's
    std::map<Some, MadeTasks> tasks;
    std::map<Some, MadeMessage> messages;
    Places places;
    const Places::value_type* last_places[2] = {};
  };
  /// Whether motions begin at the same places of their grids, and grids at the same places of their arrays. `together`:
  /// the shares that are resolved with this one.
  bool alike(const BlockShare& other, std::span<BlockShare* const> together) const {
    if (&plan_ != &other.plan_ || !other.resolved_ || endogenous_ != other.endogenous_ || visit_ != other.visit_ ||
        !(update_ == other.update_) || (holders_.wrap && holders_.processes > 1))
      return false;
    for (const auto side : {Side::source, Side::destination}) {
      const auto &mine = arrays(side), &others = other.arrays(side);
      if (mine.size() != 1 || others.size() != 1 || !lie_alike(mine[0], others[0])) return false;
      // What all processes have lies as far apart as what this one has if it lies in one memory.
      if (holders_.here.empty()) continue;
      if (!mine[0].memory() || !others[0].memory()) return false;
      for (const auto* share : together)
        if (together.size() == 1 || !mine[0].same_storage(share->arrays(side)[0]) ||
            !others[0].same_storage(other.of_process(share->me_).arrays(side)[0]))
          return false;
    }
    return true;
  }
  static bool lie_alike(const XArray& a, const XArray& b) {
    if (a.rank() != b.rank() || !(a.format() == b.format()) || !(a.blocks() == b.blocks())) return false;
    if (a.memory() && b.memory()) return true;
    const auto &left = a.grids(), &right = b.grids();
    auto place = [](const std::vector<Grid>& grids, std::size_t k) {
      return std::uintptr_t(grids[k].data) - std::uintptr_t(grids[0].data);
    };
    for (std::size_t k = 0; k < left.size(); ++k)
      if (place(left, k) != place(right, k) || left[k].strides != right[k].strides) return false;
    return true;
  }
  void become_like(const BlockShare& other) {
    resolved_ = other.resolved_, transfers_ = other.transfers_, by_hand_ = other.by_hand_, first_ = false;
    resolved_->several_fields = true;
  }
  /// Whether others have such a list too, and it is worth keeping for them.
  bool several(std::size_t transfers) const { return transfers > 1 && resolved_->several_fields; }

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
      auto& task = tasks.emplace_back(CopyTask{batch, bytes});
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
      auto add = [&](Stretch stretch) {
        stretch.motion = transfers[motion.number]->number;
        tasks.add(std::move(stretch));
      };
      if (!copies.is_whole(motion)) return add(copies.direct(motion, source, destination));
      auto whole = [&](Side side, Index block, std::byte* data) {
        Grid grid = grid_of(side, block, holders_.of(blocks(side).owner(block)));
        grid.data = data;
        return grid;
      };
      add(copies.direct(motion, whole(Side::source, motion.source, from),
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

  void check_array(const XArray& array, Side side, const char* what) const {
    if (!holders_.wrap && !array.rank() && holders_.here.empty())
      throw Error(ErrorKind::argument, std::string("the ") + what +
                                           " array has storage for the blocks of all ranks, this is rank " +
                                           std::to_string(me_));
    if (!holders_.wrap && array.rank() && *array.rank() != me_)
      throw_others(std::string(what) + " array", *array.rank());
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
  std::shared_ptr<const BlockPlan> phase_;      ///< the plan, where it is one of another's
  std::vector<XArray> sources_, destinations_;  ///< no destinations: the sources
  Order visit_ = Order::C;
  Phases phases_ = Phases::never;
  bool endogenous_ = false, first_ = true;                     ///< of those that have what is resolved in common
  std::size_t by_hand_ = 0;                                    ///< the number of the first motion by hand
  std::map<std::pair<Side, Index>, Point> strides_elsewhere_;  ///< of blocks that lie by themselves
  std::shared_ptr<Resolved> resolved_;
};

}  // namespace

Order visiting_order(std::optional<Order> given, const XArray& source, const XArray& destination) {
  const Order order = source.format().order;
  return given.value_or(order == destination.format().order ? order : Order::C);
}

Field::Field(const BlockPlan& plan, std::vector<XArray> sources, std::vector<XArray> destinations, Update update,
             std::optional<Order> visit, std::string element, Phases phases)
    : share_(std::make_shared<BlockShare>(plan, std::move(sources), std::move(destinations), std::move(update), visit,
                                          std::move(element), phases)) {}

Field::Field(const BlockPlan& plan, XArray source, XArray destination, Update update, std::optional<Order> visit,
             std::string element, Phases phases)
    : Field(plan, std::vector{std::move(source)}, std::vector{std::move(destination)}, std::move(update), visit,
            std::move(element), phases) {}

}  // namespace longshore

/// bind() of a plan between blocks.
#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

#include "engines/finegrain/binding.hpp"
#include "longshore/plans/block_algebra.hpp"
#include "movers/block_copies.hpp"
#include "movers/checked_mover.hpp"
#include "movers/overlap_check.hpp"
#include "movers/stretch_message.hpp"

namespace longshore::finegrain {

namespace {

/// Brings the sums of what a rank sends to those who check what they have received.
class SumMessages final : public SumsExchange {
 public:
  /// To whom every motion of the rank's goes, and from whom it comes, in the order that both ends have in common.
  SumMessages(std::shared_ptr<World> world, Index rank, Index tag, std::vector<Index> to, std::vector<Index> from)
      : world_(std::move(world)), rank_(rank), tag_(tag), to_(std::move(to)), from_(std::move(from)) {}

  void start(const std::vector<std::uint64_t>& sent) override {
    for (std::size_t k = 0; k < sent.size(); ++k)
      world_->send(rank_, to_[k], {Group::world, tag_}, std::as_bytes(std::span(&sent[k], 1)));
  }
  /// Called when the move is complete, so that all have been sent.
  bool test() override {
    sums_.resize(from_.size());
    for (std::size_t k = 0; k < sums_.size(); ++k)
      world_->receive(rank_, from_[k], {Group::world, tag_}, std::as_writable_bytes(std::span(&sums_[k], 1)));
    return true;
  }
  std::vector<std::uint64_t> expected() const override { return sums_; }

 private:
  std::shared_ptr<World> world_;
  Index rank_, tag_;
  std::vector<Index> to_, from_;
  std::vector<std::uint64_t> sums_;
};

/// The motions of everybody's plan by the ranks that take part in them: one list of motions, and of each rank their
/// numbers, for a motion is large and a rank has many.
class Shares {
 public:
  /// With `senders` also by those who send.
  Shares(const BlockPlan& plan, Index ranks, bool senders) : motions(plan.motions()) {
    if (motions.size() > std::numeric_limits<std::uint32_t>::max())
      throw Error(ErrorKind::memory_limit, std::to_string(motions.size()) + " motions; one process holds at most " +
                                               std::to_string(std::numeric_limits<std::uint32_t>::max()));
    received_ = deal(ranks, [&](const BlockMotion& motion) { return plan.destination().owner(motion.destination); });
    if (senders) sent_ = deal(ranks, [&](const BlockMotion& motion) { return plan.source().owner(motion.source); });
  }
  std::vector<BlockMotion> receives(Index rank) const { return of(received_, rank); }
  std::vector<BlockMotion> sends(Index rank) const { return of(sent_, rank); }

  const std::vector<BlockMotion> motions;  ///< in the plan's order

 private:
  /// Rank r's are numbers[starts[r]] ... numbers[starts[r + 1] - 1].
  struct Hands {
    std::vector<std::uint32_t> starts, numbers;
  };
  template <class Owner>
  Hands deal(Index ranks, Owner&& owner) const {
    Hands hands{std::vector<std::uint32_t>(std::size_t(ranks) + 2), std::vector<std::uint32_t>(motions.size())};
    for (const auto& motion : motions) ++hands.starts[std::size_t(owner(motion)) + 2];
    for (std::size_t r = 2; r < hands.starts.size(); ++r) hands.starts[r] += hands.starts[r - 1];
    for (std::size_t k = 0; k < motions.size(); ++k)
      hands.numbers[hands.starts[std::size_t(owner(motions[k])) + 1]++] = std::uint32_t(k);
    hands.starts.pop_back();
    return hands;
  }
  std::vector<BlockMotion> of(const Hands& hands, Index rank) const {
    std::vector<BlockMotion> found;
    for (std::size_t k = hands.starts[std::size_t(rank)]; k < hands.starts[std::size_t(rank) + 1]; ++k)
      found.push_back(motions[hands.numbers[k]]);
    return found;
  }

  Hands received_, sent_;
};

/// The memory of both arrays, held once where they are the same: of this rank's blocks.
std::vector<BoundMemory> bound_memory(const XArray& source, const XArray& destination, Index rank) {
  std::vector<BoundMemory> memory;
  auto hold = [&](const XArray& array, const char* what) {
    const auto& memory_owners = array.memory_owners();
    if (!array.rank() && memory_owners.size() > 1) {
      for (const Index k : array.blocks().owned_by(rank)) memory.push_back({memory_owners[std::size_t(k)], what, k});
    } else {
      for (std::size_t i = 0; i < memory_owners.size(); ++i)
        memory.push_back({memory_owners[i], what, array.owned().empty() ? 0 : array.owned()[i]});
    }
  };
  const bool same = source.same_storage(destination);
  hold(source, same ? "array of block" : "source array of block");
  if (!same) hold(destination, "destination array of block");
  return memory;
}

class BlockBinding final : public Binding<BlockBinding, BlockPlan> {
 public:
  BlockBinding(Index rank, const BlockPlan& plan, XArray source, XArray destination, const MoveOptions& options)
      : Binding("bind() of a plan between blocks", rank, plan, options.max_mem),
        source_(std::move(source)),
        destination_(std::move(destination)),
        options_(options) {}

  std::unique_ptr<Mover> mover(World& world) {
    const auto move = arrive(world);
    auto mover = make_mover(move, rank_, bound_memory(source_, destination_, rank_));
    if (!options_.checked) return mover;
    CheckedTransfers transfers;
    BlockCopies copies(visit(), source_.format().order, {});
    std::vector<Index> to, from;
    auto message = [](Stretch stretch) { return stretch_message({std::move(stretch)}, true, {}); };
    for (const auto& motion : sends()) {
      to.push_back(plan_.destination().owner(motion.destination));
      transfers.sends.push_back({message(copies.assembly(motion, source_.grid(motion.source))), motion.to_string()});
    }
    for (const auto& motion : receives()) {
      from.push_back(plan_.source().owner(motion.source));
      transfers.receives.push_back({message(copies.arrival(motion, destination_.grid(motion.destination))),
                                    motion.to_string(), 0, options_.update.is_copy()});
    }
    transfers.programs_bytes = copies.workspace_bytes();
    auto sums = std::make_unique<SumMessages>(world.shared_from_this(), rank_, tag_, std::move(to), std::move(from));
    return make_checked_mover(std::move(mover), std::move(transfers), std::move(sums));
  }

 private:
  friend Binding;

  bool endogenous() const { return source_.same_storage(destination_); }
  Order visit() const { return visiting_order(options_.visit, source_, destination_); }
  bool combines() const { return options_.update.is_reduction(); }
  std::vector<BlockMotion> receives() const { return shares_ ? shares_->receives(rank_) : plan_.receives(rank_); }
  std::vector<BlockMotion> sends() const { return shares_ ? shares_->sends(rank_) : plan_.sends(rank_); }

  Facts facts() const {
    return with_checked(block_facts(plan_, source_, destination_, options_.update, visit(), {}, true));
  }
  bool agrees(const BlockBinding& other) const {
    return source_.format() == other.source_.format() && destination_.format() == other.destination_.format() &&
           endogenous() == other.endogenous() && options_.update.same_kind(other.options_.update) &&
           visit() == other.visit() && options_.checked == other.options_.checked;
  }
  void check(const All& all) const {
    check_options(options_);
    check_owner(Index(all.size()));
    check_arrays();
    if (plan_.rank()) check_races(plan_, endogenous(), combines());
  }

  Facts with_checked(Facts facts) const {
    facts.push_back({"checked", options_.checked ? "true" : "false"});
    return facts;
  }
  void check_owner(Index ranks) const {
    if (plan_.world_size() > ranks)
      throw Error(ErrorKind::argument, "the plan has blocks on rank " + std::to_string(plan_.world_size() - 1) +
                                           ", the world has " + std::to_string(ranks) + " ranks");
    for (const auto& [whose, what] : {std::pair{plan_.rank(), "plan"},
                                      {source_.rank(), "source array"},
                                      {destination_.rank(), "destination array"}})
      if (whose && *whose != rank_)
        throw Error(ErrorKind::argument, std::string("the ") + what + " is rank " + std::to_string(*whose) +
                                             "'s, this is rank " + std::to_string(rank_));
  }
  void check_arrays() const {
    for (const auto& [array, blocks, what] :
         {std::tuple{&source_, &plan_.source(), "source"}, {&destination_, &plan_.destination(), "destination"}})
      if (!(array->blocks() == *blocks))
        throw Error(ErrorKind::shape, std::string("the ") + what + " array has other blocks than the plan: " +
                                          array->blocks().to_string(2) + ", not " + blocks->to_string(2));
    if (source_.element_bytes() != destination_.element_bytes())
      throw Error(ErrorKind::type, "the source array has elements of " + std::to_string(source_.element_bytes()) +
                                       " bytes, the destination array of " +
                                       std::to_string(destination_.element_bytes()));
    options_.update.check(source_.element_bytes());
  }

  /// Everybody's plan, which is looked at once, if anybody has brought it.
  static const BlockBinding* whole(const All& all) {
    const auto found = std::find_if(all.begin(), all.end(), [](const BlockBinding* one) { return !one->plan_.rank(); });
    return found == all.end() ? nullptr : *found;
  }

  static void check_together(const All& all) {
    const bool same = all[0]->endogenous();
    if (const auto* one = whole(all)) check_races(one->plan_, same, one->combines());
    OverlapCheck overlaps;
    auto add = [&](const FloorPlan& blocks, XArray BlockBinding::*array, const char* role) {
      for (Index k = 0; k < blocks.size(); ++k) {
        const Index rank = blocks.owner(k);
        overlaps.add((all[std::size_t(rank)]->*array).grid(k), role, k, rank);
      }
    };
    if (!same) add(all[0]->plan_.source(), &BlockBinding::source_, OverlapCheck::source);
    add(all[0]->plan_.destination(), &BlockBinding::destination_,
        same ? OverlapCheck::both : OverlapCheck::destination);
    overlaps.check();
  }

  static void compile(const All& all, Move& move) {
    const bool checked = all[0]->options_.checked;
    std::shared_ptr<const Shares> shares;
    if (const auto* one = whole(all)) {
      shares = std::make_shared<const Shares>(one->plan_, Index(all.size()), checked);
      for (const auto& motion : shares->motions)
        connect(move, one->plan_.source().owner(motion.source), one->plan_.destination().owner(motion.destination));
    }
    // Ranks share their programs; but a function of one's own may be another one on every rank.
    std::optional<BlockCopies> copies;
    const Update* update = nullptr;
    const Index tag = move.world().private_tag();
    for (auto* one : all) {
      if (!update || !(update->reduction() == one->options_.update.reduction())) {
        if (copies) move.program_bytes += copies->workspace_bytes();
        update = &one->options_.update;
        copies.emplace(one->visit(), one->source_.format().order, *update);
      }
      one->shares_ = shares, one->tag_ = tag;
      one->take_part(all, move, *copies);
      if (!checked) one->shares_.reset();
    }
    move.program_bytes += copies->workspace_bytes();
    for (const auto array : {&BlockBinding::source_, &BlockBinding::destination_})
      for (std::size_t r = 0; r < all.size(); ++r)
        if (r == 0 || !(all[r]->*array).same_storage(all[r - 1]->*array))
          move.memory.push_back(std::make_shared<const XArray>(all[r]->*array));
  }
  static void connect(Move& move, Index from, Index to) {
    move.end(from).add_reader(to), move.end(to).add_source(from);
  }

  void take_part(const All& all, Move& move, BlockCopies& copies) const {
    End& end = move.end(rank_);
    const auto received = receives();
    end.motions = Index(received.size());
    auto sources = [&](Index block) -> const Grid& {
      return all[std::size_t(plan_.source().owner(block))]->source_.grid(block);
    };
    std::vector<KeptMotion> motions;
    for (const auto& motion : received) {
      if (!shares_) connect(move, plan_.source().owner(motion.source), rank_);
      motions.push_back(copies.keep(motion, sources(motion.source), destination_.grid(motion.destination),
                                    source_.format(), std::uint32_t(motions.size())));
    }
    Batches tasks(std::numeric_limits<Index>::max());
    copies.for_each_woven(motions, source_.format().order, [&](const KeptMotion& motion) {
      tasks.add(copies.direct(motion, sources(motion.source), destination_.grid(motion.destination)));
    });
    end.tasks = tasks.take();
  }

  XArray source_, destination_;
  const MoveOptions& options_;
  std::shared_ptr<const Shares> shares_;  ///< while it is needed
  Index tag_ = 0;
};

}  // namespace

std::unique_ptr<Mover> bind(const BlockPlan& plan, Rank& me, XArray source, XArray destination,
                            const MoveOptions& options) {
  return BlockBinding(me.rank_, plan, std::move(source), std::move(destination), options).mover(me.world_);
}

}  // namespace longshore::finegrain

/// bind(): all ranks of a world compare what they bring, and one of them makes the movers of all.
#include <algorithm>
#include <limits>
#include <map>

#include "movers/block_copies.hpp"
#include "movers/checked_mover.hpp"
#include "movers/finegrain/move.hpp"

namespace longshore::finegrain {

namespace {

constexpr std::size_t most_listed = 8;

/// "ranks 0, 3, 4 and 5 more: text" for every text that somebody brings, a line each.
template <class Text>
std::string by_text(Index ranks, Text&& text_of) {
  std::map<std::string, std::vector<Index>> groups;
  for (Index r = 0; r < ranks; ++r)
    if (std::string text = text_of(r); !text.empty()) groups[std::move(text)].push_back(r);
  std::vector<std::pair<std::string, std::vector<Index>>> lines(groups.begin(), groups.end());
  std::sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.second.front() < b.second.front(); });
  std::string all;
  for (std::size_t k = 0; k < std::min(lines.size(), most_listed); ++k) {
    const auto& [text, group] = lines[k];
    all += group.size() == 1 ? "\n  rank " : "\n  ranks ";
    for (std::size_t i = 0; i < std::min(group.size(), most_listed); ++i) all += (i ? ", " : "") + std::to_string(group[i]);
    if (group.size() > most_listed) all += " and " + std::to_string(group.size() - most_listed) + " more";
    all += ": " + text;
  }
  return all + (lines.size() > most_listed ? "\n  ..." : "");
}

/// Brings the sums of what a rank sends to those who check what they have received.
class SumMessages final : public SumsExchange {
 public:
  /// To whom every motion of the rank's goes, and from whom it comes, in the order that both ends have in common.
  SumMessages(std::shared_ptr<World> world, Index rank, Index tag, std::vector<Index> to, std::vector<Index> from)
      : world_(std::move(world)), rank_(rank), tag_(tag), to_(std::move(to)), from_(std::move(from)) {}

  void start(const std::vector<std::uint64_t>& sent) override {
    for (std::size_t k = 0; k < sent.size(); ++k) world_->send(rank_, to_[k], tag_, std::as_bytes(std::span(&sent[k], 1)));
  }
  /// Called when the move is complete, so that all have been sent.
  bool test() override {
    sums_.resize(from_.size());
    for (std::size_t k = 0; k < sums_.size(); ++k)
      world_->receive(rank_, from_[k], tag_, std::as_writable_bytes(std::span(&sums_[k], 1)));
    return true;
  }
  std::vector<std::uint64_t> expected() const override { return sums_; }

 private:
  std::shared_ptr<World> world_;
  Index rank_, tag_;
  std::vector<Index> to_, from_;
  std::vector<std::uint64_t> sums_;
};

/// A rank at bind(). Since all memory can be seen, whoever holds the meeting does the work of all.
class Binding final : public Guest {
 public:
  Binding(Index rank, const BlockPlan& plan, XArray source, XArray destination, const BlockOptions& options)
      : Guest("bind()"),
        rank_(rank),
        plan_(plan),
        source_(std::move(source)),
        destination_(std::move(destination)),
        options_(options) {}

  void hold(World& world) override {
    std::vector<Binding*> all;
    for (Index r = 0; r < world.size(); ++r) all.push_back(&world.guest<Binding>(r));
    compare(all);
    const auto found = std::find_if(all.begin(), all.end(), [](const Binding* one) { return !one->plan_.rank(); });
    const Binding* const whole = found == all.end() ? nullptr : *found;  // everybody's plan is looked at once
    check(all, whole);
    const auto made = std::make_shared<Move>(world.shared_from_this(), all.size());
    for (const auto* one : all) made->end(one->rank_).source = one->source_, made->end(one->rank_).destination = one->destination_;
    compile(all, whole, *made);
    const Index tag = world.private_tag();
    for (auto* one : all) one->move_ = made, one->tag_ = tag;
  }

  std::unique_ptr<Mover> mover() {
    const auto world = move_->world().shared_from_this();
    auto mover = make_mover(std::move(move_), rank_);
    if (!options_.checked) return mover;
    std::vector<Index> to, from;
    for (const auto& motion : sent_) to.push_back(plan_.destination().owner(motion.destination));
    for (const auto& motion : received_) from.push_back(plan_.source().owner(motion.source));
    auto sums = std::make_unique<SumMessages>(world, rank_, tag_, std::move(to), std::move(from));
    return make_checked_mover(std::move(mover), {std::move(sent_), std::move(received_), source_, destination_, options_},
                              std::move(sums));
  }

 private:
  using All = std::vector<Binding*>;

  bool endogenous() const { return source_.same_storage(destination_); }
  std::uint64_t digest() const { return digest_ ? *digest_ : *(digest_ = plan_.digest()); }
  std::string describe() const {
    auto array = [](const XArray& of) {
      return "elements of " + std::to_string(of.element_bytes()) + " bytes, ghost cells " + of.format().ghost.to_string() +
             (of.format().order == Order::C ? ", order C" : ", order F");
    };
    std::string text = array(source_) + " from " + plan_.source().to_string(2);
    text += endogenous() ? ", to themselves" : " to " + array(destination_) + " on " + plan_.destination().to_string(2);
    if (!options_.reduction.is_replace())
      text +=
          ", " + std::string(reduce_name(options_.reduction.op())) + " of " + std::string(element_name(options_.reduction.type()));
    return text + (options_.visit == Order::C ? ", visited in order C" : "") + (options_.checked ? ", checked" : "") + ", plan " +
           std::to_string(digest());
  }
  bool agrees(const Binding& other) const {
    const Reduction &mine = options_.reduction, &theirs = other.options_.reduction;
    return (&plan_ == &other.plan_ || digest() == other.digest()) && source_.format() == other.source_.format() &&
           destination_.format() == other.destination_.format() && endogenous() == other.endogenous() && mine.op() == theirs.op() &&
           mine.type() == theirs.type() && options_.visit == other.options_.visit && options_.checked == other.options_.checked;
  }

  static void compare(const All& all) {
    for (const auto* one : all)
      if (!one->agrees(*all[0]))
        throw Error(ErrorKind::disagreement, "ranks were given different things to move" + by_text(Index(all.size()), [&](Index r) {
                                               return all[std::size_t(r)]->describe();
                                             }));
  }

  static void check(const All& all, const Binding* whole) {
    std::optional<ErrorKind> kind;
    const std::string text = by_text(Index(all.size()), [&](Index r) -> std::string {
      try {
        const Binding& one = *all[std::size_t(r)];
        one.check(Index(all.size()), r > 0 ? all[std::size_t(r) - 1] : nullptr);
        if (one.plan_.rank() || &one == whole) one.plan_.check_races(one.endogenous(), !one.options_.reduction.is_replace());
        return {};
      } catch (const Error& error) {
        if (!kind) kind = error.kind();
        return error.what();
      }
    });
    if (kind) throw Error(*kind, "this move cannot be bound" + text);
  }
  /// The arrays of the rank before need not be checked again.
  void check(Index ranks, const Binding* before) const {
    if (options_.proxy)
      throw Error(ErrorKind::argument, "proxy is for threads and processes; ranks of the finegrain engine take turns");
    if (plan_.world_size() > ranks)
      throw Error(ErrorKind::argument, "the plan has blocks on rank " + std::to_string(plan_.world_size() - 1) +
                                           ", the world has " + std::to_string(ranks) + " ranks");
    for (const auto& [whose, what] :
         {std::pair{plan_.rank(), "plan"}, {source_.rank(), "source array"}, {destination_.rank(), "destination array"}})
      if (whose && *whose != rank_)
        throw Error(ErrorKind::argument,
                    std::string("the ") + what + " is rank " + std::to_string(*whose) + "'s, this is " + rank_name(rank_));
    check_arrays(BlockPlan(plan_.source(), plan_.destination()), source_, destination_, options_);
    if (!before || !source_.same_storage(before->source_) || !destination_.same_storage(before->destination_))
      check_apart(source_, destination_);
  }

  static void compile(const All& all, const Binding* whole, Move& move) {
    if (whole) {
      whole->deal(all, move);
    } else {
      for (const auto* one : all) one->deal(all, move);
    }
    // Ranks share their programs; but a function of one's own may be another one on every rank.
    std::optional<BlockCopies> copies;
    const Reduction* combining = nullptr;
    for (auto* one : all) {
      if (!combining || !(*combining == one->options_.reduction)) {
        if (copies) move.program_bytes += copies->workspace_bytes();
        combining = &one->options_.reduction;
        copies.emplace(one->options_.visit, one->source_.format().order, *combining);
      }
      one->compile(move, *copies);
    }
    move.program_bytes += copies->workspace_bytes();
    for (const auto* one : all)
      if (const Index bytes = move.workspace_bytes(one->rank_); one->options_.max_mem > 0 && bytes > one->options_.max_mem)
        throw Error(ErrorKind::memory_limit,
                    rank_name(one->rank_) + " needs " + std::to_string(bytes) + " bytes beyond its arrays, max_mem allows " +
                        std::to_string(one->options_.max_mem) + "; allow at least that much");
  }
  /// The motions that the plan holds, its rank's or all, go to those who take part in them, in the plan's order.
  void deal(const All& all, Move& move) const {
    const auto wanted = [&](Index rank) { return !plan_.rank() || *plan_.rank() == rank; };
    for (const auto& motion : plan_.motions()) {
      const Index from = plan_.source().owner(motion.source), to = plan_.destination().owner(motion.destination);
      if (wanted(from)) {
        move.end(from).readers.push_back(std::uint32_t(to));
        if (options_.checked) all[std::size_t(from)]->sent_.push_back(motion);
      }
      if (wanted(to)) {
        move.end(to).sources.push_back(std::uint32_t(from));
        all[std::size_t(to)]->received_.push_back(motion);
      }
    }
  }
  void compile(Move& move, BlockCopies& copies) {
    End& end = move.end(rank_);
    for (auto* ranks : {&end.sources, &end.readers}) {
      ranks->push_back(std::uint32_t(rank_));
      std::sort(ranks->begin(), ranks->end());
      ranks->erase(std::unique(ranks->begin(), ranks->end()), ranks->end());
      ranks->shrink_to_fit();
    }
    std::vector<Stretch> stretches;
    for (const auto& motion : copies.woven(received_, source_)) {
      const XArray& source = move.end(plan_.source().owner(motion.source)).source;
      stretches.push_back(copies.direct(motion, source.grid(motion.source), destination_.grid(motion.destination)));
    }
    end.motions = Index(received_.size());
    end.tasks = batch(stretches, std::numeric_limits<Index>::max());
    for (const auto& task : end.tasks) end.bytes = checked_add(end.bytes, task.bytes);
    if (!options_.checked) received_ = {};
  }

  Index rank_;
  const BlockPlan& plan_;
  XArray source_, destination_;
  const BlockOptions& options_;
  mutable std::optional<std::uint64_t> digest_;
  std::shared_ptr<Move> move_;
  std::vector<BlockMotion> received_, sent_;
  Index tag_ = 0;
};

}  // namespace

std::unique_ptr<Mover> bind(const BlockPlan& plan, Rank& me, XArray source, XArray destination, const BlockOptions& options) {
  Binding mine(me.rank_, plan, std::move(source), std::move(destination), options);
  me.world_.meet(me.rank_, mine);
  return mine.mover();
}

}  // namespace longshore::finegrain
